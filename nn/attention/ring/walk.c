/* Keys and values that go round, and the gradients that follow them: while a piece of them is worked on, the next one
 * comes. */
#include "ring.h"

#include <stdio.h>
#include <string.h>

#include "nn/pooling.h"
#include "tensor/parallel.h"

/* Both blocks of a rank move at once, so many keys of each: so the pairs of every step are the same on all ranks even
 * where a mask is causal, and what waits is small beside what stays. */
enum { most_keys = 256, least_keys = 16, most_bytes = 1 << 26 };

static int64_t row_bytes(const rapt_ring_walk *w)
{
    return w->width * (int64_t)rapt_dtype_size(w->keys->dtype);
}

/* The keys of a rank's block that belong to piece `number`. */
static rapt_ring_run run_of(const rapt_ring_walk *w, int rank, int half, int64_t number)
{
    rapt_ring_run run = rapt_ring_block(w->ring, rank, half);
    const int64_t skipped = rapt_smaller_of(number * w->piece, run.count);
    return (rapt_ring_run){run.first + skipped, rapt_smaller_of(w->piece, run.count - skipped), run.row + skipped};
}

static int64_t keys_of(const rapt_ring_walk *w, int rank, int64_t number)
{
    return run_of(w, rank, 0, number).count + run_of(w, rank, 1, number).count;
}

/* What comes before a rank in the ring, `steps` back. */
static int rank_before(const rapt_ring *ring, int steps)
{
    return (ring->rank - steps + ring->ranks) % ring->ranks;
}

static bool make_room(const rapt_ring_walk *w, int count, rapt_tensor **buffers)
{
    for (int i = 0; i < count; i++)
        if (!(buffers[i] = rapt_new(w->op, w->keys->dtype, RAPT_SHAPE(2 * w->piece * w->width)))) return false;
    return true;
}

bool rapt_ring_prepare(rapt_ring_walk *w)
{
    const rapt_tensor *keys = w->keys, *values = w->values;
    w->width = keys->shape[0] * rapt_heads_of(keys) * (keys->shape[keys->rank - 1] + values->shape[values->rank - 1]);
    const int64_t longest = rapt_ring_longest_block(w->ring);
    for (w->piece = most_keys; w->piece > least_keys && 2 * w->piece * row_bytes(w) > most_bytes;) w->piece /= 2;
    if (w->piece > longest) w->piece = longest > 0 ? longest : 1;
    return make_room(w, 2, w->pairs) && (!w->d_keys || make_room(w, 3, w->sums));
}

/* `count` rows like those of a tensor, which lie in the buffer from *at on; moves that behind them. */
static rapt_tensor *view(rapt_tensor *buffer, const rapt_tensor *like, int64_t count, int64_t *at)
{
    int64_t shape[RAPT_MAX_RANK], size = 1;
    memcpy(shape, like->shape, sizeof shape);
    shape[like->rank - 2] = count;
    for (int axis = 0; axis < like->rank; axis++) size *= shape[axis];
    rapt_tensor *part = rapt_slice(buffer, 0, *at, *at + size, 1);
    *at += size;
    return rapt_reshape(part, like->rank, shape);
}

static rapt_tensor *own_rows(rapt_tensor *x, rapt_ring_run run)
{
    return rapt_slice(x, -2, run.row, run.row + run.count, 1);
}

static bool take_own(const rapt_ring_walk *w, int64_t number)
{
    RAPT_SCOPE;
    int64_t at = 0;
    for (int half = 0; half < 2; half++) {
        const rapt_ring_run run = run_of(w, w->ring->rank, half, number);
        rapt_tensor *keys = view(w->pairs[0], w->keys, run.count, &at),
                    *values = view(w->pairs[0], w->values, run.count, &at);
        if (!keys || !values || !rapt_copy(keys, own_rows(w->keys, run)) ||
            !rapt_copy(values, own_rows(w->values, run)))
            return false;
    }
    return true;
}

/* The gradients of this rank's keys are whole. */
static bool give_own(const rapt_ring_walk *w, int64_t number, rapt_tensor *sum)
{
    RAPT_SCOPE;
    int64_t at = 0;
    for (int half = 0; half < 2; half++) {
        const rapt_ring_run run = run_of(w, w->ring->rank, half, number);
        const rapt_tensor *keys = view(sum, w->keys, run.count, &at), *values = view(sum, w->values, run.count, &at);
        rapt_tensor *d_keys = own_rows(w->d_keys, run), *d_values = own_rows(w->d_values, run);
        if (!keys || !values || !d_keys || !d_values) return false;
        if (!(w->adds_keys ? rapt_add_in_place(d_keys, keys, 1) : rapt_copy(d_keys, keys)) ||
            !(w->adds_values ? rapt_add_in_place(d_values, values, 1) : rapt_copy(d_values, values)))
            return false;
    }
    return true;
}

static bool visit(const rapt_ring_walk *w, int owner, int64_t number, rapt_tensor *pairs, rapt_tensor *sum)
{
    RAPT_SCOPE;
    int64_t at = 0, at_sum = 0;
    for (int half = 0; half < 2; half++) {
        const rapt_ring_run run = run_of(w, owner, half, number);
        rapt_ring_visit v = {.first = run.first,
                             .last = run.first + run.count,
                             .keys = view(pairs, w->keys, run.count, &at),
                             .values = view(pairs, w->values, run.count, &at)};
        if (sum) {
            v.d_keys = view(sum, w->keys, run.count, &at_sum);
            v.d_values = view(sum, w->values, run.count, &at_sum);
        }
        if (!v.keys || !v.values || (sum && (!v.d_keys || !v.d_values))) return false;
        if (run.count > 0 && !w->visit(w->context, &v)) return false;
    }
    return true;
}

/* The first elements of both, as many as a piece has. */
static bool add_sums(rapt_tensor *to, rapt_tensor *from, int64_t count)
{
    RAPT_SCOPE;
    rapt_tensor *sum = rapt_slice(to, 0, 0, count, 1), *part = rapt_slice(from, 0, 0, count, 1);
    return sum && part && rapt_add_in_place(sum, part, 1);
}

/* Of the piece that is here in that step: receives what other ranks gave, adds what this one gives, and sends it on.
 * False after an error of the ring's; *good, after one of this rank. */
static bool add_gradients(const rapt_ring_walk *w, int step, int64_t number, rapt_tensor *pairs, bool *good)
{
    rapt_ring *ring = w->ring;
    const int owner = rank_before(ring, step);
    rapt_tensor *own = w->sums[1 + step % 2];
    const int64_t keys = keys_of(w, owner, number), bytes = keys * row_bytes(w);
    if (step > 0 && !ring->receive(ring, RAPT_RING_GRADIENTS, w->sums[0]->data, bytes)) return false;
    memset(own->data, 0, (size_t)bytes);
    *good = *good && visit(w, owner, number, pairs, own);
    if (step > 0) {
        if (!ring->wait(ring, RAPT_RING_GRADIENTS)) return false;
        *good = *good && add_sums(own, w->sums[0], keys * w->width);
    }
    return ring->ranks == 1 || ring->send(ring, RAPT_RING_GRADIENTS, own->data, bytes);
}

/* The last rank has sent the sums to whom the keys belong. */
static bool bring_home(const rapt_ring_walk *w, int64_t number, bool *good)
{
    rapt_ring *ring = w->ring;
    const bool alone = ring->ranks == 1;
    if (!alone &&
        (!ring->receive(ring, RAPT_RING_GRADIENTS, w->sums[0]->data, keys_of(w, ring->rank, number) * row_bytes(w)) ||
         !ring->wait(ring, RAPT_RING_GRADIENTS)))
        return false;
    *good = *good && give_own(w, number, w->sums[alone]);
    return true;
}

/* One piece of every rank goes once round. An error of this rank does not end it: the others need what it sends on. */
static bool go_round(const rapt_ring_walk *w, int64_t number, bool *good)
{
    rapt_ring *ring = w->ring;
    *good = *good && take_own(w, number);
    for (int step = 0; step < ring->ranks; step++) {
        const int owner = rank_before(ring, step), next = rank_before(ring, step + 1);
        const bool more = step + 1 < ring->ranks;
        rapt_tensor *here = w->pairs[step % 2], *there = w->pairs[1 - step % 2];
        if (more && !(ring->send(ring, RAPT_RING_KEYS, here->data, keys_of(w, owner, number) * row_bytes(w)) &&
                      ring->receive(ring, RAPT_RING_KEYS, there->data, keys_of(w, next, number) * row_bytes(w))))
            return false;
        if (w->d_keys) {
            if (!add_gradients(w, step, number, here, good)) return false;
        } else {
            *good = *good && visit(w, owner, number, here, NULL);
        }
        if (more && !ring->wait(ring, RAPT_RING_KEYS)) return false;
    }
    return !w->d_keys || bring_home(w, number, good);
}

/* What must be the same on all ranks. */
static void describe(const rapt_ring_walk *w, char *text, size_t size)
{
    const rapt_tensor *keys = w->keys, *values = w->values;
    snprintf(text, size, "%s%s: %lld items, %lld groups, keys of %lld and values of %lld %s, a sequence of %lld", w->op,
             w->d_keys ? " backward" : "", (long long)keys->shape[0], (long long)rapt_heads_of(keys),
             (long long)keys->shape[keys->rank - 1], (long long)values->shape[values->rank - 1],
             rapt_dtype_name(keys->dtype), (long long)w->ring->length);
}

bool rapt_ring_go(rapt_ring_walk *w, bool good)
{
    char text[300];
    describe(w, text, sizeof text);
    if (!rapt_ring_agree(w->ring, w->op, good, text)) return false;
    const int64_t longest = rapt_ring_longest_block(w->ring);
    for (int64_t number = 0; number * w->piece < longest; number++)
        if (!go_round(w, number, &good)) return false;
    good = good && (!w->finish || w->finish(w->context));
    return rapt_ring_agree(w->ring, w->op, good, NULL);
}
