/* Digits: what float32 computes against what float64 computes from the same float32 numbers, as these grow and as
 * they move away from 0 (logits of 10⁵ with differences of 1). Values, gradients, and second derivatives. */
#include <criterion/criterion.h>
#include <math.h>

#include <rapt.h>

enum { rows = 16, columns = 12 };

typedef rapt_tensor *function(rapt_tensor *x);

/* Numbers in [0, 1), the same at each call, in the dtype of x. */
static rapt_tensor *parts(rapt_tensor *x)
{
    rapt_random_state state = rapt_random_get_state();
    rapt_seed(2);
    rapt_tensor *numbers = rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(rows, columns));
    rapt_random_set_state(state);
    return rapt_cast(numbers, rapt_get_dtype(x));
}

/* One of them for each column. */
static rapt_tensor *part(rapt_tensor *x)
{
    return rapt_select(parts(x), 0, 1);
}

static rapt_tensor *classes(void)
{
    int64_t numbers[rows];
    for (int i = 0; i < rows; i++) numbers[i] = i * 5 % columns;
    return rapt_from(RAPT_INT64, RAPT_SHAPE(rows), numbers);
}

static rapt_tensor *softmax(rapt_tensor *x)
{
    return rapt_softmax(x, -1);
}

static rapt_tensor *log_softmax(rapt_tensor *x)
{
    return rapt_log_softmax(x, -1);
}

static rapt_tensor *logsumexp_of_rows(rapt_tensor *x)
{
    return rapt_logsumexp(x, RAPT_AXES(-1), false);
}

static rapt_tensor *logsumexp_of_all(rapt_tensor *x)
{
    return rapt_logsumexp(x, RAPT_ALL_AXES, false);
}

static rapt_tensor *cross_entropy(rapt_tensor *x)
{
    return rapt_cross_entropy(x, classes(), NULL);
}

static rapt_tensor *smoothed_cross_entropy(rapt_tensor *x)
{
    const rapt_cross_entropy_options options = {.label_smoothing = 0.1, .reduction = RAPT_REDUCE_NONE};
    return rapt_cross_entropy(x, classes(), &options);
}

static rapt_tensor *nll_loss(rapt_tensor *x)
{
    return rapt_nll_loss(rapt_log_softmax(x, -1), classes(), NULL);
}

static rapt_tensor *kl_div(rapt_tensor *x)
{
    return rapt_kl_div(rapt_log_softmax(x, -1), parts(x), RAPT_REDUCE_SUM);
}

static rapt_tensor *bce_with_logits(rapt_tensor *x)
{
    return rapt_bce_with_logits(x, parts(x), RAPT_REDUCE_NONE);
}

/* Targets near 1, as far as float32 has them. */
static rapt_tensor *bce_near_one(rapt_tensor *x)
{
    rapt_tensor *target = rapt_add_scalar(rapt_mul_scalar(rapt_cast(parts(x), RAPT_FLOAT32), -1e-3), 1);
    return rapt_bce_with_logits(x, rapt_cast(target, rapt_get_dtype(x)), RAPT_REDUCE_NONE);
}

static rapt_tensor *masked_softmax(rapt_tensor *x)
{
    return rapt_masked_softmax(rapt_unsqueeze(x, 0), RAPT_MASK(.causal = true));
}

static rapt_tensor *masked_sum(rapt_tensor *x)
{
    return rapt_masked_sum(rapt_unsqueeze(rapt_abs(x), 0), RAPT_MASK(.causal = true));
}

static rapt_tensor *layer_normalize(rapt_tensor *x)
{
    return rapt_layer_normalize(x, part(x), part(x), 1e-5);
}

static rapt_tensor *batch_normalize(rapt_tensor *x)
{
    return rapt_batch_normalize(rapt_transpose(x, 0, 1), NULL, NULL, 1e-5, NULL, NULL);
}

static rapt_tensor *rms_normalize(rapt_tensor *x)
{
    return rapt_rms_normalize(x, part(x), 1e-5);
}

static rapt_tensor *var_of_rows(rapt_tensor *x)
{
    return rapt_var(x, RAPT_AXES(-1), false, 1);
}

static rapt_tensor *var_of_columns(rapt_tensor *x)
{
    return rapt_var(x, RAPT_AXES(0), false, 0);
}

static rapt_tensor *mean(rapt_tensor *x)
{
    return rapt_mean(x, RAPT_AXES(-1), false);
}

static rapt_tensor *mse_loss(rapt_tensor *x)
{
    return rapt_mse_loss(x, parts(x), RAPT_REDUCE_MEAN);
}

static rapt_tensor *huber_loss(rapt_tensor *x)
{
    return rapt_huber_loss(x, parts(x), 1, RAPT_REDUCE_NONE);
}

/* Attention whose scores are 0 but for their bias. */
static rapt_tensor *attend(rapt_tensor *x, rapt_scoring *scoring, bool plain)
{
    rapt_attention *attention = rapt_attention_new(scoring, 0);
    attention->plain = plain;
    rapt_module_cast(&attention->module, rapt_get_dtype(x));
    rapt_tensor *values = rapt_unsqueeze(rapt_transpose(parts(x), 0, 1), 0), *keys = rapt_mul_scalar(values, 0);
    rapt_tensor *queries = rapt_zeros(rapt_get_dtype(x), RAPT_SHAPE(1, rows, rows));
    rapt_tensor *y = rapt_attention_forward(attention, queries, keys, values, RAPT_MASK(.bias = x));
    rapt_module_free(&attention->module);
    return y;
}

static rapt_tensor *dot_attention(rapt_tensor *x)
{
    return attend(x, rapt_scaled_dot_product_scoring_new(), false);
}

static rapt_tensor *plain_dot_attention(rapt_tensor *x)
{
    return attend(x, rapt_scaled_dot_product_scoring_new(), true);
}

static rapt_tensor *additive_attention(rapt_tensor *x)
{
    rapt_seed(3);
    return attend(x, rapt_additive_scoring_new(rows, rows, 8), false);
}

static rapt_tensor *plain_additive_attention(rapt_tensor *x)
{
    rapt_seed(3);
    return attend(x, rapt_additive_scoring_new(rows, rows, 8), true);
}

static const struct {
    const char *name;
    function *call;
    bool once; /* there is no second derivative */
} functions[] = {
    {.name = "softmax", .call = softmax},
    {.name = "log_softmax", .call = log_softmax},
    {.name = "logsumexp of rows", .call = logsumexp_of_rows},
    {.name = "logsumexp of all", .call = logsumexp_of_all},
    {.name = "cross_entropy", .call = cross_entropy},
    {.name = "smoothed cross_entropy", .call = smoothed_cross_entropy},
    {.name = "nll_loss", .call = nll_loss},
    {.name = "kl_div", .call = kl_div},
    {.name = "bce_with_logits", .call = bce_with_logits},
    {.name = "bce_with_logits, targets near 1", .call = bce_near_one},
    {.name = "masked_softmax", .call = masked_softmax},
    {.name = "masked_sum", .call = masked_sum},
    {.name = "layer_normalize", .call = layer_normalize},
    {.name = "batch_normalize", .call = batch_normalize},
    {.name = "rms_normalize", .call = rms_normalize},
    {.name = "var of rows", .call = var_of_rows},
    {.name = "var of columns", .call = var_of_columns},
    {.name = "mean", .call = mean, .once = true},
    {.name = "mse_loss", .call = mse_loss},
    {.name = "huber_loss", .call = huber_loss},
    {.name = "sigmoid", .call = rapt_sigmoid},
    {.name = "tanh", .call = rapt_tanh},
    {.name = "silu", .call = rapt_silu},
    {.name = "gelu", .call = rapt_gelu},
    {.name = "dot-product attention", .call = dot_attention, .once = true},
    {.name = "dot-product attention, plain", .call = plain_dot_attention},
    {.name = "additive attention", .call = additive_attention, .once = true},
    {.name = "additive attention, plain", .call = plain_additive_attention},
};

enum { value, gradient, second, results };

/* The function's value, its gradient along one random direction, and the gradient of that along another. */
static void run(int which, rapt_tensor *numbers, rapt_dtype dtype, rapt_tensor *out[results])
{
    rapt_tensor *x = rapt_require_gradient(rapt_clone(rapt_cast(numbers, dtype)));
    const bool once = functions[which].once;
    out[value] = functions[which].call(x);
    rapt_seed(4);
    for (int k = value; out[k] && k < (once ? gradient : second); k++) {
        rapt_tensor *along = rapt_cast(rapt_randn(RAPT_FLOAT32, rapt_rank(out[k]), rapt_shape(out[k])), dtype);
        if (!rapt_gradients(1, &out[k], &along, 1, &x, &out[k + 1], once ? 0 : RAPT_CREATE_GRAPH)) out[k + 1] = NULL;
    }
}

/* The largest difference, in parts of the largest number or, if that is smaller, of 1. */
static double difference(rapt_tensor *single, rapt_tensor *exact)
{
    rapt_tensor *distance = rapt_abs(rapt_sub(rapt_cast(single, RAPT_FLOAT64), exact));
    double largest = rapt_item(rapt_max(rapt_abs(exact), RAPT_ALL_AXES, false));
    return rapt_item(rapt_max(distance, RAPT_ALL_AXES, false)) / fmax(1, largest);
}

/* A few roundings of float32, which are 6e-8 each, more where thousands of steps went before. */
static void expect_digits(const char *what, rapt_tensor *numbers)
{
    static const char *const names[] = {"value", "gradient", "second derivative"};
    for (int i = 0; i < (int)(sizeof functions / sizeof *functions); i++) {
        RAPT_SCOPE;
        rapt_tensor *single[results] = {0}, *exact[results] = {0};
        run(i, numbers, RAPT_FLOAT32, single);
        run(i, numbers, RAPT_FLOAT64, exact);
        for (int k = value; k < (functions[i].once ? second : results); k++) {
            double worst = difference(single[k], exact[k]);
            cr_expect(worst <= 1e-6, "%s of %s, its %s: %.1e; %s", functions[i].name, what, names[k], worst,
                      rapt_error() ? rapt_error() : "no error");
        }
        rapt_clear_error();
    }
}

static rapt_tensor *noise(void)
{
    rapt_seed(1);
    return rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(rows, columns));
}

Test(precision, of_numbers_that_grow)
{
    RAPT_SCOPE;
    expect_digits("N(0, 1)", noise());
    expect_digits("N(0, 1e3)", rapt_mul_scalar(noise(), 1e3));
    expect_digits("N(0, 1e5)", rapt_mul_scalar(noise(), 1e5));
    expect_digits("N(0, 1e7)", rapt_mul_scalar(noise(), 1e7));
}

Test(precision, of_numbers_far_from_zero)
{
    RAPT_SCOPE;
    rapt_tensor *spread = rapt_mul_scalar(noise(), 3);
    expect_digits("N(1e3, 3)", rapt_add_scalar(spread, 1e3));
    expect_digits("N(1e5, 3)", rapt_add_scalar(spread, 1e5));
    expect_digits("N(1e7, 3)", rapt_add_scalar(spread, 1e7));
    expect_digits("N(-1e5, 3)", rapt_add_scalar(spread, -1e5));
}
