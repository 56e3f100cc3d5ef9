/* Every elementwise loop, for each dtype, however its operands lie in memory: the bits that it gives for each element
 * alone, and nothing beside them. */
#include "expect.h"

#include <float.h>
#include <math.h>

#include "tensor/core.h"
#include "tensor/kernels.h"

enum { operands = 4, longest = 133, widest_step = 3, room = (longest * widest_step + 1) * 8, untouched = 0x5a };

/* data[0] is the output. */
typedef struct loop_case {
    const char *name;
    rapt_loop *loop;
    int count; /* of operands */
    rapt_dtype dtypes[operands];
    const void *options;
} loop_case;

/* What options mean to a loop: a factor, bounds, the largest and a scale. With as many digits as there are, a product
 * that is rounded before it is added to something shows. */
static const double option[] = {-0.7071067811865475, 2.2360679774997896};

/* What comparisons and special cases go by. */
static const double numbers[] = {0,
                                 -0.0,
                                 1,
                                 -1,
                                 0.5,
                                 -0.5,
                                 2,
                                 -2,
                                 0.3,
                                 -0.7,
                                 2.5,
                                 -3.75,
                                 5,
                                 10,
                                 -10,
                                 -20.25,
                                 88.5,
                                 90,
                                 -90,
                                 104.5,
                                 -104.5,
                                 300,
                                 -300,
                                 711,
                                 -711,
                                 1e-30,
                                 -1e-40,
                                 3e-41,
                                 1e-320,
                                 1e10,
                                 -1e10,
                                 1e19,
                                 -1e19,
                                 3.4e38,
                                 -3.4e38,
                                 1.7e308,
                                 HUGE_VAL,
                                 -HUGE_VAL,
                                 0x1p-26,
                                 -0x1p-60,
                                 (double)NAN,
                                 1.7320508075688772,
                                 -0.3183098861837907,
                                 2.718281828459045,
                                 -0.5772156649015329,
                                 1.618033988749895,
                                 0.14285714285714285,
                                 -1.0471975511965976,
                                 0.9159655941772190,
                                 -3.3028756377319946};

enum { number_count = sizeof numbers / sizeof *numbers };

static void put(char *to, rapt_dtype dtype, double number)
{
    const double whole = isnan(number) ? 7 : number < -1e18 ? -1e18 : number > 1e18 ? 1e18 : number;
    const uint64_t wrapped = (uint64_t)(int64_t)whole;
    const int32_t half = (int32_t)(uint32_t)wrapped;
    const uint8_t byte = (uint8_t)(dtype == RAPT_BOOL ? wrapped & 1 : wrapped);
    const float narrow =
        number > FLT_MAX || number < -FLT_MAX ? copysignf(INFINITY, (float)copysign(1, number)) : (float)number;
    const void *const from[] = {[RAPT_FLOAT32] = &narrow, [RAPT_FLOAT64] = &number, [RAPT_INT64] = &wrapped,
                                [RAPT_INT32] = &half,     [RAPT_UINT8] = &byte,     [RAPT_BOOL] = &byte};
    memcpy(to, from[dtype], rapt_dtype_size(dtype));
}

static bool is_same(const char *a, const char *b, rapt_dtype dtype)
{
    float x, y;
    double v, w;
    if (dtype == RAPT_FLOAT32 && (memcpy(&x, a, sizeof x), memcpy(&y, b, sizeof y), isnan(x) && isnan(y))) return true;
    if (dtype == RAPT_FLOAT64 && (memcpy(&v, a, sizeof v), memcpy(&w, b, sizeof w), isnan(v) && isnan(w))) return true;
    return memcmp(a, b, rapt_dtype_size(dtype)) == 0;
}

/* One run of `count` elements whose operands have those steps, in elements; 0 repeats one. */
static bool gives_each_alone(const loop_case *c, int count, const int *steps, int turn)
{
    _Alignas(64) char memory[operands][room], expected[room];
    char *data[operands] = {0}, *single[operands] = {0};
    int64_t strides[operands] = {0}, dense[operands] = {0};
    memset(memory[0], untouched, room);
    memset(expected, untouched, room);
    for (int k = 0; k < c->count; k++) {
        const int64_t bytes = (int64_t)rapt_dtype_size(c->dtypes[k]);
        data[k] = single[k] = memory[k];
        dense[k] = bytes;
        strides[k] = steps[k] * bytes;
        for (int i = 0; k > 0 && i < longest; i++)
            put(data[k] + i * strides[k], c->dtypes[k], numbers[(i * k + turn * (2 * k + 1)) % number_count]);
    }
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < c->count; k++) single[k] = (k ? data[k] : expected) + i * strides[k];
        c->loop(1, single, dense, c->options);
    }
    c->loop(count, data, strides, c->options);
    const int64_t bytes = (int64_t)rapt_dtype_size(c->dtypes[0]);
    for (int64_t at = 0; at + bytes <= room; at += bytes)
        if (!is_same(memory[0] + at, expected + at, c->dtypes[0])) return false;
    return true;
}

static void expect_each_alone(const loop_case *c)
{
    static const int counts[] = {0, 1, 7, longest}, out_steps[] = {1, widest_step}, in_steps[] = {0, 1, widest_step};
    const int layouts = c->count == 1 ? 2 : c->count == 2 ? 6 : c->count == 3 ? 18 : 54;
    for (int layout = 0; layout < layouts; layout++)
        for (int i = 0; i < 4; i++)
            for (int turn = 0; turn < 13; turn += 4) {
                const int steps[operands] = {out_steps[layout % 2], in_steps[layout / 2 % 3], in_steps[layout / 6 % 3],
                                             in_steps[layout / 18]};
                cr_expect(gives_each_alone(c, counts[i], steps, turn),
                          "%s of %s: %d elements, %d, %d, %d and %d apart, numbers %d", c->name,
                          rapt_dtype_name(c->dtypes[c->count - 1]), counts[i], steps[0], steps[1], steps[2], steps[3],
                          turn);
            }
}

/* Of all dtypes that it has: so many operands, each of that dtype, but the output of the other one unless that is
 * RAPT_DTYPE_COUNT. */
static void try_loops(const char *name, const rapt_loops *loops, int count, rapt_dtype out)
{
    for (rapt_dtype dtype = 0; dtype < RAPT_DTYPE_COUNT; dtype++) {
        if (!(*loops)[dtype]) continue;
        const loop_case c = {name,
                             (*loops)[dtype],
                             count,
                             {out == RAPT_DTYPE_COUNT ? dtype : out, dtype, dtype, dtype},
                             option};
        expect_each_alone(&c);
    }
}

Test(loops, arithmetic)
{
#define X(name) try_loops(#name, &rapt_kernel.elementwise.name, 3, RAPT_DTYPE_COUNT);
    RAPT_BINARY_KERNELS(X)
    X(share)
    X(add_scaled)
    X(logical_and)
    X(logical_or)
#undef X
#define X(name) try_loops(#name, &rapt_kernel.elementwise.name, 2, RAPT_DTYPE_COUNT);
    X(logical_not)
    X(scale)
    X(shift)
#undef X
}

Test(loops, comparisons)
{
#define X(name) try_loops(#name, &rapt_kernel.elementwise.name, 3, RAPT_BOOL);
    RAPT_COMPARE_KERNELS(X)
#undef X
}

Test(loops, conversions)
{
    for (rapt_dtype to = 0; to < RAPT_DTYPE_COUNT; to++)
        try_loops(rapt_dtype_name(to), &rapt_kernel.elementwise.cast[to], 2, to);
}

Test(loops, functions)
{
#define X(name) try_loops(#name, &rapt_kernel.unary.name, 2, RAPT_DTYPE_COUNT);
#define BACKWARD(name) try_loops(#name "_backward", &rapt_kernel.unary.name##_backward, 3, RAPT_DTYPE_COUNT);
#define FUNCTION(name, ...) X(name)
#define FUSED(name, ...)                                                                                               \
    X(name)                                                                                                            \
    BACKWARD(name)
#define FUSED_STEPS(name, ...)                                                                                         \
    X(name)                                                                                                            \
    BACKWARD(name)
#define STEPS(name, ...) X(name)
#define WAVE FUNCTION
#include "tensor/functions.def"
    X(square)
    X(cube)
    X(reciprocal)
    X(power)
    X(clamp)
    X(leaky_relu)
    X(elu)
    BACKWARD(leaky_relu)
    BACKWARD(elu)
    X(weight)
    BACKWARD(clamp)
    BACKWARD(scaled_relu)
#undef X
#undef BACKWARD
}

Test(loops, losses)
{
    try_loops("bce_with_logits", &rapt_kernel.loss.bce_with_logits, 3, RAPT_DTYPE_COUNT);
    try_loops("kl_div", &rapt_kernel.loss.kl_div, 3, RAPT_DTYPE_COUNT);
    try_loops("mse", &rapt_kernel.loss.mse, 3, RAPT_DTYPE_COUNT);
    try_loops("huber", &rapt_kernel.loss.huber, 3, RAPT_DTYPE_COUNT);
    try_loops("square_slope", &rapt_kernel.loss.square_slope, 4, RAPT_DTYPE_COUNT);
}

Test(loops, choices_and_fills)
{
    for (rapt_dtype dtype = 0; dtype < RAPT_DTYPE_COUNT; dtype++) {
        const loop_case where = {"where",
                                 rapt_kernel.elementwise.where[dtype],
                                 4,
                                 {dtype, RAPT_BOOL, dtype, dtype},
                                 NULL};
        expect_each_alone(&where);
        const loop_case fill = {"fill", rapt_kernel.elementwise.fill[dtype], 1, {dtype}, option};
        expect_each_alone(&fill);
    }
}

/* --- updates, which change what they read --- */

enum { most_changed = 5 };

/* What updates go by, whatever they call them. */
static const double rates[16] = {0.47, 0.31, 0.53, 0.61, 0.37, 0.71, 0.43, 0.59, 0.67, 0.41};

/* With the bit of an operand set in `apart`, its elements are apart. */
static bool updates_each_alone(rapt_loop *loop, const void *options, int count_of_operands, rapt_dtype dtype,
                               unsigned apart, int count)
{
    _Alignas(64) char memory[most_changed][room] = {{0}}, expected[most_changed][room];
    char *data[most_changed] = {NULL}, *single[most_changed] = {NULL};
    int64_t strides[most_changed] = {0}, dense[most_changed] = {0};
    for (int k = 0; k < count_of_operands; k++) {
        dense[k] = (int64_t)rapt_dtype_size(dtype);
        strides[k] = (apart >> k & 1 ? widest_step : 1) * dense[k];
        data[k] = memory[k];
        for (int i = 0; i < longest; i++) put(data[k] + i * strides[k], dtype, numbers[(i + 3 * k) % number_count]);
    }
    memcpy(expected, memory, sizeof expected);
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < count_of_operands; k++) single[k] = expected[k] + i * strides[k];
        loop(1, single, dense, options);
    }
    loop(count, data, strides, options);
    for (int k = 0; k < count_of_operands; k++)
        for (int64_t at = 0; at + dense[k] <= room; at += dense[k])
            if (!is_same(memory[k] + at, expected[k] + at, dtype)) return false;
    return true;
}

static void try_updates(const char *name, const rapt_loops *loops, const void *options, int count_of_operands)
{
    for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++)
        for (unsigned apart = 0; apart < 1u << count_of_operands; apart++)
            for (int count = 0; count <= longest; count += longest / 2)
                cr_expect(updates_each_alone((*loops)[dtype], options, count_of_operands, dtype, apart, count),
                          "%s of %s: %d elements, apart: %#x", name, rapt_dtype_name(dtype), count, apart);
}

Test(loops, updates)
{
    const rapt_optimizer_kernels *all = &rapt_kernel.optimizer;
    for (int nesterov = 0; nesterov < 2; nesterov++) {
        const rapt_sgd_numbers sgd = {rates[0], rates[1], rates[2], rates[3], nesterov};
        try_updates("sgd", &all->sgd, &sgd, 2);
        try_updates("sgd_momentum", &all->sgd_momentum, &sgd, 3);
    }
    try_updates("adam", &all->adam, rates, 4);
    for (int centered = 0; centered < 2; centered++)
        for (int momentum = 0; momentum < 2; momentum++)
            try_updates("rmsprop", &all->rmsprop[centered][momentum], rates, 3 + centered + momentum);
    try_updates("adagrad", &all->adagrad, rates, 3);
    try_updates("lion", &all->lion, rates, 3);
    try_updates("move", &all->move, rates, 2);
    try_updates("average", &all->average, rates, 2);
}

/* Folds so many rows of so many elements, with one number at one place that no other is beyond, or NaN. */
static bool finds_extreme(const rapt_fold *fold, rapt_dtype dtype, int rows, int columns, int place, double number)
{
    const int64_t bytes = (int64_t)rapt_dtype_size(dtype);
    _Alignas(64) static char data[room];
    double of_rows[longest], of_columns[longest];
    for (int i = 0; i < rows * columns; i++) put(data + i * bytes, dtype, i == place ? number : i % 7 - 3);
    for (int i = 0; i < longest; i++) of_rows[i] = of_columns[i] = fold->number;
    fold->rows[dtype](rows, columns * bytes, columns, bytes, data, of_rows, NULL);
    fold->columns[dtype](columns, bytes, rows, columns * bytes, data, of_columns, NULL);
    const double row = of_rows[place / columns], column = of_columns[place % columns];
    return isnan(number) ? isnan(row) && isnan(column) : row == number && column == number;
}

Test(loops, extremes)
{
    const rapt_fold *folds[] = {&rapt_kernel.reduce.max, &rapt_kernel.reduce.min};
    for (int k = 0; k < 4; k++) {
        const rapt_dtype dtype = k % 2 ? RAPT_FLOAT64 : RAPT_FLOAT32;
        for (int columns = 1; columns < longest; columns += columns < 40 ? 1 : 11) {
            for (int rows = 1; rows < 10 && rows * columns * 8 <= room; rows += 2) {
                for (int place = 0; place < rows * columns; place++) {
                    const bool found = finds_extreme(folds[k / 2], dtype, rows, columns, place, k / 2 ? -5 : 5) &&
                                       finds_extreme(folds[k / 2], dtype, rows, columns, place, (double)NAN);
                    cr_assert(found, "dtype %d, fold %d: %d × %d, place %d", dtype, k / 2, rows, columns, place);
                }
            }
        }
    }
}
