/* The losses that are made of other ops, or of one elementwise formula. */
#include <rapt/ops.h>

#include <math.h>
#include <stdatomic.h>

#include "elementwise.h"
#include "loss.h"
#include "tensor/debug.h"

bool rapt_check_reduction(const char *op, rapt_reduction reduction)
{
    if (reduction == RAPT_REDUCE_MEAN || reduction == RAPT_REDUCE_SUM || reduction == RAPT_REDUCE_NONE) return true;
    return rapt_fail(RAPT_ERROR_VALUE, op, "%d is not a reduction; RAPT_REDUCE_MEAN, _SUM or _NONE expected",
                     (int)reduction);
}

/* A column beside a row, most often: what belongs together was not laid side by side. */
static __attribute__((noinline, cold)) void warn_of_pairs(const char *op, const rapt_tensor *losses,
                                                          const rapt_tensor *input, const rapt_tensor *target)
{
    static atomic_flag was_said = ATOMIC_FLAG_INIT;
    char text[3][RAPT_SHAPE_TEXT];
    if (atomic_flag_test_and_set(&was_said)) return;
    rapt_warn(op,
              "input %s and target %s broadcast to %s, so that there are losses of all pairs. If they belong together "
              "row by row, rapt_squeeze or rapt_unsqueeze gives them one shape; else rapt_expand says that this is "
              "meant. (Said once; RAPT_DEBUG=0 silences it.)",
              rapt_shape_text(input->rank, input->shape, text[0]),
              rapt_shape_text(target->rank, target->shape, text[1]),
              rapt_shape_text(losses->rank, losses->shape, text[2]));
}

static rapt_tensor *reduce(const char *op, rapt_tensor *losses, const rapt_tensor *input, const rapt_tensor *target,
                           rapt_reduction reduction)
{
    if (!rapt_check_reduction(op, reduction)) return NULL;
    if (losses && losses->count > input->count && losses->count > target->count)
        warn_of_pairs(op, losses, input, target);
    if (reduction == RAPT_REDUCE_MEAN) return rapt_mean(losses, RAPT_ALL_AXES, false);
    return reduction == RAPT_REDUCE_SUM ? rapt_sum(losses, RAPT_ALL_AXES, false) : losses;
}

/* False after an error in the name of the loss */
static bool check_pair(const char *op, const rapt_tensor *input, const rapt_tensor *target)
{
    if (!input || !target) return rapt_fail_null(op, input ? "target" : "input");
    if (!rapt_check_alive(op, "the input", input) || !rapt_check_alive(op, "the target", target)) return false;
    if (!rapt_is_floating(input) || input->dtype != target->dtype)
        return rapt_fail(RAPT_ERROR_DTYPE, op,
                         "input is %s, target is %s; one floating dtype expected (rapt_cast converts)",
                         rapt_dtype_name(input->dtype), rapt_dtype_name(target->dtype));
    int64_t shape[RAPT_MAX_RANK];
    return rapt_broadcast(op, input, target, shape) >= 0;
}

/* Of the losses that grow with the square of d = input − target: c is d cut to ±limit, and dy = factor c dd. */
typedef struct square_options {
    double limit, factor;
} square_options;

static rapt_tensor *square_slope_forward(rapt_call *call)
{
    for (int i = 0; i < 3; i++) rapt_call_save(call, rapt_call_input(call, i));
    return rapt_elementwise_call(call, rapt_kernel.loss.square_slope, 3);
}

static bool square_slope_vjp(rapt_call *call);

/* y = factor c g: dg = factor c dy, dd = factor g dy where |d| < limit, else 0 */
static const rapt_op square_slope = {.name = "square_slope",
                                     .forward = square_slope_forward,
                                     .vjp = square_slope_vjp,
                                     .options_size = sizeof(square_options)};

/* Gives the gradient of d to input `first`, and minus that to the next. */
static bool give_difference(rapt_call *call, int first, rapt_tensor *dd)
{
    if (rapt_call_wants(call, first) && !rapt_call_give(call, first, dd)) return false;
    return !rapt_call_wants(call, first + 1) || rapt_call_give(call, first + 1, rapt_neg(dd));
}

static bool square_slope_vjp(rapt_call *call)
{
    const square_options *o = rapt_call_options(call);
    rapt_tensor *dy = rapt_call_gradient(call, 0), *g = rapt_call_saved(call, 0);
    rapt_tensor *input = rapt_call_saved(call, 1), *target = rapt_call_saved(call, 2);
    if (rapt_call_wants(call, 0) && !rapt_call_give(call, 0, RAPT_APPLY(&square_slope, o, dy, input, target)))
        return false;
    if (!rapt_call_wants(call, 1) && !rapt_call_wants(call, 2)) return true;
    rapt_tensor *dd = rapt_mul_scalar(rapt_mul(dy, g), o->factor);
    if (o->limit < (double)INFINITY) {
        rapt_tensor *inside = rapt_less(rapt_abs(rapt_sub(input, target)), rapt_scalar(g->dtype, o->limit));
        dd = rapt_mul(dd, rapt_cast(inside, g->dtype));
    }
    return give_difference(call, 1, dd);
}

static rapt_tensor *square_forward(rapt_call *call, const rapt_loops loops)
{
    for (int i = 0; i < 2; i++) rapt_call_save(call, rapt_call_input(call, i));
    return rapt_elementwise_call(call, loops, 3);
}

static bool square_vjp(rapt_call *call)
{
    return give_difference(call, 0,
                           RAPT_APPLY(&square_slope, rapt_call_options(call), rapt_call_gradient(call, 0),
                                      rapt_call_saved(call, 0), rapt_call_saved(call, 1)));
}

/* y = d² */
static rapt_tensor *mse_forward(rapt_call *call)
{
    return square_forward(call, rapt_kernel.loss.mse);
}

static const rapt_op mse = {.name = "mse_loss",
                            .forward = mse_forward,
                            .vjp = square_vjp,
                            .options_size = sizeof(square_options)};

rapt_tensor *rapt_mse_loss(rapt_tensor *input, rapt_tensor *target, rapt_reduction reduction)
{
    if (!check_pair("mse_loss", input, target)) return NULL;
    const square_options options = {INFINITY, 2};
    return reduce("mse_loss", RAPT_APPLY(&mse, &options, input, target), input, target, reduction);
}

/* |d| */
rapt_tensor *rapt_l1_loss(rapt_tensor *input, rapt_tensor *target, rapt_reduction reduction)
{
    if (!check_pair("l1_loss", input, target)) return NULL;
    return reduce("l1_loss", rapt_abs(rapt_sub(input, target)), input, target, reduction);
}

/* y = d² / 2 where |d| ≤ delta, else delta (|d| − delta / 2); both are c (d − c / 2) */
static rapt_tensor *huber_forward(rapt_call *call)
{
    return square_forward(call, rapt_kernel.loss.huber);
}

static const rapt_op huber = {.name = "huber_loss",
                              .forward = huber_forward,
                              .vjp = square_vjp,
                              .options_size = sizeof(square_options)};

rapt_tensor *rapt_huber_loss(rapt_tensor *input, rapt_tensor *target, double delta, rapt_reduction reduction)
{
    if (!(delta > 0)) {
        rapt_fail(RAPT_ERROR_VALUE, "huber_loss", "delta %g; a number above 0 expected", delta);
        return NULL;
    }
    if (!check_pair("huber_loss", input, target)) return NULL;
    const square_options options = {delta, 1};
    return reduce("huber_loss", RAPT_APPLY(&huber, &options, input, target), input, target, reduction);
}

/* y = max(x, 0) − x t + log(1 + exp(−|x|)): dx = (σ(x) − t) dy, dt = −x dy */
static rapt_tensor *bce_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 0));
    rapt_call_save(call, rapt_call_wants(call, 0) ? rapt_call_input(call, 1) : NULL);
    return rapt_elementwise_call(call, rapt_kernel.loss.bce_with_logits, 16);
}

static bool bce_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0), *x = rapt_call_saved(call, 0);
    bool good = true;
    if (rapt_call_wants(call, 0))
        good = rapt_call_give(call, 0, rapt_mul(g, rapt_sub(rapt_sigmoid(x), rapt_call_saved(call, 1))));
    if (rapt_call_wants(call, 1)) good = good && rapt_call_give(call, 1, rapt_neg(rapt_mul(g, x)));
    return good;
}

static const rapt_op bce_with_logits = {.name = "bce_with_logits", .forward = bce_forward, .vjp = bce_vjp};

rapt_tensor *rapt_bce_with_logits(rapt_tensor *logits, rapt_tensor *targets, rapt_reduction reduction)
{
    rapt_tensor *losses = RAPT_APPLY(&bce_with_logits, NULL, logits, targets);
    return losses ? reduce("bce_with_logits", losses, logits, targets, reduction) : NULL;
}

/* y = t (log t − x), 0 where t is 0: dx = −t dy, dt = (log t + 1 − x) dy, 0 where t is 0 */
static rapt_tensor *kl_div_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_wants(call, 1) ? rapt_call_input(call, 0) : NULL);
    rapt_call_save(call, rapt_call_input(call, 1));
    return rapt_elementwise_call(call, rapt_kernel.loss.kl_div, 16);
}

static bool kl_div_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0), *t = rapt_call_saved(call, 1);
    if (!t || (rapt_call_wants(call, 0) && !rapt_call_give(call, 0, rapt_neg(rapt_mul(g, t))))) return false;
    if (!rapt_call_wants(call, 1)) return true;
    rapt_tensor *zero = rapt_scalar(t->dtype, 0), *one = rapt_scalar(t->dtype, 1);
    rapt_tensor *is_zero = rapt_equal(t, zero);
    rapt_tensor *slope = rapt_sub(rapt_add(rapt_log(rapt_where(is_zero, one, t)), one), rapt_call_saved(call, 0));
    return rapt_call_give(call, 1, rapt_where(is_zero, zero, rapt_mul(g, slope)));
}

static const rapt_op kl_div = {.name = "kl_div", .forward = kl_div_forward, .vjp = kl_div_vjp};

rapt_tensor *rapt_kl_div(rapt_tensor *input, rapt_tensor *target, rapt_reduction reduction)
{
    rapt_tensor *losses = RAPT_APPLY(&kl_div, NULL, input, target);
    return losses ? reduce("kl_div", losses, input, target, reduction) : NULL;
}
