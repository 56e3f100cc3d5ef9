/* What attention takes of memory, and what it does where there is none. */
#ifndef RAPT_TESTS_ATTENTION_MEMORY_H
#define RAPT_TESTS_ATTENTION_MEMORY_H

#include "fused_dot.h"

/* Forward and backward of a subject take less than a byte for so many pairs of a query and a key of one item; float32
 * scores take four bytes for one. */
static inline void expect_less_than_a_byte_for(int64_t pairs, const subject *s)
{
    const int64_t before = live_bytes(), batch = rapt_size(s->queries, 0);
    const int64_t most = batch * rapt_size(s->queries, -2) * rapt_size(s->keys, -2) / pairs;
    rapt_memory_reset_peak();
    differentiate(s);
    const int64_t extra = rapt_memory_get_statistics().peak_bytes - before;
    cr_expect(extra < most, "%lld bytes; less than %lld expected", (long long)extra, (long long)most);
}

/* A layer that keeps weights then keeps some that are in no graph. */
static inline void forget_graph(const subject *s)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    cr_assert_not_null(pool(s), "%s", rapt_error());
}

/* Pooling and the gradient of one tensor, with the allocator failing from its first, second, … block on. */
static inline void expect_errors_without_memory(const subject *s, rapt_tensor *tensor)
{
    forget_graph(s);
    const int64_t before = live_bytes();
    int64_t failures = 0;
    for (bool done = false; !done; failures++) {
        rapt_scope scope = rapt_scope_begin();
        rapt_memory_fail_after(failures);
        rapt_tensor *root = rapt_sum(pool(s), RAPT_ALL_AXES, false), *gradient;
        done = root && rapt_gradients(1, &root, NULL, 1, &tensor, &gradient, 0);
        rapt_memory_fail_after(-1);
        if (!done) expect_error(RAPT_ERROR_MEMORY, "no memory");
        rapt_scope_end(scope);
        forget_graph(s);
        cr_expect(live_bytes() == before, "%lld bytes leak after failure %lld", (long long)(live_bytes() - before),
                  (long long)failures);
    }
    cr_expect_gt(failures, 10);
}

#endif
