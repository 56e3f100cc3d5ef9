/* Products with Jacobians and Hessians, and whole Jacobians, of functions whose derivatives are known. */
#include "modules.h"

#include <rapt/autograd.h>

static rapt_tensor *leaf(int64_t count)
{
    return rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(count)));
}

static rapt_tensor *total(rapt_tensor *x)
{
    return rapt_sum(x, RAPT_ALL_AXES, false);
}

/* y = A tanh(x) + x ∘ z with a constant A (3, 3); its derivative by x along t is A (1 − tanh²) t + t ∘ z. */
typedef struct example {
    rapt_tensor *a, *x, *z, *y;
} example;

static example new_example(void)
{
    rapt_seed(3);
    example e = {.a = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(3, 3)), .x = leaf(3), .z = leaf(3)};
    e.y = rapt_add(rapt_reshape(rapt_matmul(e.a, rapt_reshape(rapt_tanh(e.x), RAPT_SHAPE(3, 1))), RAPT_SHAPE(3)),
                   rapt_mul(e.x, e.z));
    return e;
}

static void expect_near(const char *what, rapt_tensor *actual, rapt_tensor *expected, double tolerance)
{
    cr_assert(actual && expected, "%s: %s", what, rapt_error());
    expect_values(what, actual, rapt_count(expected), values_of(expected), tolerance);
}

static rapt_tensor *along(const example *e, rapt_tensor *t)
{
    rapt_tensor *tanh = rapt_tanh(rapt_detach(e->x)), *slope = rapt_sub(rapt_ones_like(tanh), rapt_mul(tanh, tanh));
    rapt_tensor *product = rapt_matmul(e->a, rapt_reshape(rapt_mul(slope, t), RAPT_SHAPE(3, 1)));
    return rapt_add(rapt_reshape(product, RAPT_SHAPE(3)), rapt_mul(t, rapt_detach(e->z)));
}

Test(derivatives, jvp_is_the_change_along_the_tangents)
{
    RAPT_SCOPE;
    const example e = new_example();
    rapt_tensor *t = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(3)), *s = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(3)), *results[2];
    rapt_tensor *roots[] = {e.y, rapt_exp(e.z)}, *inputs[] = {e.x, e.z}, *tangents[] = {t, NULL}, *both[] = {t, s};
    cr_assert(rapt_jvp(2, roots, 2, inputs, tangents, results, 0), "%s", rapt_error());
    expect_near("along x", results[0], along(&e, t), 1e-15);
    cr_expect_null(results[1], "exp z does not depend on x");
    cr_expect_not(rapt_requires_gradient(results[0]));
    cr_assert(rapt_jvp(2, roots, 2, inputs, both, results, 0), "%s", rapt_error());
    expect_near("along both", results[0], rapt_add(along(&e, t), rapt_mul(rapt_detach(e.x), s)), 1e-15);
    expect_near("of exp", results[1], rapt_mul(rapt_detach(roots[1]), s), 1e-15);
    rapt_tensor *middle = rapt_mul(e.x, e.x), *root = rapt_sin(middle);
    cr_assert(rapt_jvp(1, &root, 1, &middle, &t, results, 0), "%s", rapt_error());
    expect_near("of what is between", results[0], rapt_mul(rapt_cos(rapt_detach(middle)), t), 1e-15);
    cr_expect(!rapt_gradient(e.x) && !rapt_gradient(e.z));
    cr_expect(rapt_backward(total(e.y)), "the graph is whole: %s", rapt_error());
    expect_no_error();
}

static rapt_tensor *call_jvp(rapt_tensor *const *in, void *context)
{
    (void)context;
    rapt_tensor *y = rapt_mul(rapt_sin(in[0]), rapt_exp(in[1])), *result;
    return rapt_jvp(1, &y, 2, in, in + 2, &result, RAPT_CREATE_GRAPH) ? result : NULL;
}

static rapt_tensor *call_hvp(rapt_tensor *const *in, void *context)
{
    (void)context;
    rapt_tensor *root = total(rapt_mul(rapt_mul(rapt_sin(in[0]), rapt_exp(in[1])), in[0])), *results[2];
    return rapt_hvp(root, 2, in, in + 2, results, RAPT_CREATE_GRAPH) ? rapt_mul(results[0], results[1]) : NULL;
}

static rapt_tensor *call_jacobian(rapt_tensor *const *in, void *context)
{
    (void)context;
    return rapt_jacobian(rapt_mul(rapt_sin(in[0]), rapt_exp(in[1])), in[0], RAPT_CREATE_GRAPH);
}

Test(derivatives, results_with_a_graph_can_be_differentiated)
{
    rapt_gradcheck_function *const functions[] = {call_jvp, call_hvp, call_jacobian};
    for (int i = 0; i < 3; i++)
        for (int order = 1; order <= 2; order++) {
            RAPT_SCOPE;
            rapt_tensor *in[] = {leaf(3), leaf(3), leaf(3), leaf(3)};
            const rapt_gradcheck_options options = {.second_order = order == 2};
            const rapt_gradcheck_result r = rapt_gradcheck("product", functions[i], i == 2 ? 2 : 4, in, &options);
            cr_expect(r.passed, "%d, order %d: %s", i, order, r.message);
            expect_no_error();
        }
}

/* Of ½ xᵀ M x it is M's symmetric part. */
Test(derivatives, hvp_is_a_product_with_the_hessian)
{
    RAPT_SCOPE;
    rapt_tensor *m = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(4, 4)), *x = leaf(4), *linear = leaf(2), *v, *results[2];
    rapt_tensor *column = rapt_reshape(x, RAPT_SHAPE(4, 1));
    rapt_tensor *root = rapt_add(rapt_mul_scalar(total(rapt_mul(column, rapt_matmul(m, column))), 0.5), total(linear));
    rapt_tensor *symmetric = rapt_mul_scalar(rapt_add(m, rapt_transpose(m, 0, 1)), 0.5);
    v = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(4));
    rapt_tensor *inputs[] = {x, linear}, *vectors[] = {v, rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2))};
    cr_assert(rapt_hvp(root, 2, inputs, vectors, results, 0), "%s", rapt_error());
    expect_near("H v", results[0], rapt_matmul(symmetric, rapt_reshape(v, RAPT_SHAPE(4, 1))), 1e-14);
    cr_expect_null(results[1], "the root is linear in that");
    rapt_tensor *slope;
    cr_assert(rapt_gradients(1, &root, NULL, 1, &x, &slope, RAPT_CREATE_GRAPH));
    rapt_tensor *hessian = rapt_jacobian(slope, x, 0);
    expect_shape(hessian, RAPT_SHAPE(4, 4));
    expect_near("Hessian", hessian, symmetric, 1e-14);
    cr_expect(!rapt_requires_gradient(hessian) && !rapt_gradient(x));
    cr_expect(rapt_backward(root), "the graph is whole: %s", rapt_error());
    expect_no_error();
}

Test(derivatives, jacobian_has_the_axes_of_both)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 3))), *other = leaf(2);
    rapt_tensor *y = rapt_sum(rapt_mul(x, x), RAPT_AXES(1), false), *j = rapt_jacobian(y, x, 0);
    expect_shape(j, RAPT_SHAPE(2, 2, 3));
    for (int64_t i = 0; i < 12; i++) {
        const int64_t at[] = {i / 6, i / 3 % 2, i % 3};
        cr_expect_float_eq(rapt_at(j, at), at[0] == at[1] ? 2 * rapt_at(x, at + 1) : 0, 1e-15);
    }
    expect_shape(rapt_jacobian(total(x), x, 0), RAPT_SHAPE(2, 3));
    cr_expect_eq(rapt_item(total(rapt_jacobian(y, other, 0))), 0);
    rapt_tensor *none = rapt_slice(y, 0, 0, 0, 1);
    expect_shape(rapt_jacobian(none, x, 0), RAPT_SHAPE(0, 2, 3));
    rapt_tensor *empty = rapt_require_gradient(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(0, 2)));
    expect_shape(rapt_jacobian(rapt_sum(empty, RAPT_AXES(0), false), empty, 0), RAPT_SHAPE(2, 0, 2));
    rapt_tensor *tangent = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(0, 2)), *root = rapt_exp(empty), *result;
    cr_expect(rapt_jvp(1, &root, 1, &empty, &tangent, &result, 0), "%s", rapt_error());
    expect_shape(result, RAPT_SHAPE(0, 2));
    rapt_tensor *wide = rapt_cast(x, RAPT_FLOAT32);
    cr_expect_eq(rapt_get_dtype(rapt_jacobian(wide, x, 0)), RAPT_FLOAT64);
    expect_no_error();
}

/* As a power iteration has it: v = H v. */
Test(derivatives, results_may_take_the_place_of_vectors)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(3), *y = rapt_exp(x), *list[] = {rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(3))}, *once, *twice;
    rapt_tensor *v = list[0];
    cr_expect(rapt_hvp(total(rapt_exp(x)), 1, &x, &v, &once, 0) &&
              rapt_hvp(total(rapt_exp(x)), 1, &x, &once, &twice, 0));
    for (int i = 0; i < 2; i++) cr_expect(rapt_hvp(total(rapt_exp(x)), 1, &x, list, list, 0), "%s", rapt_error());
    cr_expect(list[0] && rapt_item(rapt_all(rapt_equal(list[0], twice), RAPT_ALL_AXES, false)) == 1);
    list[0] = v;
    cr_expect(rapt_jvp(1, &y, 1, &x, &v, &once, 0) && rapt_jvp(1, &y, 1, &x, list, list, 0), "%s", rapt_error());
    cr_expect(list[0] && rapt_item(rapt_all(rapt_equal(list[0], once), RAPT_ALL_AXES, false)) == 1);
    expect_no_error();
}

Test(derivatives, what_is_wrong_is_named)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(3), *y = rapt_exp(x), *t = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(3)), *result = x, *none = NULL;
    rapt_tensor *wrong = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2)), *single = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3)),
                *integer = rapt_zeros(RAPT_INT64, RAPT_SHAPE(3));
    cr_expect_not(rapt_jvp(1, &y, 1, &x, &wrong, &result, 0));
    expect_error(RAPT_ERROR_SHAPE, "jvp: tangents 0 is float64 [2], its input float64 [3]");
    cr_expect_null(result);
    cr_expect_not(rapt_jvp(1, &y, 1, &x, &single, &result, 0));
    expect_error(RAPT_ERROR_SHAPE, "float32");
    cr_expect_not(rapt_jvp(1, &y, 1, &none, &t, &result, 0));
    expect_error(RAPT_ERROR_NULL, "jvp: input 0 is NULL");
    cr_expect_not(rapt_jvp(1, &none, 1, &x, &t, &result, 0));
    expect_error(RAPT_ERROR_NULL, "jvp: root 0 is NULL");
    cr_expect_not(rapt_jvp(1, &integer, 1, &x, &t, &result, 0));
    expect_error(RAPT_ERROR_DTYPE, "jvp: root 0 is int64");
    cr_expect_not(rapt_jvp(1, &t, 1, &x, &t, &result, 0));
    expect_error(RAPT_ERROR_GRAPH, "jvp: the root");
    cr_expect_not(rapt_jvp(1, &y, 1, &x, NULL, &result, 0));
    expect_error(RAPT_ERROR_NULL, "tangents");
    cr_expect_not(rapt_jvp(1, NULL, 1, &x, &t, &result, 0));
    expect_error(RAPT_ERROR_NULL, "roots");
    cr_expect_not(rapt_jvp(-1, &y, 1, &x, &t, &result, 0));
    expect_error(RAPT_ERROR_VALUE, "-1 roots");
    cr_expect_not(rapt_hvp(y, 1, &x, &t, &result, 0));
    expect_error(RAPT_ERROR_SHAPE, "hvp: a root of shape [3]");
    cr_expect_not(rapt_hvp(NULL, 1, &x, &t, &result, 0));
    expect_error(RAPT_ERROR_NULL, "hvp: root is NULL");
    cr_expect_not(rapt_hvp(NULL, 1, &t, &t, &result, 0));
    expect_error(RAPT_ERROR_NULL, "hvp: root is NULL"); /* and not that t requires no gradient */
    cr_expect_not(rapt_hvp(total(y), 1, &x, &wrong, &result, 0));
    expect_error(RAPT_ERROR_SHAPE, "hvp: vectors 0");
    cr_expect_null(rapt_jacobian(rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(0)), x, 0));
    expect_error(RAPT_ERROR_GRAPH, "jacobian: the root (shape [0]) does not depend");
    cr_expect_null(rapt_jacobian(NULL, x, 0));
    expect_error(RAPT_ERROR_NULL, "jacobian: root");
    cr_expect_null(rapt_jacobian(y, NULL, 0));
    expect_error(RAPT_ERROR_NULL, "jacobian: input");
    cr_expect_null(rapt_jacobian(t, x, 0));
    expect_error(RAPT_ERROR_GRAPH, "jacobian: the root");
    rapt_tensor *deep = rapt_reshape(y, RAPT_SHAPE(1, 1, 1, 1, 1, 1, 1, 3));
    cr_expect_null(rapt_jacobian(deep, x, 0));
    expect_error(RAPT_ERROR_SHAPE, "8 axes");
    cr_expect(rapt_jvp(0, NULL, 1, &x, &t, NULL, 0) && rapt_hvp(total(y), 0, NULL, NULL, NULL, 0));
    expect_no_error();
}

/* What was computed from it is not known, and is not taken for zeros. */
Test(derivatives, by_what_requires_no_gradient_are_errors)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(3), *constant = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(3)), *t = rapt_ones_like(constant);
    rapt_tensor *indices, *sorted = rapt_sort(x, 0, false, &indices), *result = x;
    rapt_tensor *y = rapt_mul(sorted, constant), *root = total(rapt_mul(y, y)), *none = rapt_slice(y, 0, 0, 0, 1);
    rapt_tensor *inputs[] = {constant, rapt_detach(x), rapt_zeros(RAPT_INT64, RAPT_SHAPE(3)), indices};
    for (int i = 0; i < 4; i++) {
        rapt_tensor *pair[] = {x, inputs[i]}, *ones[] = {t, NULL}, *results[] = {x, x};
        const rapt_error_code code = i < 2 ? RAPT_ERROR_GRAPH : RAPT_ERROR_DTYPE;
        const char *text = i < 2 ? ", float64 [3], requires no gradient" : " is int64";
        cr_expect_null(rapt_jacobian(y, inputs[i], 0));
        expect_error(code, "jacobian: input 0");
        cr_expect_null(rapt_jacobian(none, inputs[i], 0));
        expect_error(code, text);
        cr_expect_not(rapt_gradients(1, &root, NULL, 2, pair, results, RAPT_RETAIN_GRAPH));
        cr_expect(!results[0] && !results[1]);
        expect_error(code, "gradients: input 1");
        cr_expect_not(rapt_jvp(1, &y, 2, pair, ones, &result, 0));
        cr_expect_null(result);
        expect_error(code, "jvp: input 1");
        cr_expect_not(rapt_hvp(root, 2, pair, ones, results, 0));
        expect_error(code, "hvp: input 1");
    }
    cr_expect_not(rapt_jvp(1, &y, 1, &constant, &t, &result, 0));
    expect_error(RAPT_ERROR_GRAPH, "call rapt_require_gradient before the root is computed");
    rapt_tensor *other = leaf(3);
    cr_expect(rapt_gradients(1, &root, NULL, 1, &other, &result, RAPT_RETAIN_GRAPH) && !result, "%s", rapt_error());
    cr_expect(rapt_jvp(1, &y, 1, &other, &t, &result, 0) && !result, "%s", rapt_error());
    cr_expect(rapt_backward(root), "the graph is whole: %s", rapt_error());
    expect_no_error();
}

/* A vjp that is not made of recorded ops is found, not taken for zeros. */
static rapt_tensor *square_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 0));
    return rapt_mul(rapt_call_input(call, 0), rapt_call_input(call, 0));
}

static bool raw_vjp(rapt_call *call)
{
    RAPT_NO_GRADIENT;
    return rapt_call_give(call, 0, rapt_mul(rapt_mul_scalar(rapt_call_gradient(call, 0), 2), rapt_call_saved(call, 0)));
}

Test(derivatives, a_vjp_without_a_graph_is_an_error)
{
    RAPT_SCOPE;
    static const rapt_op raw = {.name = "raw", .forward = square_forward, .vjp = raw_vjp};
    static const rapt_op defined = {.name = "defined",
                                    .forward = square_forward,
                                    .vjp = raw_vjp,
                                    .definition = square_forward};
    rapt_tensor *x = leaf(3), *t = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(3)), *y = RAPT_APPLY(&raw, NULL, x), *result;
    cr_expect_not(rapt_jvp(1, &y, 1, &x, &t, &result, 0));
    expect_error(RAPT_ERROR_GRAPH, "raw: its vjp did not make");
    y = RAPT_APPLY(&defined, NULL, x);
    cr_assert(rapt_jvp(1, &y, 1, &x, &t, &result, 0), "%s", rapt_error());
    expect_near("2 x t", result, rapt_mul_scalar(rapt_detach(x), 2), 1e-15);
}

static rapt_tensor *chain(rapt_tensor *const *in, void *context)
{
    (void)context;
    return rapt_tanh(rapt_mul(rapt_sin(in[0]), rapt_exp(in[1])));
}

/* What is computed again in backward has the same derivatives. */
Test(derivatives, of_what_is_recomputed)
{
    RAPT_SCOPE;
    rapt_tensor *in[] = {leaf(3), leaf(3)}, *vectors[] = {rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(3)), NULL};
    rapt_tensor *along[2], *products[2][2];
    for (int again = 0; again < 2; again++) {
        rapt_tensor *y = again ? rapt_recompute(chain, 2, in, NULL, NULL) : chain(in, NULL);
        cr_assert(rapt_jvp(1, &y, 2, in, vectors, &along[again], 0), "%s", rapt_error());
        cr_assert(rapt_hvp(total(rapt_mul(y, y)), 2, in, vectors, products[again], 0), "%s", rapt_error());
    }
    expect_near("J v", along[1], along[0], 1e-14);
    for (int i = 0; i < 2; i++) expect_near("H v", products[1][i], products[0][i], 1e-14);
    expect_no_error();
}

/* ½ x (1 + t) with t = tanh u, u = √(2/π) (x + 0.044715 x³), has (1 − t²) (u' + ½ x u'' − x t u'²), which has digits as
 * long as it is a number: 1 − t² = 1 / cosh² u. */
Test(derivatives, gelu_tanh_has_digits_far_out)
{
    static const double places[] = {-9, -5.9, -2, 0, 2, 5.9, 9};
    enum { count = sizeof places / sizeof *places };
    RAPT_SCOPE;
    rapt_tensor *x = rapt_require_gradient(rapt_from(RAPT_FLOAT64, RAPT_SHAPE(count), places)), *curve;
    rapt_tensor *y = total(rapt_gelu_tanh(x)), *ones = rapt_ones_like(x);
    cr_assert(rapt_hvp(y, 1, &x, &ones, &curve, 0), "%s", rapt_error());
    for (int i = 0; i < count; i++) {
        const double a = places[i], c = sqrt(2 / acos(-1)), u = c * (a + 0.044715 * a * a * a);
        const double first = c * (1 + 3 * 0.044715 * a * a), second = 6 * c * 0.044715 * a;
        const double expected = (first + a * second / 2 - a * tanh(u) * first * first) / (cosh(u) * cosh(u));
        cr_assert_float_eq(values_of(curve)[i], expected, 1e-13 * fabs(expected), "at %g: %g, not %g", a,
                           values_of(curve)[i], expected);
    }
}

/* What a single one gives. */
Test(derivatives, of_many_inputs_and_roots)
{
    enum { count = 2000 };
    RAPT_SCOPE;
    rapt_tensor *x[count], *v[count], *y[count], *curved[count], *along[count];
    for (int i = 0; i < count; i++) {
        x[i] = rapt_require_gradient(rapt_scalar(RAPT_FLOAT64, i));
        v[i] = rapt_scalar(RAPT_FLOAT64, i % 7);
        y[i] = rapt_sin(x[i]);
    }
    cr_assert(rapt_hvp(total(rapt_stack(count, y, 0)), count, x, v, curved, RAPT_RETAIN_GRAPH), "%s", rapt_error());
    cr_assert(rapt_jvp(count, y, count, x, v, along, 0), "%s", rapt_error());
    for (int i = 0; i < count; i++) {
        cr_assert_float_eq(rapt_item(curved[i]), -sin(i) * (i % 7), 1e-13, "input %d", i);
        cr_assert_float_eq(rapt_item(along[i]), cos(i) * (i % 7), 1e-13, "root %d", i);
    }
}

Test(derivatives, without_memory)
{
    RAPT_SCOPE;
    rapt_tensor *in[] = {leaf(3), leaf(3), leaf(3), leaf(3)};
    rapt_gradcheck_function *const functions[] = {call_jvp, call_hvp, call_jacobian};
    const int64_t before = live_bytes();
    for (int i = 0; i < 3; i++) {
        int64_t failures = 0;
        for (bool done = false; !done; failures++) {
            {
                RAPT_SCOPE;
                rapt_memory_fail_after(failures);
                done = functions[i](in, NULL) != NULL;
                rapt_memory_fail_after(-1);
                if (!done) expect_error(RAPT_ERROR_MEMORY, "no memory");
            }
            cr_assert_eq(live_bytes(), before, "bytes leak after failure %lld", (long long)failures);
        }
        cr_expect_gt(failures, 15);
    }
    expect_no_error();
}
