/* What the graph holds and when it gives it back; and that a long chain of ops needs no stack. */
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include <rapt.h>

#include "expect.h"

#include "tensor/core.h"

/* One statement in a scope of its own. */
#define IN_SCOPE(statement)                                                                                            \
    do {                                                                                                               \
        RAPT_SCOPE;                                                                                                    \
        statement;                                                                                                     \
    } while (0)

static int64_t live_bytes(void)
{
    return rapt_memory_get_statistics().live_bytes;
}

/* Replaces *y by a result, so that nobody but the graph holds the tensors in between. */
static bool advance(rapt_tensor **y, rapt_tensor *next)
{
    rapt_retain(next);
    rapt_release(*y);
    *y = next;
    return next != NULL;
}

Test(autograd_memory, backward_frees_as_it_walks)
{
    enum { length = 40, size = (1 << 18) - 1024 }; /* a block of 1 MiB */
    const int64_t bytes = size * (int64_t)sizeof(float);
    int64_t before = live_bytes();
    {
        RAPT_SCOPE;
        rapt_tensor *x = rapt_require_gradient(rapt_full(RAPT_FLOAT32, RAPT_SHAPE(size), 0.5)), *y = rapt_retain(x);
        for (int i = 0; i < length; i++) IN_SCOPE(cr_assert(advance(&y, rapt_tanh(y))));
        IN_SCOPE(cr_assert(advance(&y, rapt_sum(y, RAPT_ALL_AXES, false))));
        int64_t forward = live_bytes();
        cr_expect(forward - before > (length + 1) * bytes && forward - before < (length + 3) * bytes + bytes / 2,
                  "%lld bytes hold %d outputs of %lld", (long long)(forward - before), length, (long long)bytes);
        rapt_memory_reset_peak();
        cr_expect(rapt_backward(y), "%s", rapt_error());
        int64_t peak = rapt_memory_get_statistics().peak_bytes;
        cr_expect(peak - forward < 2 * bytes, "backward needs %lld bytes more", (long long)(peak - forward));
        cr_expect(live_bytes() - before < 3 * bytes, "%lld bytes are left: more than the leaf and its gradient",
                  (long long)(live_bytes() - before));
        rapt_release(y);
    }
    cr_expect_eq(live_bytes(), before);
}

static rapt_tensor *first_forward(rapt_call *call)
{
    return rapt_clone(rapt_call_input(call, 0));
}

static bool first_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_call_gradient(call, 0));
}

static const rapt_op first_of_two = {.name = "first_of_two", .forward = first_forward, .vjp = first_vjp};

/* The elements of a tensor that a node saved. */
static rapt_tensor *watched;

/* The identity; its gradient looks whether that node is still there. */
static bool watching_vjp(rapt_call *call)
{
    cr_expect_not(rapt_is_unique(watched), "a node that is still to be visited is gone");
    return first_vjp(call);
}

static const rapt_op watching = {.name = "watching", .forward = first_forward, .vjp = watching_vjp};

/* x, and behind it an exponential and a hyperbolic tangent that no gradient reaches: the one is left before the
 * gradient of `watching` looks, the other after that. */
static rapt_tensor *watched_chain(rapt_tensor *x)
{
    rapt_tensor *tangent = rapt_tanh(x), *first = RAPT_APPLY(&watching, NULL, x);
    watched = rapt_retain(rapt_detach(tangent));
    return RAPT_APPLY(&first_of_two, NULL, first, rapt_exp(tangent));
}

/* Nodes that the walk has claimed, that only a used node held, and that no gradient reaches: kept until they are
 * visited, and then given back. */
Test(autograd_memory, what_no_gradient_reaches_is_given_back_too)
{
    const int64_t before = live_bytes();
    for (int i = 0; i < 3; i++) {
        RAPT_SCOPE;
        rapt_tensor *x = rapt_require_gradient(rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(5))), *y = rapt_retain(x);
        IN_SCOPE(cr_assert(advance(&y, watched_chain(y))));
        IN_SCOPE(cr_assert(advance(&y, rapt_sum(y, RAPT_ALL_AXES, false))));
        cr_expect(rapt_backward_from(1, &y, NULL, i == 1 ? RAPT_RETAIN_GRAPH : 0), "%s", rapt_error());
        cr_expect_eq(rapt_at(rapt_gradient(x), (int64_t[]){4}), 1);
        cr_expect_eq(rapt_is_unique(watched), i != 1, "the graph is kept only where that was wished");
        rapt_release(y);
        cr_expect(rapt_is_unique(watched));
        rapt_release(watched);
    }
    cr_expect_eq(live_bytes(), before);
}

Test(autograd_memory, a_graph_that_is_never_walked_goes_with_its_root)
{
    int64_t before = live_bytes();
    for (int i = 0; i < 3; i++) {
        RAPT_SCOPE;
        rapt_tensor *x = rapt_require_gradient(rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(5)));
        rapt_tensor *y = rapt_softmax(rapt_mul(rapt_exp(x), x), 0);
        if (i == 1)
            cr_expect(
                rapt_backward_from(1, (rapt_tensor *[]){rapt_sum(y, RAPT_ALL_AXES, false)}, NULL, RAPT_RETAIN_GRAPH));
    }
    cr_expect_eq(live_bytes(), before);
}

/* With create_graph a leaf's gradient has a graph that reaches the leaf: a cycle, unless the graph holds no
 * gradient. */
Test(autograd_memory, create_graph_makes_no_cycle_that_leaks)
{
    int64_t before = live_bytes();
    for (int i = 0; i < 4; i++) {
        RAPT_SCOPE;
        rapt_tensor *x = rapt_require_gradient(rapt_full(RAPT_FLOAT64, RAPT_SHAPE(5), 0.3));
        rapt_tensor *y = rapt_sum(rapt_tanh(rapt_mul(x, rapt_exp(x))), RAPT_ALL_AXES, false);
        cr_expect(rapt_backward_from(1, &y, NULL, RAPT_CREATE_GRAPH), "%s", rapt_error());
        if (i == 1) cr_expect(rapt_backward(rapt_sum(rapt_gradient(x), RAPT_ALL_AXES, false)), "%s", rapt_error());
        if (i == 2) rapt_clear_gradient(x);
        if (i == 3)
            cr_expect(
                rapt_backward_from(1, (rapt_tensor *[]){rapt_sum(rapt_mul(rapt_gradient(x), x), RAPT_ALL_AXES, false)},
                                   NULL, RAPT_CREATE_GRAPH));
    }
    cr_expect_eq(live_bytes(), before);
}

typedef rapt_tensor *chain_op(rapt_tensor *x, int64_t i);

static rapt_tensor *mixed_op(rapt_tensor *x, int64_t i)
{
    return i % 2 ? rapt_mul_scalar(x, i % 4 == 1 ? 2 : 0.5) : rapt_add_scalar(x, 1e-6);
}

static rapt_tensor *saving_op(rapt_tensor *x, int64_t i)
{
    (void)i;
    return rapt_sin(x);
}

typedef struct chain {
    int64_t length;
    chain_op *op;
    int flags;
    bool walk;
    double gradient; /* what came out */
    char error[256];
} chain;

static void *run_chain(void *context)
{
    chain *c = context;
    RAPT_SCOPE;
    rapt_tensor *x = rapt_require_gradient(rapt_full(RAPT_FLOAT64, RAPT_SHAPE(1), 0.5)), *y = rapt_retain(x);
    bool good = x != NULL;
    for (int64_t i = 0; i < c->length && good; i++) IN_SCOPE(good = advance(&y, c->op(y, i)));
    if (good && c->walk) good = rapt_backward_from(1, &y, NULL, c->flags);
    if (good && c->walk) c->gradient = rapt_at(rapt_gradient(x), (const int64_t[]){0});
    rapt_release(y);
    if (!good) snprintf(c->error, sizeof c->error, "%s", rapt_error());
    return NULL;
}

/* Runs the chain in a thread with a stack of 256 KiB; what it leaves behind must be nothing. */
static void run_with_small_stack(chain *c)
{
    int64_t before = live_bytes();
    pthread_attr_t attributes;
    pthread_t thread;
    cr_assert_eq(pthread_attr_init(&attributes), 0);
    cr_assert_eq(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
    cr_assert_eq(pthread_create(&thread, &attributes, run_chain, c), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
    cr_expect_eq(c->error[0], 0, "%s", c->error);
    cr_expect_eq(live_bytes(), before, "%lld bytes leak", (long long)(live_bytes() - before));
}

Test(autograd_memory, a_chain_of_a_million_ops_needs_no_stack)
{
    chain c = {.length = 1000000, .op = mixed_op, .walk = true};
    run_with_small_stack(&c);
    cr_expect_eq(c.gradient, 1);
}

Test(autograd_memory, a_chain_of_a_million_ops_is_freed_without_backward)
{
    chain c = {.length = 1000000, .op = mixed_op};
    run_with_small_stack(&c);
}

Test(autograd_memory, a_long_chain_with_a_graph_of_its_gradient_is_freed)
{
    chain c = {.length = 100000, .op = saving_op, .flags = RAPT_CREATE_GRAPH, .walk = true};
    run_with_small_stack(&c);
    double x = 0.5, slope = 1;
    for (int64_t i = 0; i < c.length; i++, x = sin(x)) slope *= cos(x);
    cr_expect_float_eq(c.gradient / slope, 1, 1e-9);
}
