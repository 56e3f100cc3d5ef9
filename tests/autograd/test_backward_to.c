/* rapt_backward_to: the gradient of each leaf is handed over once, when it is complete. */
#include "gpt.h"

enum { most = 8 };

typedef struct taken {
    int count, fails_at; /* from 1 on; 0: never */
    rapt_tensor *leaves[most];
    double first[most]; /* the first element of each gradient */
} taken;

static bool take(void *context, rapt_tensor *leaf, rapt_tensor *gradient)
{
    taken *t = context;
    if (t->count == most) return rapt_fail(RAPT_ERROR_VALUE, "take", "more than %d gradients", most);
    t->leaves[t->count] = leaf;
    t->first[t->count] = rapt_at(gradient, (int64_t[]){0});
    t->count++;
    cr_expect_null(rapt_gradient(leaf));
    return t->count != t->fails_at;
}

static rapt_tensor *leaf(double value)
{
    return rapt_require_gradient(rapt_full(RAPT_FLOAT64, RAPT_SHAPE(3), value));
}

static rapt_tensor *total(rapt_tensor *x)
{
    return rapt_sum(x, RAPT_ALL_AXES, false);
}

/* y = Σ (a · b + a) · c: c is complete first, b and a in one visit, a after its other use. */
Test(backward_to, a_leaf_comes_when_its_last_use_was_visited)
{
    RAPT_SCOPE;
    rapt_tensor *a = leaf(2), *b = leaf(3), *c = leaf(5);
    rapt_tensor *y = total(rapt_mul(rapt_add(rapt_mul(a, b), a), c));
    taken t = {0};
    cr_assert(rapt_backward_to(1, &y, NULL, 0, take, &t), "%s", rapt_error());
    cr_assert_eq(t.count, 3);
    cr_expect_eq(t.leaves[0], c);
    cr_expect_float_eq(t.first[0], 8, 1e-12);
    for (int i = 1; i < t.count; i++)
        cr_expect_float_eq(t.first[i], t.leaves[i] == a ? 20 : 10, 1e-12, "%s", t.leaves[i] == a ? "a" : "b");
    cr_expect_neq(t.leaves[1], t.leaves[2]);
    cr_expect_null(rapt_gradient(a));
    cr_expect_null(rapt_gradient(c));
}

Test(backward_to, what_no_gradient_reaches_never_comes)
{
    RAPT_SCOPE;
    rapt_tensor *a = leaf(2), *b = leaf(3), *frozen = rapt_full(RAPT_FLOAT64, RAPT_SHAPE(3), 1);
    rapt_tensor *y = total(rapt_add(rapt_mul(rapt_detach(rapt_mul(b, b)), a), frozen));
    taken t = {0};
    cr_assert(rapt_backward_to(1, &y, NULL, 0, take, &t), "%s", rapt_error());
    cr_assert_eq(t.count, 1);
    cr_expect_eq(t.leaves[0], a);
    cr_expect_float_eq(t.first[0], 9, 1e-12);
}

Test(backward_to, a_root_that_is_a_leaf_comes_too)
{
    RAPT_SCOPE;
    rapt_tensor *a = leaf(2), *given = rapt_full(RAPT_FLOAT64, RAPT_SHAPE(3), 7), *y = rapt_mul_scalar(a, 3);
    taken alone = {0}, twice = {0};
    cr_assert(rapt_backward_to(1, &a, &given, 0, take, &alone), "%s", rapt_error());
    cr_assert_eq(alone.count, 1);
    cr_expect_float_eq(alone.first[0], 7, 1e-12);
    cr_assert(rapt_backward_to(2, (rapt_tensor *[]){a, y}, (rapt_tensor *[]){given, given}, 0, take, &twice), "%s",
              rapt_error());
    cr_assert_eq(twice.count, 1);
    cr_expect_float_eq(twice.first[0], 28, 1e-12);
}

static rapt_tensor *squared(rapt_tensor *const *inputs, void *context)
{
    return rapt_mul(rapt_mul(inputs[0], inputs[0]), context);
}

/* The leaf that the function finds in its context is used outside of it, too. */
Test(backward_to, recomputed_parts_are_waited_for)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(2), *w = leaf(5);
    rapt_tensor *h = rapt_recompute(squared, 1, &x, w, NULL), *y = total(rapt_mul(h, w));
    taken t = {0};
    cr_assert(rapt_backward_to(1, &y, NULL, 0, take, &t), "%s", rapt_error());
    cr_assert_eq(t.count, 2);
    for (int i = 0; i < 2; i++) cr_expect_float_eq(t.first[i], t.leaves[i] == x ? 100 : 40, 1e-12);
}

Test(backward_to, a_graph_that_is_retained_is_walked_again)
{
    RAPT_SCOPE;
    rapt_tensor *a = leaf(2), *y = total(rapt_mul(a, a));
    taken t = {0};
    for (int i = 0; i < 2; i++) cr_assert(rapt_backward_to(1, &y, NULL, i ? 0 : RAPT_RETAIN_GRAPH, take, &t));
    cr_assert_eq(t.count, 2);
    cr_expect_float_eq(t.first[0], 4, 1e-12);
    cr_expect_float_eq(t.first[1], 4, 1e-12);
    cr_expect_not(rapt_backward_to(1, &y, NULL, 0, take, &t));
    expect_error(RAPT_ERROR_GRAPH, "freed by an earlier backward");
}

Test(backward_to, a_function_that_fails_ends_the_walk)
{
    RAPT_SCOPE;
    rapt_tensor *a = leaf(2), *b = leaf(3), *y = total(rapt_mul(rapt_exp(a), b));
    taken t = {.fails_at = 1};
    cr_expect_not(rapt_backward_to(1, &y, NULL, 0, take, &t));
    expect_error(RAPT_ERROR_VALUE, "backward_to: the function that takes gradients failed without a reason");
    cr_expect_eq(t.count, 1);
    cr_expect_not(rapt_backward_to(1, &y, NULL, 0, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "the function that takes gradients");
}

static rapt_tensor *last_root;

static bool give_back_the_root(void *context, rapt_tensor *leaf, rapt_tensor *gradient)
{
    (void)context, (void)leaf, (void)gradient;
    rapt_release(last_root);
    rapt_memory_trim();
    return rapt_fail(RAPT_ERROR_VALUE, "take", "no");
}

/* The sanitizer sees who reads it then. */
Test(backward_to, a_function_that_fails_may_give_the_root_back)
{
    RAPT_SCOPE;
    rapt_tensor *a = leaf(2);
    {
        RAPT_SCOPE;
        last_root = rapt_retain(total(rapt_mul(a, a)));
    }
    rapt_tensor *roots[] = {last_root};
    cr_expect_not(rapt_backward_to(1, roots, NULL, 0, give_back_the_root, NULL));
    expect_error(RAPT_ERROR_VALUE, "take: no");
}

/* A whole model, ties and all: the same bits as those of rapt_backward, each parameter once. */
typedef struct sums {
    rapt_tensor_list *parameters;
    rapt_tensor *gradients[64];
} sums;

static bool keep_sum(void *context, rapt_tensor *leaf, rapt_tensor *gradient)
{
    sums *s = context;
    for (int i = 0; i < s->parameters->count; i++)
        if (s->parameters->tensors[i] == leaf) {
            cr_expect_null(s->gradients[i], "%s comes twice", s->parameters->names[i]);
            s->gradients[i] = rapt_retain(gradient);
            return true;
        }
    return rapt_fail(RAPT_ERROR_VALUE, "keep_sum", "a leaf that is no parameter");
}

Test(backward_to, a_model_gets_the_bits_of_backward)
{
    RAPT_SCOPE;
    rapt_gpt *gpt = drawn_gpt(&tiny);
    rapt_tensor *tokens = random_tokens(2, 8), *targets = random_tokens(2, 8);
    sums s = {.parameters = rapt_module_list(&gpt->module, RAPT_PARAMETERS)};
    for (int way = 0; way < 2; way++) {
        rapt_tensor *loss = rapt_gpt_loss(gpt, tokens, targets, NULL);
        cr_assert(way ? rapt_backward(loss) : rapt_backward_to(1, &loss, NULL, 0, keep_sum, &s), "%s", rapt_error());
    }
    for (int i = 0; i < s.parameters->count; i++) {
        rapt_tensor *expected = rapt_gradient(s.parameters->tensors[i]);
        cr_assert(expected && s.gradients[i], "%s", s.parameters->names[i]);
        cr_expect_eq(rapt_item(rapt_all(rapt_equal(expected, s.gradients[i]), RAPT_ALL_AXES, false)), 1, "%s",
                     s.parameters->names[i]);
        rapt_release(s.gradients[i]);
    }
    rapt_tensor_list_free(s.parameters);
    rapt_module_free(&gpt->module);
}
