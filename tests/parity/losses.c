/* The cases of losses.py. The option is the reduction. */
#include "parity.h"

static void cross_entropy_with(parity *p, rapt_cross_entropy_options options)
{
    options.reduction = (rapt_reduction)p->option;
    parity_output(p, "y", rapt_cross_entropy(parity_input(p, "x"), parity_input(p, "targets"), &options));
}

static void cross_entropy(parity *p)
{
    cross_entropy_with(p, (rapt_cross_entropy_options){0});
}

static void cross_entropy_smoothing(parity *p)
{
    cross_entropy_with(p, (rapt_cross_entropy_options){.label_smoothing = 0.1});
}

static void cross_entropy_ignore(parity *p)
{
    cross_entropy_with(p, (rapt_cross_entropy_options){.has_ignore_index = true, .ignore_index = 2});
}

static void cross_entropy_smoothing_ignore(parity *p)
{
    cross_entropy_with(p, (rapt_cross_entropy_options){.label_smoothing = 0.3,
                                                       .has_ignore_index = true,
                                                       .ignore_index = 2});
}

static void nll_ignore(parity *p)
{
    rapt_cross_entropy_options options = {.has_ignore_index = true,
                                          .ignore_index = 2,
                                          .reduction = (rapt_reduction)p->option};
    parity_output(p, "y", rapt_nll_loss(parity_input(p, "x"), parity_input(p, "targets"), &options));
}

#define LOSS(name, ...)                                                                                                \
    static void name(parity *p)                                                                                        \
    {                                                                                                                  \
        rapt_tensor *x = parity_input(p, "x"), *target = parity_input(p, "target");                                    \
        rapt_reduction reduction = (rapt_reduction)p->option;                                                          \
        parity_output(p, "y", __VA_ARGS__);                                                                            \
    }
LOSS(mse, rapt_mse_loss(x, target, reduction))
LOSS(l1, rapt_l1_loss(x, target, reduction))
LOSS(huber, rapt_huber_loss(x, target, 0.7, reduction))
LOSS(bce_with_logits, rapt_bce_with_logits(x, target, reduction))
LOSS(kl_div, rapt_kl_div(rapt_log_softmax(x, -1), target, reduction))

#define REDUCTIONS(loss)                                                                                               \
    PARITY_AS(loss##_mean, loss, RAPT_REDUCE_MEAN), PARITY_AS(loss##_sum, loss, RAPT_REDUCE_SUM),                      \
        PARITY_AS(loss##_none, loss, RAPT_REDUCE_NONE)
const parity_case parity_losses[] = {
    REDUCTIONS(cross_entropy),
    REDUCTIONS(cross_entropy_smoothing),
    REDUCTIONS(cross_entropy_ignore),
    REDUCTIONS(cross_entropy_smoothing_ignore),
    REDUCTIONS(nll_ignore),
    REDUCTIONS(mse),
    REDUCTIONS(l1),
    REDUCTIONS(huber),
    REDUCTIONS(bce_with_logits),
    REDUCTIONS(kl_div),
    {0},
};
