// A user's program in C++: every macro of the headers reads as in C, and what it trains comes out right. Compiled by
// each C++ compiler as C++11, C++17 and C++20 with warnings as errors.
#include <cmath>
#include <cstdio>

#include <rapt.h>

static int failures;

static void expect(bool good, const char *what)
{
    if (good) return;
    std::fprintf(stderr, "cplusplus: %s (%s)\n", what, rapt_error() ? rapt_error() : "no error");
    failures++;
}

static bool near(double number, double expected)
{
    return std::fabs(number - expected) <= 1e-6;
}

static int calls; // of the functions that stand in macros: each argument is to be evaluated once

static int64_t counted(int64_t number)
{
    calls++;
    return number;
}

template <typename T> static T *counted(T *pointer)
{
    calls++;
    return pointer;
}

static void check_shapes_and_axes()
{
    RAPT_SCOPE;
    calls = 0;
    int rows = 2;
    rapt_tensor *x = rapt_full(RAPT_FLOAT64, RAPT_SHAPE(rows, counted(3), 4), 0.5);
    expect(calls == 1, "RAPT_SHAPE evaluates its sizes once");
    expect(rapt_rank(x) == 3 && rapt_size(x, 0) == 2 && rapt_size(x, 1) == 3 && rapt_size(x, 2) == 4, "RAPT_SHAPE");
    rapt_tensor *sums = rapt_sum(x, RAPT_AXES(0, -1), false);
    expect(rapt_rank(sums) == 1 && rapt_size(sums, 0) == 3, "RAPT_AXES");
    const int64_t last[] = {2};
    expect(near(rapt_at(sums, last), 4), "a sum over two axes");
    expect(near(rapt_item(rapt_mean(x, RAPT_ALL_AXES, false)), 0.5), "RAPT_ALL_AXES");
    rapt_tensor *y =
        rapt_reshape(rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(rapt_size(rapt_ones(RAPT_INT64, RAPT_SHAPE(6)), 0))),
                     RAPT_SHAPE(3, -1));
    expect(rapt_size(y, 1) == 2, "a shape inside a shape");
}

// y = scale · x, where scale may be absent: 1
static rapt_tensor *scaled_forward(rapt_call *call)
{
    rapt_tensor *x = rapt_call_input(call, 0), *scale = rapt_call_input(call, 1);
    rapt_call_save(call, x);
    rapt_call_save(call, scale);
    return scale ? rapt_mul(x, scale) : rapt_mul_scalar(x, *static_cast<const double *>(rapt_call_options(call)));
}

static bool scaled_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0);
    if (!rapt_call_wants(call, 1))
        return rapt_call_give(call, 0, rapt_mul_scalar(g, *static_cast<const double *>(rapt_call_options(call))));
    return rapt_call_give(call, 0, rapt_mul(g, rapt_call_saved(call, 1))) &&
           rapt_call_give(call, 1, rapt_mul(g, rapt_call_saved(call, 0)));
}

static rapt_op make_scaled()
{
    rapt_op op = rapt_op();
    op.name = "scaled";
    op.forward = scaled_forward;
    op.vjp = scaled_vjp;
    op.options_size = sizeof(double);
    op.optional = 1 << 1;
    return op;
}

static const rapt_op scaled = make_scaled();

static void check_own_op()
{
    RAPT_SCOPE;
    const double factor = 3;
    calls = 0;
    rapt_tensor *x = rapt_require_gradient(rapt_scalar(RAPT_FLOAT64, 2));
    rapt_tensor *scale = rapt_require_gradient(rapt_scalar(RAPT_FLOAT64, 5));
    rapt_tensor *sum = rapt_add(RAPT_APPLY(&scaled, &factor, counted(x), scale), RAPT_APPLY(&scaled, &factor, x, NULL));
    expect(calls == 1, "RAPT_APPLY evaluates its inputs once");
    expect(near(rapt_item(sum), 16) && rapt_backward(sum), "RAPT_APPLY");
    expect(near(rapt_item(rapt_gradient(x)), 8) && near(rapt_item(rapt_gradient(scale)), 2), "its gradient");
}

static double batch_loss(rapt_sequential *model, rapt_tensor *x, rapt_tensor *target)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    expect(!rapt_is_recording(), "RAPT_NO_GRADIENT records nothing");
    return rapt_item(rapt_mse_loss(rapt_sequential_forward(model, x), target, RAPT_REDUCE_MEAN));
}

// Exclusive or.
static void check_training()
{
    RAPT_SCOPE;
    rapt_seed(1);
    const float in[] = {0, 0, 0, 1, 1, 0, 1, 1}, out[] = {0, 1, 1, 0};
    rapt_tensor *x = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(4, 2), in);
    rapt_tensor *target = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(4, 1), out);
    rapt_linear *hidden = rapt_linear_new(2, 16, RAPT_BIAS), *output = rapt_linear_new(16, 1, RAPT_BIAS);
    calls = 0;
    rapt_sequential *model =
        RAPT_SEQUENTIAL(counted(&hidden->module), rapt_activation_new("Tanh", rapt_tanh), &output->module);
    expect(calls == 1, "RAPT_SEQUENTIAL evaluates its layers once");

    rapt_adam_config config = rapt_adam_config();
    config.learning_rate = 1e-2;
    rapt_optimizer *adam = rapt_adam_new(&model->module, &config);
    rapt_group_config frozen = rapt_group_config();
    frozen.learning_rate = RAPT_ZERO;
    expect(rapt_optimizer_group(adam, "2.bias", &frozen), "a frozen group");
    const double bias = rapt_item(output->bias);

    const rapt_memory_statistics before = rapt_memory_get_statistics();
    for (int step = 0; step < 1000; step++) {
        RAPT_SCOPE;
        expect(rapt_backward(rapt_mse_loss(rapt_sequential_forward(model, x), target, RAPT_REDUCE_MEAN)), "backward");
        rapt_optimizer_step(adam);
    }
    const rapt_memory_statistics after = rapt_memory_get_statistics();
    expect(after.live_bytes - before.live_bytes < 1 << 16, "RAPT_SCOPE ends with its block");
    expect(batch_loss(model, x, target) < 0.01 && rapt_is_recording(), "exclusive or is not learnt");
    expect(rapt_item(output->bias) == bias, "RAPT_ZERO does not freeze");
    rapt_optimizer_free(adam);
    rapt_module_free(&model->module);
}

// With all scores equal, each query weighs the keys that it sees alike.
static void check_masks()
{
    RAPT_SCOPE;
    const double numbers[] = {1, 2, 4, 8};
    const int64_t three[] = {3};
    rapt_tensor *same = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(1, 4, 2));
    rapt_tensor *values = rapt_from(RAPT_FLOAT64, RAPT_SHAPE(1, 4, 1), numbers);
    rapt_tensor *lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(1), three);
    rapt_attention *attention = rapt_dot_product_attention_new(0);
    rapt_tensor *y =
        rapt_attention_forward(attention, same, same, values, RAPT_MASK(.causal = true, .valid_lengths = lengths));
    const double expected[] = {1, 1.5, 7 / 3.0, 7 / 3.0};
    for (int64_t i = 0; i < 4; i++) {
        const int64_t at[] = {0, i, 0};
        expect(near(rapt_at(y, at), expected[i]), "RAPT_MASK(.causal, .valid_lengths)");
    }
    const auto last_of = [&](const rapt_mask *mask) {
        const int64_t at[] = {0, 3, 0};
        return rapt_at(rapt_attention_forward(attention, same, same, values, mask), at);
    };
    expect(near(last_of(RAPT_MASK(.window = 2)), 6), "RAPT_MASK(.window)");
    calls = 0;
    rapt_tensor *seen = rapt_mask_seen(RAPT_MASK(.seen = rapt_mask_seen(RAPT_MASK(.causal = true, .window = counted(2)),
                                                                        rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(1, 4, 4)))),
                                       rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(1, 4, 4)));
    expect(calls == 1, "RAPT_MASK evaluates its fields once");
    expect(near(last_of(RAPT_MASK(.seen = seen)), 6), "a mask inside a mask");
    rapt_tensor *bias = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(1, 4, 4)),
                *by_position = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(3));
    rapt_tensor *const none = nullptr;
    expect(near(last_of(RAPT_MASK(.valid_lengths = lengths, .first_keys = none, .causal = true, .prefix_lengths = none,
                                  .window = 4, .window_left = 4, .window_right = 4, .block = 4, .blocks_before = 0,
                                  .dilation = 1, .documents = none, .query_places = none, .rule = rapt_mask_rule(),
                                  .offset = 0, .seen = seen, .bias = bias, .relative_bias = by_position, .starts = none,
                                  .key_starts = none, .fills_million = false)),
                4),
           "all fields of RAPT_MASK");
    rapt_module_free(&attention->module);
}

// Self-attention that learns to copy the first token to every place.
static void check_attention()
{
    RAPT_SCOPE;
    rapt_seed(2);
    rapt_multi_head_attention_config config = rapt_multi_head_attention_config();
    config.hidden = 8, config.heads = 2, config.bias = true;
    config.pooling = rapt_additive_attention_new(4, 4, 8, 0);
    rapt_multi_head_attention *attention = rapt_multi_head_attention_new(&config);
    rapt_optimizer *adam = rapt_adam_new(&attention->module, nullptr);
    expect(rapt_optimizer_set_learning_rate(adam, 1e-2), "a learning rate");
    const int64_t five[] = {5, 4};
    rapt_tensor *lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(2), five);
    rapt_tensor *mark = rapt_slice(rapt_eye(RAPT_FLOAT32, 5), 1, 0, 1, 1);
    double loss = 1;
    for (int step = 0; step < 300; step++) {
        RAPT_SCOPE;
        rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 5, 8)), *first = rapt_slice(x, 1, 0, 1, 1);
        rapt_tensor *marked = rapt_add(x, mark);
        rapt_tensor *y =
            rapt_multi_head_attention_forward(attention, marked, marked, x,
                                              RAPT_MASK(.causal = true, .valid_lengths = lengths), nullptr);
        rapt_tensor *mean = rapt_mse_loss(y, first, RAPT_REDUCE_MEAN);
        expect(rapt_backward(mean) && rapt_optimizer_step(adam), "a step");
        loss = rapt_item(mean);
    }
    expect(loss < 0.5, "attention does not learn");
    rapt_optimizer_free(adam);
    rapt_module_free(&attention->module);
}

int main()
{
    check_shapes_and_axes();
    check_own_op();
    check_training();
    check_masks();
    check_attention();
    return failures > 0;
}
