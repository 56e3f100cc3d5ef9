/* Running the function of a node of rapt_recompute: what both runs share, and the second with its derivative. */
#include "segment.h"

#include "autograd/meeting.h"
#include "recording.h"
#include "tensor/debug.h"
#include "tensor/memory.h"
#include "tensor/random.h"
#include "walk.h"

static const char name[] = "recompute";
static RAPT_THREAD_LOCAL bool is_running_again;

bool rapt_is_recomputing(void)
{
    return is_running_again;
}

bool rapt_segment_run(const rapt_segment *s, rapt_tensor *const *inputs, rapt_tensor **outputs)
{
    if (s->many ? !s->many(inputs, outputs, s->context) : !(outputs[0] = s->function(inputs, s->context)))
        return rapt_fail(RAPT_ERROR_VALUE, name, "the function failed without a reason");
    for (int k = 0; k < s->output_count; k++) {
        if (!outputs[k]) return rapt_fail(RAPT_ERROR_NULL, name, "the function set no output %d", k);
        if (!rapt_check_alive(name, "an output of the function", outputs[k])) return false;
    }
    return true;
}

static uint64_t digest_bytes(const char *bytes, size_t count, uint64_t digest)
{
    enum { lanes = 8 };
    uint64_t sums[lanes], words[lanes] = {0};
    for (int i = 0; i < lanes; i++) sums[i] = digest + (uint64_t)i;
    for (size_t done = 0; done < count; done += sizeof words) {
        memcpy(words, bytes + done, count - done < sizeof words ? count - done : sizeof words);
        for (int i = 0; i < lanes; i++) {
            sums[i] = (sums[i] ^ words[i]) * UINT64_C(0x9E3779B97F4A7C15);
            sums[i] ^= sums[i] >> 29;
        }
    }
    for (int i = 0; i < lanes; i++) digest = (digest ^ sums[i]) * UINT64_C(0xD6E8FEB86659FD93);
    return digest;
}

bool rapt_segment_digest(const rapt_segment *s, rapt_tensor *const *outputs, uint64_t *digest)
{
    RAPT_SCOPE;
    *digest = 1;
    for (int k = 0; k < s->output_count; k++) {
        const rapt_tensor *dense = rapt_as_contiguous(outputs[k]);
        if (!dense) return false;
        *digest = digest_bytes(dense->data, (size_t)dense->count * rapt_dtype_size(dense->dtype), *digest);
    }
    return true;
}

/* --- the second run --- */

static bool check_unchanged(const rapt_segment *s)
{
    for (int64_t i = 0; i < s->kept_count; i++) {
        const rapt_kept_storage *kept = &s->kept[i];
        if (kept->tensor && rapt_version_of(kept->tensor) != kept->version)
            return rapt_fail(RAPT_ERROR_GRAPH, name,
                             "a tensor that the function reads was changed in place after it ran (version %llu, now "
                             "%llu); change a clone, or do it after backward",
                             (unsigned long long)kept->version, (unsigned long long)rapt_version_of(kept->tensor));
    }
    return true;
}

static bool check_again(const rapt_segment *s, const rapt_node *node, rapt_tensor *const *outputs)
{
    char a[RAPT_SHAPE_TEXT], b[RAPT_SHAPE_TEXT];
    uint64_t digest;
    for (int k = 0; k < s->output_count; k++) {
        const rapt_output *first = &node->outputs[k];
        if (outputs[k]->dtype != first->dtype)
            return rapt_fail(RAPT_ERROR_DTYPE, name, "the function gave %s as output %d, and %s the first time",
                             rapt_dtype_name(outputs[k]->dtype), k, rapt_dtype_name(first->dtype));
        if (rapt_is_floating(outputs[k]) && !rapt_has_shape(outputs[k], first->rank, first->shape))
            return rapt_fail(RAPT_ERROR_SHAPE, name, "the function gave shape %s as output %d, and %s the first time",
                             rapt_shape_text(outputs[k]->rank, outputs[k]->shape, a), k,
                             rapt_shape_text(first->rank, first->shape, b));
    }
    return rapt_segment_digest(s, outputs, &digest) &&
           (digest == s->digest ||
            rapt_fail(RAPT_ERROR_GRAPH, name,
                      "the function gave other numbers than the first time; it may depend on nothing that changes "
                      "until backward, but the random generator"));
}

/* roots: where the graph of this run begins, with a share of each node. The outputs themselves were only made to be
 * compared, and go before backward takes its memory. */
static bool run_again(const rapt_segment *s, const rapt_node *node, rapt_edge *roots)
{
    RAPT_SCOPE;
    rapt_tensor *outputs[RAPT_MAX_SAVED] = {0};
    const rapt_random_state random = rapt_generator;
    const rapt_module_place place = rapt_running_place;
    const char *op = rapt_running_op;
    const bool recording = rapt_set_recording(true), again = is_running_again;
    rapt_nodes_follow(node);
    rapt_generator = s->random;
    rapt_running_place = s->place;
    rapt_running_op = NULL;
    is_running_again = true;
    bool good = rapt_segment_run(s, s->inputs, outputs);
    is_running_again = again;
    rapt_running_op = op;
    rapt_running_place = place;
    rapt_generator = random;
    rapt_set_recording(recording);
    good = good && check_again(s, node, outputs);
    for (int k = 0; k < s->output_count && good; k++)
        if (outputs[k]->link) roots[k] = (rapt_edge){rapt_node_retain(rapt_node_of(outputs[k])), outputs[k]->output};
    return good;
}

/* Has the graph of the second run the ends of the first, as far as the walk around wants to go? */
static bool check_sources(const rapt_walk *walk, const rapt_node *node)
{
    int64_t wanted = 0;
    bool same = true;
    for (int i = 0; i < node->edge_count && same; i++) {
        const rapt_edge *edge = &node->edges[i];
        if (!rapt_walk_wants(walk, edge)) continue;
        same = rapt_places_find(&walk->places, edge->node, edge->output) >= 0;
        wanted++;
    }
    return (same && wanted == walk->places.count) ||
           rapt_fail(RAPT_ERROR_GRAPH, name,
                     "the function's results depend on other tensors that require gradients than the first time");
}

static bool reach(rapt_walk *walk, const rapt_node *node, const rapt_edge *roots)
{
    for (int k = 0; k < node->output_count; k++)
        if (rapt_walk_wants(walk, &roots[k]) && !rapt_walk_add_root(walk, roots[k].node, roots[k].output)) return false;
    return rapt_walk_reach(walk) && rapt_walk_check(walk) && check_sources(walk, node);
}

/* Exchanges the sums of gradients at the ends: the walk inside goes on with those of the walk around, as if there was
 * but one. */
static void exchange_sums(const rapt_walk *around, const rapt_walk *walk, const rapt_node *node)
{
    for (int i = 0; i < node->edge_count; i++) {
        const rapt_edge *edge = &node->edges[i];
        if (!rapt_walk_wants(walk, edge)) continue;
        rapt_tensor **outer = rapt_places_sum(&around->places, edge->node, edge->output);
        rapt_tensor **inner = rapt_places_sum(&walk->places, edge->node, edge->output);
        rapt_tensor *sum = *outer;
        *outer = *inner;
        *inner = sum;
    }
}

/* Hands the gradients of the outputs on; they are not needed again unless they are part of a graph. */
static bool deliver(rapt_walk *walk, rapt_node *node, const rapt_edge *roots)
{
    for (int k = 0; k < node->output_count; k++) {
        rapt_tensor **gradient = &node->outputs[k].gradient;
        if (!*gradient || !rapt_walk_wants(walk, &roots[k])) continue;
        if (!rapt_walk_deliver(walk, roots[k].node, roots[k].output, *gradient)) return false;
        if (walk->create_graph) continue;
        rapt_release(*gradient);
        *gradient = NULL;
    }
    return true;
}

/* *reached: the walk inside began, and has told the others where it failed. */
static bool differentiate(rapt_call *call, const rapt_edge *roots, int64_t failed_meetings, bool *reached)
{
    const rapt_walk *around = call->walk;
    rapt_node *node = call->node;
    rapt_walk walk = {.op = name,
                      .retain_graph = around->create_graph,
                      .create_graph = around->create_graph,
                      .oldest = around->oldest,
                      .is_not_finite = around->is_not_finite,
                      .places.outside = node->sequence};
    if (!reach(&walk, node, roots)) {
        rapt_walk_end(&walk);
        return false;
    }
    exchange_sums(around, &walk, node);
    bool good = deliver(&walk, node, roots) && rapt_walk_run(&walk);
    exchange_sums(around, &walk, node);
    good = rapt_walk_agree(&walk, failed_meetings, NULL, good);
    *reached = true;
    rapt_walk_end(&walk);
    return good;
}

bool rapt_segment_vjp(rapt_call *call)
{
    rapt_segment *s;
    rapt_edge roots[RAPT_MAX_SAVED] = {0};
    memcpy(&s, rapt_call_options(call), sizeof s);
    const int64_t failed_meetings = rapt_failed_meetings;
    bool reached = false;
    const bool good =
        check_unchanged(s) && run_again(s, call->node, roots) && differentiate(call, roots, failed_meetings, &reached);
    if (!reached) rapt_tell_others(call->node->others, name, failed_meetings);
    for (int k = 0; k < call->output_count; k++) rapt_node_release(roots[k].node);
    return good;
}
