/* Memory of others: seen where it lies, given back once, and never changed but on demand. */
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#ifndef _WIN32
#include <sys/wait.h>
#endif

#include <rapt.h>

#include "expect.h"
#include "tensor/core.h"
#include "tensor/debug.h"
#include "tensor/memory.h"

static int released;

static void count_release(void *owner)
{
    released += *(int *)owner;
}

static int one = 1;

static rapt_tensor *wrap(rapt_dtype dtype, int rank, const int64_t *shape, const int64_t *strides, void *data)
{
    return rapt_wrap(dtype, rank, shape, strides, data, count_release, &one);
}

Test(wrap, the_elements_lie_where_they_lay)
{
    RAPT_SCOPE;
    double numbers[2][3] = {{1, 2, 3}, {4, 5, 6}};
    rapt_tensor *x = wrap(RAPT_FLOAT64, RAPT_SHAPE(2, 3), NULL, numbers);
    cr_expect_eq(rapt_data(x), numbers);
    cr_expect(rapt_is_contiguous(x));
    cr_expect(rapt_scale_in_place(x, 2));
    cr_expect_eq(numbers[1][2], 12);
    numbers[0][0] = 7;
    cr_expect_eq(rapt_at(x, (int64_t[]){0, 0}), 7);
    cr_expect_eq(rapt_item(rapt_sum(x, RAPT_ALL_AXES, false)), 47);
    expect_no_error();
}

/* Rows of a wider array, whose rest is NaN; columns first; and every other element. */
Test(wrap, strides_count_elements)
{
    RAPT_SCOPE;
    float wide[3][4] = {{1, 2, NAN, NAN}, {3, 4, NAN, NAN}, {5, 6, NAN, NAN}};
    rapt_tensor *rows = wrap(RAPT_FLOAT32, RAPT_SHAPE(3, 2), (int64_t[]){4, 1}, wide);
    rapt_tensor *columns = wrap(RAPT_FLOAT32, RAPT_SHAPE(2, 3), (int64_t[]){1, 4}, wide);
    rapt_tensor *others = wrap(RAPT_FLOAT32, RAPT_SHAPE(2), (int64_t[]){8}, &wide[0][1]);
    cr_expect_not(rapt_is_contiguous(rows));
    cr_expect_eq(rapt_stride(columns, 1), 4);
    const double products[2][2] = {{35, 44}, {44, 56}};
    rapt_tensor *product = rapt_matmul(columns, rows);
    for (int64_t i = 0; i < 4; i++) cr_expect_eq(rapt_at(product, (int64_t[]){i / 2, i % 2}), products[i / 2][i % 2]);
    cr_expect_eq(rapt_at(others, (int64_t[]){1}), 6);
    cr_expect(rapt_fill(rows, 0));
    cr_expect_eq(wide[2][1], 0);
    cr_expect(isnan(wide[2][2]), "what lies between the rows was written");
    expect_no_error();
}

Test(wrap, strides_of_axes_of_size_1_say_nothing)
{
    RAPT_SCOPE;
    float numbers[] = {1, 2, 3};
    rapt_tensor *x = wrap(RAPT_FLOAT32, RAPT_SHAPE(1, 3, 1), (int64_t[]){-77, 1, INT64_MIN}, numbers);
    cr_expect(rapt_is_contiguous(x));
    cr_expect_eq(rapt_stride(x, 0), 3);
    cr_expect_eq(rapt_stride(x, 2), 1);
    cr_expect_eq(rapt_item(rapt_sum(x, RAPT_ALL_AXES, false)), 6);
    expect_no_error();
}

Test(wrap, a_stride_of_0_repeats_and_is_only_read)
{
    RAPT_SCOPE;
    float numbers[] = {1, 2, 3};
    rapt_tensor *x = wrap(RAPT_FLOAT32, RAPT_SHAPE(4, 3), (int64_t[]){0, 1}, numbers);
    cr_expect_eq(rapt_item(rapt_sum(x, RAPT_ALL_AXES, false)), 24);
    cr_expect_not(rapt_fill(x, 0));
    expect_error(RAPT_ERROR_SHAPE, "axis 0 of the tensor is expanded");
    cr_expect_eq(numbers[0], 1);
}

Test(wrap, nothing_needs_no_memory)
{
    released = 0;
    {
        RAPT_SCOPE;
        rapt_tensor *x = wrap(RAPT_FLOAT32, RAPT_SHAPE(2, 0), (int64_t[]){-1, INT64_MAX}, NULL);
        cr_expect_eq(rapt_count(x), 0);
        cr_expect_eq(rapt_item(rapt_sum(x, RAPT_ALL_AXES, false)), 0);
        cr_expect_not_null(rapt_data(x));
        expect_no_error();
    }
    cr_expect_eq(released, 1);
}

Test(wrap, the_last_reader_gives_the_memory_back)
{
    float numbers[] = {1, 2, 3, 4};
    released = 0;
    rapt_tensor *leaf = rapt_retain(rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2))));
    rapt_tensor *y, *row;
    {
        RAPT_SCOPE;
        rapt_tensor *x = wrap(RAPT_FLOAT32, RAPT_SHAPE(2, 2), NULL, numbers);
        row = rapt_retain(rapt_slice(x, 0, 1, 2, 1));
        y = rapt_retain(rapt_sum(rapt_mul(x, leaf), RAPT_ALL_AXES, false));
    }
    cr_expect_eq(released, 0, "a view and a graph still read it");
    rapt_release(row);
    cr_expect_eq(released, 0, "a graph still reads it");
    cr_expect(rapt_backward(y));
    cr_expect_eq(released, 1);
    cr_expect_eq(rapt_at(rapt_gradient(leaf), (int64_t[]){1}), 6);
    rapt_release(y);
    rapt_release(leaf);
    cr_expect_eq(released, 1);
    expect_no_error();
}

Test(wrap, without_a_release_the_memory_is_left_alone)
{
    static const float constants[] = {1, 2};
    RAPT_SCOPE;
    cr_expect_eq(rapt_item(rapt_sum(rapt_wrap_read_only(RAPT_FLOAT32, RAPT_SHAPE(2), NULL, constants, NULL, NULL),
                                    RAPT_ALL_AXES, false)),
                 3);
    expect_no_error();
}

static const char *const changes[] = {"fill", "copy", "add_in_place", "scale_in_place", "data_for_writing", "set_at"};

static bool change(int which, rapt_tensor *x)
{
    switch (which) {
    case 0:
        return rapt_fill(x, 1);
    case 1:
        return rapt_copy(x, rapt_ones(RAPT_FLOAT32, 0, NULL));
    case 2:
        return rapt_add_in_place(x, rapt_ones(RAPT_FLOAT32, 0, NULL), 1);
    case 3:
        return rapt_scale_in_place(x, 3);
    case 4:
        return rapt_data_for_writing(x);
    default:
        return rapt_set_at(x, (int64_t[]){0, 0}, 1);
    }
}

Test(wrap, read_only_memory_is_not_changed)
{
    static const float numbers[2][2] = {{1, 2}, {3, 4}}; /* a write would be a segmentation fault */
    RAPT_SCOPE;
    rapt_tensor *x = rapt_wrap_read_only(RAPT_FLOAT32, RAPT_SHAPE(2, 2), NULL, numbers, NULL, NULL);
    for (int i = 0; i < 6; i++) {
        cr_expect_not(change(i, i % 2 ? rapt_transpose(x, 0, 1) : x), "%s", changes[i]);
        expect_error(RAPT_ERROR_VALUE, "memory that may only be read");
    }
    cr_expect_eq(rapt_version(x), 0);
    cr_expect(rapt_fill(rapt_clone(x), 5));
    expect_no_error();
}

/* An optimizer's step and a load, too, find out before they write. */
Test(wrap, a_parameter_in_read_only_memory_is_not_trained)
{
    static const float weights[1][2] = {{1, 2}};
    RAPT_SCOPE;
    rapt_linear *linear = rapt_linear_new(2, 1, RAPT_NO_BIAS);
    rapt_tensor *there = rapt_wrap_read_only(RAPT_FLOAT32, RAPT_SHAPE(1, 2), NULL, weights, NULL, NULL);
    rapt_exchange(linear->weight, there); /* and the leaf's link */
    rapt_require_gradient(linear->weight);
    rapt_optimizer *sgd = rapt_sgd_new(&linear->module, &(rapt_sgd_config){.learning_rate = 1});
    cr_expect(rapt_backward(
        rapt_sum(rapt_linear_forward(linear, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 2))), RAPT_ALL_AXES, false)));
    cr_expect_not(rapt_optimizer_step(sgd));
    expect_error(RAPT_ERROR_VALUE, "memory that may only be read");
    cr_expect_eq(rapt_optimizer_get_steps(sgd), 0);
    rapt_optimizer_free(sgd);
    rapt_module_free(&linear->module);
}

#define REFUSED(code, part, ...)                                                                                       \
    do {                                                                                                               \
        cr_expect_null(wrap(__VA_ARGS__));                                                                             \
        expect_error(code, part);                                                                                      \
    } while (0)

Test(wrap, bad_input_is_refused_and_stays_the_callers)
{
    _Alignas(8) char bytes[64] = {0};
    released = 0;
    RAPT_SCOPE;
    REFUSED(RAPT_ERROR_NULL, "wrap: data is NULL", RAPT_FLOAT32, RAPT_SHAPE(2), NULL, NULL);
    REFUSED(RAPT_ERROR_NULL, "wrap: shape is NULL", RAPT_FLOAT32, 1, NULL, NULL, bytes);
    REFUSED(RAPT_ERROR_VALUE, "float32 expects a multiple of 4 bytes", RAPT_FLOAT32, RAPT_SHAPE(2), NULL, bytes + 2);
    REFUSED(RAPT_ERROR_VALUE, "float64 expects a multiple of 8 bytes", RAPT_FLOAT64, 0, NULL, NULL, bytes + 4);
    REFUSED(RAPT_ERROR_DTYPE, "17 is not a dtype", (rapt_dtype)17, RAPT_SHAPE(2), NULL, bytes);
    REFUSED(RAPT_ERROR_SHAPE, "size -2 of axis 1 is negative", RAPT_UINT8, RAPT_SHAPE(2, -2), NULL, bytes);
    REFUSED(RAPT_ERROR_SHAPE, "rank 9", RAPT_UINT8, 9, (int64_t[9]){0}, NULL, bytes);
    REFUSED(RAPT_ERROR_MEMORY, TOO_MANY_BYTES, RAPT_INT32, RAPT_SHAPE(1LL << 40, 1 << 30), NULL, bytes);
    REFUSED(RAPT_ERROR_VALUE, "stride -1 of axis 0 is negative", RAPT_UINT8, RAPT_SHAPE(4), ((int64_t[]){-1}), bytes);
    REFUSED(RAPT_ERROR_VALUE, "stride 1 of axis 0 is smaller than the 3 elements", RAPT_UINT8, RAPT_SHAPE(4, 3),
            ((int64_t[]){1, 1}), bytes);
    REFUSED(RAPT_ERROR_VALUE, "stride 2 of axis 0 is smaller than the 3 elements", RAPT_UINT8, RAPT_SHAPE(4, 3),
            ((int64_t[]){2, 1}), bytes);
    REFUSED(RAPT_ERROR_VALUE, "stride 3 of axis 0 is smaller than the 5 elements", RAPT_UINT8, RAPT_SHAPE(2, 3),
            ((int64_t[]){3, 2}), bytes);
    REFUSED(RAPT_ERROR_VALUE, "leads beyond all memory", RAPT_UINT8, RAPT_SHAPE(3), ((int64_t[]){INT64_MAX}), bytes);
    REFUSED(RAPT_ERROR_VALUE, "leads beyond all memory", RAPT_FLOAT64, RAPT_SHAPE(3), ((int64_t[]){1LL << 60}), bytes);
    cr_expect_null(rapt_wrap_read_only(RAPT_FLOAT32, RAPT_SHAPE(2), NULL, NULL, count_release, &one));
    expect_error(RAPT_ERROR_NULL, "wrap_read_only: data is NULL");
    cr_expect_eq(released, 0);
}

Test(wrap, running_out_of_memory_leaves_it_to_the_caller)
{
    float numbers[] = {1, 2};
    int failures = 0;
    released = 0;
    const int64_t before = rapt_memory_get_statistics().live_bytes;
    for (bool done = false; !done; failures++) {
        RAPT_SCOPE;
        rapt_memory_fail_after(failures);
        done = wrap(RAPT_FLOAT32, RAPT_SHAPE(2), NULL, numbers);
        rapt_memory_fail_after(-1);
        cr_expect_eq(released, 0);
        if (!done) expect_error(RAPT_ERROR_MEMORY, "no memory");
        if (!done) cr_expect_eq(rapt_memory_get_statistics().live_bytes, before);
    }
    cr_expect_gt(failures, 2);
    cr_expect_eq(released, 1);
}

Test(wrap, changes_are_noticed_by_backward)
{
    RAPT_SCOPE;
    double number = 3;
    rapt_tensor *x = rapt_require_gradient(rapt_scalar(RAPT_FLOAT64, 2));
    rapt_tensor *factor = wrap(RAPT_FLOAT64, 0, NULL, NULL, &number), *y = rapt_mul(x, factor);
    cr_expect_not_null(rapt_data_for_writing(factor));
    number = 4;
    cr_expect_not(rapt_backward(y));
    expect_error(RAPT_ERROR_GRAPH, "mul");
}

/* Engine and vjps reuse gradients that nobody else sees; memory of others is seen by them. */
Test(wrap, a_gradient_in_memory_of_others_is_not_overwritten)
{
    RAPT_SCOPE;
    float numbers[] = {1, 2, 3};
    rapt_tensor *x = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3)));
    for (int round = 0; round < 2; round++) {
        rapt_tensor *y = rapt_add(rapt_mul_scalar(rapt_tanh(x), 2), rapt_neg(x));
        rapt_tensor *gradient = wrap(RAPT_FLOAT32, RAPT_SHAPE(3), NULL, numbers);
        rapt_scope inner = rapt_scope_begin();
        cr_expect(rapt_backward_from(1, &y, &gradient, 0));
        cr_expect(rapt_own_gradient(x) && rapt_scale_in_place(rapt_gradient(x), 0.5));
        rapt_scope_end(inner);
    }
    rapt_tensor *y = rapt_reshape(x, RAPT_SHAPE(3, 1)), *gradient = wrap(RAPT_FLOAT32, RAPT_SHAPE(3, 1), NULL, numbers);
    rapt_clear_gradient(x);
    cr_expect(rapt_backward_from(1, &y, &gradient, 0) && rapt_own_gradient(x) && rapt_fill(rapt_gradient(x), 9));
    cr_expect(numbers[0] == 1 && numbers[1] == 2 && numbers[2] == 3);
    expect_no_error();
}

static float numbers_of_others[] = {1, 2, 3};

static rapt_tensor *copy_forward(rapt_call *call)
{
    return rapt_clone(rapt_call_input(call, 0));
}

static bool give_numbers_of_others(rapt_call *call)
{
    return rapt_call_give(call, 0, wrap(RAPT_FLOAT32, RAPT_SHAPE(3), NULL, numbers_of_others));
}

/* The engine alone has a share of it, and it is still others' memory. */
Test(wrap, what_an_op_gives_in_memory_of_others_is_not_overwritten)
{
    static const rapt_op op = {.name = "of_others", .forward = copy_forward, .vjp = give_numbers_of_others};
    RAPT_SCOPE;
    rapt_tensor *x = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3)));
    for (int round = 0; round < 3; round++) {
        RAPT_SCOPE;
        rapt_tensor *inner = round < 2 ? x : rapt_tanh(x);
        cr_expect(rapt_backward(rapt_sum(RAPT_APPLY(&op, NULL, inner), RAPT_ALL_AXES, false)), "%s", rapt_error());
        cr_expect(rapt_own_gradient(x) && rapt_scale_in_place(rapt_gradient(x), 5));
    }
    for (int i = 0; i < 3; i++) cr_expect_eq(numbers_of_others[i], (float)(i + 1));
    expect_no_error();
}

/* The same memory through two storages. */
Test(wrap, copies_between_overlapping_wraps_read_first)
{
    RAPT_SCOPE;
    int32_t numbers[] = {1, 2, 3, 4, 5};
    rapt_tensor *from = wrap(RAPT_INT32, RAPT_SHAPE(4), NULL, numbers);
    rapt_tensor *to = wrap(RAPT_INT32, RAPT_SHAPE(4), NULL, numbers + 1);
    cr_expect(rapt_copy(to, from));
    for (int i = 0; i < 5; i++) cr_expect_eq(numbers[i], i > 0 ? i : 1);
    float square[] = {1, 2, 3, 4};
    rapt_tensor *rows = wrap(RAPT_FLOAT32, RAPT_SHAPE(2, 2), NULL, square);
    rapt_tensor *columns = wrap(RAPT_FLOAT32, RAPT_SHAPE(2, 2), (int64_t[]){1, 2}, square);
    cr_expect(rapt_add_in_place(rows, columns, 1));
    cr_expect(square[0] == 2 && square[1] == 5 && square[2] == 5 && square[3] == 8);
    int64_t room[64];
    rapt_tensor *narrow = wrap(RAPT_INT32, RAPT_SHAPE(64), NULL, room);
    cr_expect(rapt_copy(narrow, rapt_arange(RAPT_INT32, 0, 64, 1)));
    cr_expect(rapt_copy(wrap(RAPT_INT64, RAPT_SHAPE(64), NULL, room), narrow));
    for (int i = 0; i < 64; i++) cr_expect_eq(room[i], i);
    expect_no_error();
}

static void *drop(void *tensor)
{
    rapt_release(tensor);
    return NULL;
}

Test(wrap, another_thread_may_be_the_last)
{
    float number = 1;
    released = 0;
    rapt_tensor *x;
    {
        RAPT_SCOPE;
        x = rapt_retain(wrap(RAPT_FLOAT32, RAPT_SHAPE(1), NULL, &number));
    }
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, drop, x), 0);
    pthread_join(thread, NULL);
    cr_expect_eq(released, 1);
}

#ifndef _WIN32 /* which has no forks */
/* A child drops its own copy; the parent's memory and its release are untouched by that. */
Test(wrap, a_forked_child_releases_its_copy)
{
    float number = 1;
    released = 0;
    const rapt_scope scope = rapt_scope_begin();
    rapt_tensor *x = wrap(RAPT_FLOAT32, RAPT_SHAPE(1), NULL, &number);
    const pid_t child = fork();
    if (child == 0) {
        const bool good = rapt_fill(x, 2) && number == 2;
        rapt_scope_end(scope);
        _exit(good && released == 1 ? 0 : 1);
    }
    int status = -1;
    cr_assert(child > 0 && waitpid(child, &status, 0) == child);
    cr_expect_eq(status, 0);
    cr_expect(released == 0 && rapt_item(x) == 1);
    rapt_scope_end(scope);
    cr_expect_eq(released, 1);
}
#endif

/* Its release gives other tensors back, in the middle of a scope's end. */
static void release_tensor(void *tensor)
{
    rapt_release(tensor);
}

Test(wrap, a_release_may_give_tensors_back)
{
    float numbers[] = {1, 2};
    released = 0;
    {
        RAPT_SCOPE;
        rapt_tensor *inner = rapt_retain(wrap(RAPT_FLOAT32, RAPT_SHAPE(2), NULL, numbers));
        rapt_wrap(RAPT_FLOAT32, RAPT_SHAPE(2), NULL, numbers, release_tensor, inner);
    }
    cr_expect_eq(released, 1);
}

Test(wrap, the_debugging_mode_fills_no_memory_of_others)
{
    float numbers[] = {1, 2};
    rapt_debugging = true;
    rapt_tensor *x;
    {
        RAPT_SCOPE;
        x = wrap(RAPT_FLOAT32, RAPT_SHAPE(2), NULL, numbers);
    }
    cr_expect(numbers[0] == 1 && numbers[1] == 2);
    cr_expect_null(rapt_data(x));
    expect_error(RAPT_ERROR_GONE, "made by wrap");
}
