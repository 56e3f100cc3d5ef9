/* Recomputation: the same bits as without it, whatever the function does; what the graph holds; and each wrong use. */
#include <criterion/criterion.h>
#include <pthread.h>

#include <rapt.h>

#include "expect.h"

#include "tensor/memory.h"

enum { size = 4 };

static int64_t live_bytes(void)
{
    return rapt_memory_get_statistics().live_bytes;
}

static rapt_tensor *total(rapt_tensor *x)
{
    return rapt_sum(x, RAPT_ALL_AXES, false);
}

/* What the function finds without being handed it: a parameter, and the result of an op. */
static rapt_tensor *weight, *result;
static int calls;

/* x + y · dropout(tanh(x W + r)), r in use twice */
static rapt_tensor *layer(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    calls++;
    rapt_tensor *inner = rapt_tanh(rapt_add(rapt_matmul(inputs[0], weight), result));
    return rapt_add(rapt_mul(inputs[0], result), rapt_mul(inputs[1], rapt_drop(inner, 0.3)));
}

static rapt_tensor *recomputed(rapt_tensor *const *inputs, void *context)
{
    return rapt_recompute(layer, 2, inputs, context, NULL);
}

static rapt_tensor *nested(rapt_tensor *const *inputs, void *context)
{
    rapt_tensor *x = rapt_recompute(recomputed, 2, inputs, context, NULL);
    return layer((rapt_tensor *[]){x, inputs[1]}, context);
}

static rapt_tensor *twice_nested(rapt_tensor *const *inputs, void *context)
{
    return rapt_recompute(nested, 2, inputs, context, NULL);
}

static rapt_tensor *plain(rapt_tensor *const *inputs, void *context)
{
    return layer((rapt_tensor *[]){layer(inputs, context), inputs[1]}, context);
}

static void expect_bits(const char *what, const rapt_tensor *a, const rapt_tensor *b)
{
    cr_assert(a && b, "%s: %s", what, rapt_error());
    cr_expect(memcmp(rapt_data(a), rapt_data(b), sizeof(double) * (size_t)rapt_count(a)) == 0, "%s differs", what);
}

static rapt_tensor *random_leaf(void)
{
    return rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(size, size)));
}

/* Three layers one after the other over one y, then <z, z>: gradients of w, r's maker, x, y. */
static void differentiate(rapt_gradcheck_function *function, rapt_tensor *const leaves[4], bool by_backward,
                          rapt_tensor *results[5], rapt_random_state *after)
{
    rapt_seed(5);
    weight = leaves[0];
    result = rapt_mul_scalar(leaves[1], 0.5);
    rapt_tensor *z = rapt_mul_scalar(leaves[2], 2);
    for (int i = 0; i < 3; i++) z = function((rapt_tensor *[]){z, leaves[3]}, NULL);
    results[4] = z;
    *after = rapt_random_get_state();
    rapt_tensor *loss = total(rapt_mul(z, z));
    if (by_backward) {
        cr_assert(rapt_backward(loss), "%s", rapt_error());
        for (int i = 0; i < 4; i++) results[i] = rapt_clone(rapt_gradient(leaves[i]));
        for (int i = 0; i < 4; i++) rapt_clear_gradient(leaves[i]);
    } else {
        cr_assert(rapt_gradients(1, &loss, NULL, 4, leaves, results, RAPT_RETAIN_GRAPH), "%s", rapt_error());
        cr_assert(rapt_gradients(1, &loss, NULL, 4, leaves, results, 0), "%s", rapt_error());
    }
    cr_expect_eq(rapt_random_get_state().offset, after->offset);
}

Test(recompute, gives_the_same_bits)
{
    RAPT_SCOPE;
    rapt_seed(1);
    static const char *const names[] = {"weight", "what the result is of", "x", "y", "z"};
    rapt_tensor *const leaves[] = {random_leaf(), random_leaf(), random_leaf(), random_leaf()};
    rapt_gradcheck_function *const functions[] = {plain, twice_nested};
    for (int by_backward = 0; by_backward < 2; by_backward++) {
        rapt_tensor *results[2][5];
        rapt_random_state after[2];
        for (int k = 0; k < 2; k++) differentiate(functions[k], leaves, by_backward, results[k], &after[k]);
        for (int i = 0; i < 5; i++) expect_bits(names[i], results[0][i], results[1][i]);
        cr_expect_eq(after[0].offset, after[1].offset);
    }
    expect_no_error();
}

static rapt_tensor *of_all(rapt_tensor *const *inputs, void *context)
{
    weight = inputs[2];
    result = rapt_tanh(inputs[3]);
    return twice_nested(inputs, context);
}

Test(recompute, derivatives_of_both_orders)
{
    RAPT_SCOPE;
    rapt_seed(2);
    rapt_tensor *const inputs[] = {random_leaf(), random_leaf(), random_leaf(), random_leaf()};
    for (int second = 0; second < 2; second++) {
        const rapt_gradcheck_options options = {.second_order = second};
        const rapt_gradcheck_result r = rapt_gradcheck("recompute", of_all, 4, inputs, &options);
        cr_expect(r.passed, "%s", r.message);
    }
}

/* --- what is held, and for how long --- */

static int freed;

static void count_free(void *context)
{
    freed += *(int *)context;
}

Test(recompute, frees_its_context_once)
{
    rapt_seed(4);
    int one = 1;
    calls = 0;
    for (int way = 0; way < 4; way++) {
        RAPT_SCOPE;
        rapt_tensor *inputs[] = {random_leaf(), random_leaf()};
        weight = random_leaf();
        result = random_leaf();
        freed = calls = 0;
        const bool before = rapt_set_recording(way != 0);
        if (way == 1) rapt_seed(1), inputs[1] = NULL;
        {
            RAPT_SCOPE;
            rapt_tensor *z = rapt_recompute(layer, 2, inputs, &one, count_free);
            cr_expect_eq(freed, way < 2);
            cr_expect_eq(calls, way != 1);
            if (way == 3) cr_expect(rapt_backward(total(z)));
            if (way == 3) cr_expect_eq(freed, 1);
        }
        cr_expect_eq(freed, 1, "way %d: %d", way, freed);
        rapt_set_recording(before);
        rapt_clear_error();
    }
}

Test(recompute, is_only_the_call_where_nobody_wants_a_gradient)
{
    RAPT_SCOPE;
    int one = 1;
    rapt_tensor *const inputs[] = {rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 2)), rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(1))};
    weight = result = inputs[0];
    freed = 0;
    rapt_tensor *z = rapt_recompute(layer, 2, inputs, &one, count_free);
    cr_expect(z && !rapt_requires_gradient(z));
    cr_expect_eq(freed, 1);
}

Test(recompute, keeps_the_inputs_alone)
{
    enum { length = 8, elements = (1 << 17) - 1024 };
    const int64_t bytes = elements * (int64_t)sizeof(double);
    const int64_t before = live_bytes();
    {
        RAPT_SCOPE;
        rapt_tensor *y = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(1));
        weight = rapt_require_gradient(rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(1, 1)));
        result = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(1));
        rapt_tensor *z = rapt_require_gradient(rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(elements, 1)));
        rapt_memory_reset_peak();
        for (int i = 0; i < length; i++) z = recomputed((rapt_tensor *[]){z, y}, NULL);
        cr_assert(z, "%s", rapt_error());
        const int64_t held = live_bytes() - before, peak = rapt_memory_get_statistics().peak_bytes - before;
        cr_expect(held < (length + 2) * bytes, "%lld bytes", (long long)held);
        cr_expect(peak < (length + 8) * bytes, "%lld bytes", (long long)peak);
        rapt_tensor *loss = total(z);
        rapt_memory_reset_peak();
        cr_expect(rapt_backward(loss), "%s", rapt_error());
        const int64_t most = rapt_memory_get_statistics().peak_bytes - before;
        cr_expect(most < (length + 10) * bytes, "%lld bytes", (long long)most);
    }
    cr_expect_eq(live_bytes(), before);
}

static rapt_tensor *run_once(void)
{
    rapt_seed(9);
    rapt_tensor *x = random_leaf(), *y = random_leaf();
    weight = random_leaf();
    result = rapt_tanh(x);
    rapt_tensor *z = twice_nested((rapt_tensor *[]){x, y}, NULL);
    return z && rapt_backward(total(z)) ? rapt_clone(rapt_gradient(x)) : NULL;
}

Test(recompute, running_out_of_memory_is_an_error_in_either_run)
{
    RAPT_SCOPE;
    rapt_tensor *expected = run_once();
    const int64_t before = live_bytes();
    int failures = 0;
    for (int after = 0;; after++) {
        RAPT_SCOPE;
        rapt_memory_fail_after(after);
        rapt_tensor *gradient = run_once();
        rapt_memory_fail_after(-1);
        if (gradient) {
            expect_bits("gradient", gradient, expected);
            expect_no_error();
            break;
        }
        cr_assert_eq(rapt_error_get_code(), RAPT_ERROR_MEMORY, "after %d: %s", after, rapt_error());
        rapt_clear_error();
        cr_expect(rapt_is_recording() && !rapt_is_recomputing());
        failures++;
    }
    cr_expect_gt(failures, 20);
    cr_expect_eq(live_bytes(), before);
}

static void *go_backward(void *loss)
{
    rapt_seed(77);
    const bool good = rapt_backward(loss) && rapt_random_get_state().seed == 77 && !rapt_random_get_state().offset;
    return good ? loss : NULL;
}

Test(recompute, backward_in_another_thread)
{
    RAPT_SCOPE;
    rapt_tensor *expected = run_once();
    pthread_t thread;
    void *good;
    rapt_seed(9);
    rapt_tensor *x = random_leaf(), *y = random_leaf();
    weight = random_leaf();
    result = rapt_tanh(x);
    rapt_tensor *loss = total(twice_nested((rapt_tensor *[]){x, y}, NULL));
    pthread_create(&thread, NULL, go_backward, loss);
    pthread_join(thread, &good);
    cr_assert(good);
    expect_bits("gradient", rapt_gradient(x), expected);
}

/* --- wrong uses --- */

/* What to do wrong in which call. */
typedef enum fault {
    gives_nothing,
    fails,
    gives_another_shape,
    gives_another_dtype,
    gives_other_numbers,
    depends_on_another,
    depends_on_less
} fault;
static fault wrong;
static int wrong_call;
static rapt_tensor *other;

static rapt_tensor *faulty(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    rapt_tensor *y = rapt_mul(rapt_tanh(inputs[0]), weight);
    if (++calls != wrong_call) return y;
    cr_expect_eq(rapt_is_recomputing(), calls == 2);
    switch (wrong) {
    case gives_nothing:
        return NULL;
    case fails:
        return rapt_reshape(y, RAPT_SHAPE(7));
    case gives_another_shape:
        return rapt_unsqueeze(y, 0);
    case gives_another_dtype:
        return rapt_cast(y, RAPT_FLOAT32);
    case gives_other_numbers:
        return rapt_mul_scalar(y, 1 + 1e-15);
    case depends_on_another:
        return rapt_add(y, rapt_mul_scalar(other, 0));
    case depends_on_less:
        return rapt_mul(rapt_tanh(inputs[0]), rapt_detach(weight));
    }
    return NULL;
}

static rapt_tensor *run_faulty(fault how, int call, rapt_tensor *x)
{
    wrong = how;
    wrong_call = call;
    calls = 0;
    rapt_tensor *y = rapt_recompute(faulty, 1, &x, NULL, NULL);
    return y ? total(y) : NULL;
}

Test(recompute, names_what_a_function_does_wrong)
{
    RAPT_SCOPE;
    rapt_tensor *x = random_leaf();
    weight = random_leaf();
    other = random_leaf();
    cr_expect_null(run_faulty(gives_nothing, 1, x));
    expect_error(RAPT_ERROR_VALUE, "the function failed without a reason");
    cr_expect_null(run_faulty(fails, 1, x));
    expect_error(RAPT_ERROR_SHAPE, "reshape");
    static const struct {
        rapt_error_code code;
        const char *says;
    } expected[] = {[gives_nothing] = {RAPT_ERROR_VALUE, "failed without a reason"},
                    [fails] = {RAPT_ERROR_SHAPE, "reshape"},
                    [gives_another_shape] = {RAPT_ERROR_SHAPE, "gave shape [1, 4, 4] as output 0, and [4, 4] the"},
                    [gives_another_dtype] = {RAPT_ERROR_DTYPE, "gave float32 as output 0, and float64 the first"},
                    [gives_other_numbers] = {RAPT_ERROR_GRAPH, "gave other numbers than the first time"},
                    [depends_on_another] = {RAPT_ERROR_GRAPH, "depend on other tensors"},
                    [depends_on_less] = {RAPT_ERROR_GRAPH, "depend on other tensors"}};
    for (fault how = gives_nothing; how <= depends_on_less; how++) {
        rapt_tensor *loss = run_faulty(how, 2, x);
        cr_assert(loss, "%s", rapt_error());
        cr_expect_not(rapt_backward(loss), "fault %d", how);
        expect_error(expected[how].code, expected[how].says);
        cr_expect(!rapt_gradient(x) && rapt_is_recording() && !rapt_is_recomputing());
    }
}

Test(recompute, names_a_change_in_place)
{
    RAPT_SCOPE;
    rapt_tensor *x = random_leaf();
    weight = random_leaf();
    for (int changed = 0; changed < 2; changed++) {
        rapt_tensor *y = rapt_mul_scalar(x, 1), *loss = run_faulty(fails, 0, y);
        rapt_tensor *to_change = changed ? weight : rapt_detach(y);
        cr_assert(rapt_fill(to_change, 1), "%s", rapt_error());
        cr_expect_not(rapt_backward(loss));
        expect_error(RAPT_ERROR_GRAPH, "recompute: a tensor that the function reads was changed in place");
    }
}

Test(recompute, names_wrong_arguments)
{
    RAPT_SCOPE;
    rapt_tensor *inputs[RAPT_MAX_SAVED + 1] = {rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2)), NULL};
    cr_expect_null(rapt_recompute(NULL, 1, inputs, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "recompute: the function is NULL");
    cr_expect_null(rapt_recompute(layer, 2, inputs, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "input 1 is NULL");
    cr_expect_null(rapt_recompute(layer, 2, NULL, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "the list of inputs is NULL");
    cr_expect_null(rapt_recompute(layer, RAPT_MAX_SAVED + 1, inputs, NULL, NULL));
    expect_error(RAPT_ERROR_VALUE, "inputs; 0 to");
}
