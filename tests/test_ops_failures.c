/* Every op of the table on bad input: an error that names the op, nothing lost, nothing left behind. */
#include <criterion/criterion.h>
#include <string.h>

#include "ops.h"
#include "tensor/debug.h"
#include "tensor/memory.h"

static int64_t live_bytes(void)
{
    return rapt_memory_get_statistics().live_bytes;
}

/* Errors come from the op itself. Layers may leave them to the ops that they are made of. */
static void expect_failure(const op_case *c, rapt_tensor *y, rapt_error_code code, const char *what)
{
    cr_expect(!y, "%s, %s: gives a result", c->name, what);
    cr_expect(rapt_error_get_code() == code, "%s, %s: error code %d, expected %d: %s", c->name, what,
              rapt_error_get_code(), code, rapt_error() ? rapt_error() : "no error");
    bool named = strcmp(rapt_error_get_op(), op_error_name(c->row)) == 0;
    cr_expect(named || (c->row->is_combined && c->sample->error == RAPT_OK),
              "%s, %s: the error does not name the op: %s", c->name, what, rapt_error() ? rapt_error() : "no error");
    rapt_clear_error();
}

static void expect_bad_input(const op_case *c, rapt_error_code code, const char *what)
{
    int64_t before = live_bytes();
    rapt_scope scope = rapt_scope_begin();
    expect_failure(c, op_case_call(c), code, what);
    rapt_scope_end(scope);
    cr_expect(live_bytes() == before, "%s, %s: %lld bytes leak", c->name, what, (long long)(live_bytes() - before));
}

Test(ops, bad_input)
{
    op_each_bad_input(expect_bad_input);
}

static void expect_standing(const op_case *c, rapt_error_code code, const char *what)
{
    (void)code;
    rapt_fail(RAPT_ERROR_FILE, "earlier", "an error that stands");
    cr_expect(!op_case_call(c) && rapt_error() && strcmp(rapt_error(), "earlier: an error that stands") == 0,
              "%s, %s, replaces the error that stands: %s", c->name, what, rapt_error() ? rapt_error() : "none");
    rapt_clear_error();
}

Test(ops, null_leaves_the_first_error_standing)
{
    op_each_null(expect_standing);
}

Test(ops, inputs_that_are_gone_are_named_in_the_debugging_mode)
{
    rapt_debugging = true;
    op_each_gone(expect_bad_input);
}

Test(ops, results_belong_to_the_scope)
{
    rapt_set_threads(1);
    EACH_OP(row)
    for (int i = 0; i < row->sample_count; i++) {
        if (row->samples[i].large) continue;
        RAPT_SCOPE;
        rapt_dtype dtype = op_dtype(row);
        op_case c = op_case_new(row, &row->samples[i], dtype, dense, row->differentiable && dtype == RAPT_FLOAT64);
        int64_t before = live_bytes();
        rapt_scope scope = rapt_scope_begin();
        cr_expect(op_case_call(&c));
        rapt_tensor *gradients[most_inputs];
        if (row->differentiable && dtype == RAPT_FLOAT64)
            cr_expect(op_case_gradients(&c, gradients), "%s: %s", c.name, rapt_error());
        rapt_scope_end(scope);
        cr_expect(live_bytes() == before, "%s: %lld bytes outlive the scope", c.name,
                  (long long)(live_bytes() - before));
        op_case_free(&c);
    }
}

/* Runs the case with the allocator failing from its n-th block on. */
static bool run_with_failure(const op_case *c, int64_t n, bool backward)
{
    RAPT_SCOPE;
    rapt_memory_fail_after(n);
    rapt_tensor *y = op_case_call(c);
    bool good = y != NULL;
    if (good && backward) {
        rapt_tensor *sum = rapt_sum(y, RAPT_ALL_AXES, false);
        good = sum && rapt_backward(sum);
    }
    rapt_memory_fail_after(-1);
    return good;
}

static void clear_gradients(const op_case *c)
{
    for (int i = 0; i < c->count; i++)
        if (c->inputs[i]) rapt_clear_gradient(c->inputs[i]);
}

Test(ops, out_of_memory)
{
    rapt_set_threads(1);
    EACH_OP(row)
    for (int i = 0; i < row->sample_count; i++) {
        if (row->samples[i].large) continue;
        enum { most = 1000 };
        RAPT_SCOPE;
        rapt_dtype dtype = op_dtype(row);
        bool backward = row->differentiable && dtype == RAPT_FLOAT64;
        op_case c = op_case_new(row, &row->samples[i], dtype, transposed, backward);
        int64_t before = live_bytes(), n = 0;
        for (; n < most && !run_with_failure(&c, n, backward); n++) {
            if (rapt_error_get_code() != RAPT_ERROR_MEMORY) n = most;
            cr_expect(rapt_error_get_code() == RAPT_ERROR_MEMORY, "%s, block %lld: error code %d: %s", c.name,
                      (long long)n, rapt_error_get_code(), rapt_error() ? rapt_error() : "no error");
            rapt_clear_error();
            clear_gradients(&c);
            cr_expect(live_bytes() == before, "%s, block %lld: %lld bytes leak", c.name, (long long)n,
                      (long long)(live_bytes() - before));
        }
        cr_expect(n < most, "%s never succeeds: %s", c.name, rapt_error() ? rapt_error() : "no error");
        cr_expect(!rapt_error(), "%s, block %lld: succeeds and leaves an error: %s", c.name, (long long)n,
                  rapt_error());
        rapt_clear_error();
        op_case_free(&c);
    }
}

/* Backward after an input or the result was changed: the gradient of before, or an error that names the op. */
static void change_and_differentiate(const op_row *row, const op_sample *sample, int changed)
{
    RAPT_SCOPE;
    op_case c = op_case_new(row, sample, RAPT_FLOAT64, dense, true),
            same = op_case_new(row, sample, RAPT_FLOAT64, dense, true);
    if (changed < c.count ? !c.inputs[changed] || row->domain[changed] > small : changed > c.count) changed = -1;
    rapt_tensor *y = op_case_call(&c), *expected = op_case_call(&same);
    cr_assert(y && expected, "%s: %s", c.name, rapt_error());
    if (changed >= 0 && rapt_count(y) > 0) {
        rapt_tensor *target = changed < c.count ? c.inputs[changed] : rapt_detach(y);
        bool repeats = rapt_count(target) > 1 && !rapt_is_contiguous(target) && changed == c.count;
        cr_expect(rapt_scale_in_place(target, 0.5) || repeats, "%s: %s", c.name, rapt_error());
        rapt_clear_error();
        rapt_tensor *root = rapt_sum(y, RAPT_ALL_AXES, false), *sum = rapt_sum(expected, RAPT_ALL_AXES, false);
        cr_expect(rapt_backward(sum), "%s: %s", c.name, rapt_error());
        if (rapt_backward(root)) {
            for (int i = 0; i < c.count; i++) {
                if (!op_case_differentiable(&c, i)) continue;
                array a = array_read(rapt_gradient(c.inputs[i])), b = array_read(rapt_gradient(same.inputs[i]));
                cr_expect(array_differs(&a, &b, 0, 0) == -1, "%s: changing %d in place gives a wrong gradient %d",
                          c.name, changed, i);
                array_free(&a);
                array_free(&b);
            }
        } else {
            cr_expect(rapt_error_get_code() == RAPT_ERROR_GRAPH && strstr(rapt_error(), "changed in place"), "%s: %s",
                      c.name, rapt_error());
            rapt_clear_error();
        }
    }
    op_case_free(&c);
    op_case_free(&same);
}

Test(ops, a_change_in_place_never_gives_a_wrong_gradient)
{
    EACH_OP(row)
    for (int i = 0; row->differentiable && i < row->sample_count; i++)
        for (int changed = 0; changed <= most_inputs; changed++)
            if (!row->samples[i].large) change_and_differentiate(row, &row->samples[i], changed);
}
