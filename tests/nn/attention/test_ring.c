/* Attention across ranks in one process: the only other rank is a mirror, which has the same rows and sends what it is
 * sent. Each key then stands there twice, which changes no mean of values; and whatever fails is an error that leaves
 * nothing behind. */
#include <rapt.h>

#include "memory_trials.h"

enum { batch = 2, heads = 2, rows = 6, size = 4 };

/* --- the mirror --- */

typedef enum ring_call { AGREE, SEND, RECEIVE, WAIT, RING_CALLS } ring_call;

typedef struct mirror {
    rapt_ring ring;
    char sent[RAPT_RING_CHANNELS][1 << 14];
    void *wanted[RAPT_RING_CHANNELS];
    int64_t counts[RAPT_RING_CHANNELS];
    int calls[RING_CALLS], fails_at[RING_CALLS]; /* 0: never */
} mirror;

static bool goes_well(mirror *m, ring_call call)
{
    return ++m->calls[call] != m->fails_at[call] || rapt_fail(RAPT_ERROR_RANK, "mirror", "it is broken");
}

static bool agree(rapt_ring *ring, const char *op, bool good, const char *text)
{
    (void)op, (void)text;
    ring->meetings++;
    return goes_well((mirror *)ring, AGREE) && good;
}

static bool send(rapt_ring *ring, rapt_ring_channel channel, const void *bytes, int64_t count)
{
    mirror *m = (mirror *)ring;
    cr_assert_leq(count, (int64_t)sizeof m->sent[channel]);
    memcpy(m->sent[channel], bytes, (size_t)count);
    return goes_well(m, SEND);
}

static bool receive(rapt_ring *ring, rapt_ring_channel channel, void *bytes, int64_t count)
{
    mirror *m = (mirror *)ring;
    m->wanted[channel] = bytes;
    m->counts[channel] = count;
    return goes_well(m, RECEIVE);
}

static bool wait(rapt_ring *ring, rapt_ring_channel channel)
{
    mirror *m = (mirror *)ring;
    memcpy(m->wanted[channel], m->sent[channel], (size_t)m->counts[channel]);
    return goes_well(m, WAIT);
}

static mirror of_two;

static void reset_mirror(void)
{
    of_two = (mirror){
        .ring = {.ranks = 2, .length = 2 * rows, .agree = agree, .send = send, .receive = receive, .wait = wait}};
}

/* --- attention --- */

static rapt_attention *attention;
static rapt_tensor *inputs[3], *lengths;

static rapt_attention *dot_attention(void)
{
    return rapt_dot_product_attention_new(0);
}

static rapt_attention *additive_attention(void)
{
    rapt_attention *made = rapt_additive_attention_new(size, size, 5, 0);
    rapt_module_cast(&made->module, RAPT_FLOAT64);
    return made;
}

static void begin(rapt_attention *(*make)(void))
{
    rapt_seed(5);
    reset_mirror();
    attention = make();
    for (int i = 0; i < 3; i++)
        inputs[i] = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(batch, heads, rows, size)));
    lengths = rapt_full(RAPT_INT64, RAPT_SHAPE(batch), 2 * rows);
    cr_assert(attention && lengths && inputs[2], "%s", rapt_error());
}

static void clear_gradients(void)
{
    rapt_module_clear_gradients(&attention->module);
    for (int i = 0; i < 3; i++) rapt_clear_gradient(inputs[i]);
}

static rapt_tensor *call(void)
{
    return rapt_attention_forward(attention, inputs[0], inputs[1], inputs[2],
                                  attention->ring ? RAPT_MASK(.valid_lengths = lengths) : NULL);
}

/* Sums of squares, so that gradients differ from row to row. */
static bool learns(void)
{
    rapt_tensor *out = call();
    return rapt_backward(rapt_sum(rapt_mul(out, out), RAPT_ALL_AXES, false));
}

static void expect_close(const rapt_tensor *a, const rapt_tensor *b, const char *what)
{
    const rapt_tensor *difference =
        rapt_max(rapt_abs(rapt_sub((rapt_tensor *)a, (rapt_tensor *)b)), RAPT_ALL_AXES, false);
    cr_expect(difference && rapt_item(difference) < 1e-12, "%s: %g", what, difference ? rapt_item(difference) : 0);
}

static void expect_what_one_process_gives(rapt_attention *(*make)(void))
{
    RAPT_SCOPE;
    begin(make);
    rapt_tensor *alone[4] = {rapt_detach(call())}, *across[4];
    cr_assert(learns(), "%s", rapt_error());
    for (int i = 0; i < 3; i++) alone[1 + i] = rapt_clone(rapt_gradient(inputs[i]));
    clear_gradients();
    rapt_attention_set_ring(&attention->module, &of_two.ring);
    across[0] = rapt_detach(call());
    cr_assert(learns(), "%s", rapt_error());
    for (int i = 0; i < 3; i++) across[1 + i] = rapt_gradient(inputs[i]);
    for (int i = 0; i < 4; i++) expect_close(alone[i], across[i], i ? "a gradient" : "the result");
    /* the second time gradients are added to */
    cr_assert(learns(), "%s", rapt_error());
    for (int i = 0; i < 3; i++) expect_close(rapt_mul_scalar(alone[1 + i], 2), rapt_gradient(inputs[i]), "a sum");
    rapt_module_free(&attention->module);
    expect_no_error();
}

Test(ring, a_mirror_changes_nothing)
{
    expect_what_one_process_gives(dot_attention);
    expect_what_one_process_gives(additive_attention);
}

/* --- what fails --- */

/* Each call of the ring fails in turn; then all is as if nothing had happened. */
static void expect_each_call_to_matter(rapt_attention *(*make)(void))
{
    RAPT_SCOPE;
    begin(make);
    rapt_attention_set_ring(&attention->module, &of_two.ring);
    cr_assert(learns(), "%s", rapt_error());
    int calls[RING_CALLS];
    memcpy(calls, of_two.calls, sizeof calls);
    for (ring_call kind = 0; kind < RING_CALLS; kind++) {
        cr_expect_gt(calls[kind], 1);
        for (int at = 1; at <= calls[kind]; at++) {
            RAPT_SCOPE;
            clear_gradients();
            const int64_t before = rapt_memory_get_statistics().live_bytes;
            {
                RAPT_SCOPE;
                reset_mirror();
                of_two.fails_at[kind] = at;
                cr_expect_not(learns(), "call %d of kind %d", at, (int)kind);
                expect_error(RAPT_ERROR_RANK, "it is broken");
                reset_mirror();
            }
            for (int i = 0; i < 3; i++) cr_expect_null(rapt_gradient(inputs[i]));
            cr_expect_eq(rapt_memory_get_statistics().live_bytes, before);
            cr_expect(learns(), "%s", rapt_error());
        }
    }
    rapt_module_free(&attention->module);
}

Test(ring, each_call_may_fail)
{
    expect_each_call_to_matter(dot_attention);
    expect_each_call_to_matter(additive_attention);
}

static bool learns_again(void)
{
    const bool good = learns();
    clear_gradients();
    return good;
}

static void expect_memory_to_matter(const char *name, rapt_attention *(*make)(void))
{
    RAPT_SCOPE;
    begin(make);
    rapt_attention_set_ring(&attention->module, &of_two.ring);
    try_all_failures(name, learns_again);
    rapt_module_free(&attention->module);
}

Test(ring, without_memory)
{
    expect_memory_to_matter("dot products", dot_attention);
    expect_memory_to_matter("additive", additive_attention);
}

static void expect_refused(const rapt_mask *mask, const char *part)
{
    cr_expect_null(rapt_attention_forward(attention, inputs[0], inputs[1], inputs[2], mask), "%s", part);
    expect_error(RAPT_ERROR_UNSUPPORTED, part);
}

static void see_nothing(const rapt_mask_tile *tile, uint8_t *seen)
{
    (void)tile, (void)seen;
}

Test(ring, masks_that_do_not_go_round)
{
    RAPT_SCOPE;
    begin(dot_attention);
    rapt_attention_set_ring(&attention->module, &of_two.ring);
    rapt_tensor *bias = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(rows, rows));
    expect_refused(RAPT_MASK(.bias = bias), "under a mask with a bias");
    expect_refused(RAPT_MASK(.rule = {.see = see_nothing}), "under a mask with a rule");
    expect_refused(RAPT_MASK(.fills_million = true), "under a mask with fills_million");
    rapt_module_free(&attention->module);
    of_two.ring.length = -1;
    cr_expect_eq(rapt_ring_count(&of_two.ring), 0);
    expect_error(RAPT_ERROR_VALUE, "rank 0 of 2 has a part of a sequence of -1");
    of_two.ring = (rapt_ring){.rank = -1, .ranks = 2, .length = 5};
    cr_expect_null(rapt_ring_places(&of_two.ring));
    expect_error(RAPT_ERROR_VALUE, "rank -1 of 2");
    of_two.ring.ranks = 0;
    cr_expect_null(rapt_ring_places(&of_two.ring));
    expect_error(RAPT_ERROR_VALUE, "rank -1 of 0");
}
