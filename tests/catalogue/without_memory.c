/* The catalogue while memory runs out: each op and layer in all its samples, by its own way and by its definition, with
 * gradients of both orders and without, while the allocator fails at its n-th block, n = 0, 1, 2 …, alone or from there
 * on. It must be an error of memory and leave nothing behind, or have the bits of a run with all memory, which the same
 * once more has anyway. Usage: without_memory [--all] [NAME...]. */
#include <stdio.h>
#include <string.h>

#include "catalogue.h"

#include "tensor/memory.h"

/* Without --all, failures are tried at each of the first blocks, then ever farther apart. After each seventh the same
 * is done with all memory. */
enum { dense_blocks = 30, again = 7, most_blocks = 1 << 20 };

/* What is done of a subject. */
typedef struct work {
    const subject *s;
    bool by_definition;
    int order;  /* of derivatives: 0 none, and nothing is recorded */
    bool alone; /* does one block fail alone? */
} work;

static uint64_t add_bits(uint64_t hash, rapt_tensor *x)
{
    rapt_tensor *in_rows = rapt_contiguous(x);
    const unsigned char *bytes = rapt_data(in_rows);
    const int64_t size = rapt_count(in_rows) * (int64_t)rapt_dtype_size(rapt_get_dtype(in_rows));
    for (int64_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Σ x² of those that depend on the leaves; NULL: of none. */
static rapt_tensor *sum_of_squares(int count, rapt_tensor *const *x)
{
    rapt_tensor *sum = NULL;
    for (int i = 0; i < count; i++) {
        if (!x[i] || !rapt_requires_gradient(x[i])) continue;
        rapt_tensor *square = rapt_sum(rapt_mul(x[i], x[i]), RAPT_ALL_AXES, false);
        sum = sum ? rapt_add(sum, square) : square;
    }
    return sum;
}

static bool differentiate(const work *w, rapt_tensor *y, rapt_tensor **gradients)
{
    rapt_tensor *root = sum_of_squares(1, &y);
    for (int order = 1; order <= w->order && root; order++) {
        const int flags = order < w->order ? RAPT_CREATE_GRAPH : 0;
        if (!rapt_gradients(1, &root, NULL, w->s->count, w->s->leaves, gradients, flags)) return false;
        root = order < w->order ? sum_of_squares(w->s->count, gradients) : NULL;
    }
    return true;
}

static bool compute(const work *w, rapt_tensor **y, rapt_tensor **gradients)
{
    *y = w->by_definition ? subject_define(w->s) : subject_call(w->s);
    return *y && (!w->order || differentiate(w, *y, gradients)) && !rapt_error();
}

/* With the allocator failing at block n, negative: with all memory. *hash: of what is computed; *failed: did one fail?
 */
static bool run(const work *w, int64_t n, uint64_t *hash, bool *failed)
{
    RAPT_SCOPE;
    rapt_tensor *y = NULL, *gradients[most_leaves] = {NULL};
    const bool records = rapt_set_recording(w->order > 0);
    if (w->alone)
        rapt_memory_fail_once(n);
    else
        rapt_memory_fail_after(n);
    const bool good = compute(w, &y, gradients);
    *failed = rapt_memory_fail_after(-1) < (w->alone ? 0 : 1);
    rapt_set_recording(records);
    *hash = good ? add_bits(UINT64_C(0xcbf29ce484222325), y) : 0;
    for (int i = 0; i < w->s->count && good; i++)
        if (gradients[i]) *hash = add_bits(*hash, gradients[i]);
    return good;
}

static const char *name_of(const work *w)
{
    static char name[256];
    static const char *const orders[] = {"unrecorded", "gradient", "second order"};
    snprintf(name, sizeof name, "%s%s, %s%s", w->s->c.name, w->by_definition ? " by definition" : "", orders[w->order],
             w->alone ? ", one block fails alone" : "");
    return name;
}

static int64_t live_bytes(void)
{
    return rapt_memory_get_statistics().live_bytes;
}

/* The run whose block n fails; false: it has no such block. */
static bool fails(const work *w, int64_t n, uint64_t expected, entry *e)
{
    const int64_t before = live_bytes();
    uint64_t hash;
    bool failed;
    e->tried++;
    const bool good = run(w, n, &hash, &failed);
    if (good ? hash != expected : rapt_error_get_code() != RAPT_ERROR_MEMORY)
        entry_fail(e, "%s, block %lld: %s", name_of(w), (long long)n,
                   good           ? "it succeeds with other bits"
                   : rapt_error() ? rapt_error()
                                  : "it fails without an error");
    rapt_clear_error();
    if (live_bytes() != before)
        entry_fail(e, "%s, block %lld: %lld bytes leak", name_of(w), (long long)n, (long long)(live_bytes() - before));
    if (!failed) return false;
    bool again_failed;
    if (n % again == 0 && (!run(w, -1, &hash, &again_failed) || hash != expected))
        entry_fail(e, "%s: other bits after block %lld failed", name_of(w), (long long)n);
    return true;
}

static void starve(const work *w, bool all, entry *e)
{
    uint64_t expected;
    bool failed;
    if (!run(w, -1, &expected, &failed)) {
        if (w->order < 2) entry_fail(e, "%s with all memory: %s", name_of(w), rapt_error()); /* some have no more */
        rapt_clear_error();
        return;
    }
    for (int64_t n = 0; n < most_blocks && fails(w, n, expected, e);) n += all ? 1 : 1 + n / dense_blocks;
}

static void starve_subject(const subject *s, int order, bool all, entry *e)
{
    for (int alone = 0; alone < 2; alone++) {
        starve(&(work){.s = s, .order = order, .alone = alone}, all, e);
        if (order != 1 && s->layer && s->layer->definition)
            starve(&(work){.s = s, .order = order, .by_definition = true, .alone = alone}, all, e);
    }
}

static void starve_op(const op_row *row, bool all, entry *e)
{
    for (int i = 0; i < row->sample_count; i++) {
        RAPT_SCOPE;
        if (row->samples[i].large) continue;
        subject s = subject_of_op(row, &row->samples[i], op_dtype(row), dense, 0);
        starve_subject(&s, s.count ? 2 : 0, all, e);
        subject_free(&s);
    }
}

/* In training with derivatives, in evaluation, draw 1, without. */
static void starve_layer(const layer_row *layer, bool all, entry *e)
{
    for (int i = 0; i < layer->row.sample_count; i++)
        for (int draw = 0; draw < 2; draw++) {
            RAPT_SCOPE;
            if (layer->row.samples[i].large) continue;
            subject s = subject_of_layer(layer, &layer->row.samples[i], RAPT_FLOAT64, dense, draw);
            for (int order = draw || !s.count ? 0 : 2; order >= !draw; order--) starve_subject(&s, order, all, e);
            subject_free(&s);
        }
}

static bool is_wanted(const char *name, int count, char *const *names)
{
    for (int k = 0; k < count; k++)
        if (strcmp(names[k], name) == 0) return true;
    return count == 0;
}

int main(int count, char **arguments)
{
    const bool all = count > 1 && strcmp(arguments[1], "--all") == 0;
    char *const *names = arguments + 1 + all;
    count -= 1 + all;
    rapt_set_threads(1);
    entry e = entry_new("without memory");
    EACH_OP(row)
    if (is_wanted(row->name, count, names)) starve_op(row, all, &e);
    for (int i = 0; layer_at(i); i++)
        if (is_wanted(layer_at(i)->row.name, count, names)) starve_layer(layer_at(i), all, &e);
    printf("%lld runs without memory, %lld failures\n", (long long)e.tried, (long long)e.failures);
    return e.tried == 0 || e.failures > 0;
}
