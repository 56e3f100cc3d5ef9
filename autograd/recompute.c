/* Recomputation: one node of the graph stands for a function, which its vjp runs again and differentiates. */
#include "segment.h"

#include "recording.h"
#include "tensor/debug.h"
#include "tensor/memory.h"
#include "tensor/random.h"
#include "walk.h"

static const char name[] = "recompute";

static void end_context(const rapt_segment *s)
{
    if (s->free_context) s->free_context(s->context);
}

static void segment_free(void *owner)
{
    rapt_segment *s = owner;
    for (int i = 0; i < s->input_count; i++) rapt_release(s->inputs[i]);
    for (int64_t i = 0; i < s->kept_count; i++) rapt_release(s->kept[i].tensor);
    rapt_block_give(s->kept, s->kept_bytes);
    end_context(s);
    rapt_block_give(s, s->capacity);
}

/* A tensor of the innermost scope whose data is the segment, which goes with it. NULL after an error; the context is
 * then freed. */
static rapt_tensor *segment_new(const rapt_segment *like)
{
    size_t capacity;
    rapt_segment *s = rapt_block_take(name, sizeof *s, &capacity);
    if (s) {
        *s = *like;
        s->capacity = capacity;
        rapt_tensor *owner = rapt_new_foreign(name, RAPT_UINT8, 1, (int64_t[]){0}, s, segment_free, s);
        if (owner) return owner;
        rapt_block_give(s, capacity);
    }
    end_context(like);
    return NULL;
}

/* --- the first run --- */

/* Lists the storage, once and with the smallest of its versions. */
static bool keep_storage(rapt_segment *s, rapt_pointer_set *storages, rapt_tensor *tensor, uint64_t version, bool holds)
{
    const int64_t known = rapt_pointer_set_find(storages, tensor->storage);
    if (known >= 0) {
        if (version < s->kept[known].version) s->kept[known].version = version;
        return true;
    }
    const size_t used = (size_t)s->kept_count * sizeof *s->kept;
    rapt_kept_storage *kept = rapt_block_grow(name, s->kept, &s->kept_bytes, used, used + sizeof *kept);
    if (!kept) return false;
    s->kept = kept;
    rapt_tensor *held = holds ? rapt_alias_share(tensor, false) : NULL;
    if (holds && !held) return false;
    kept[s->kept_count++] = (rapt_kept_storage){held, version};
    return rapt_pointer_set_add(storages, tensor->storage) == RAPT_SET_NEW ||
           rapt_fail(RAPT_ERROR_MEMORY, name, "no memory to list %lld tensors", (long long)s->kept_count);
}

/* Lists what the nodes of the function saved, and shares of its inputs. Its outputs are nobody's business. */
static bool keep_storages(rapt_segment *s, rapt_pointer_set *storages, rapt_tensor *const *inputs,
                          rapt_tensor *const *outputs, const rapt_node_list *nodes)
{
    for (int i = 0; i < s->input_count; i++)
        if (!keep_storage(s, storages, inputs[i], rapt_version_of(inputs[i]), true)) return false;
    for (int k = 0; k < s->output_count; k++)
        if (!keep_storage(s, storages, outputs[k], rapt_version_of(outputs[k]), false)) return false;
    for (int64_t n = 0; n < nodes->count; n++) {
        const rapt_node *node = nodes->nodes[n];
        for (int k = 0; k < node->saved_count; k++) {
            const rapt_saved_tensor *saved = &node->saved[k];
            if (saved->tensor && saved->output < 0 && !keep_storage(s, storages, saved->tensor, saved->version, true))
                return false;
        }
    }
    return true;
}

/* Gives up what only the segment holds, now that the function's graph is gone: that was made by it. */
static void drop_what_was_made(rapt_segment *s)
{
    for (int64_t i = 0; i < s->kept_count; i++) {
        rapt_kept_storage *kept = &s->kept[i];
        if (!kept->tensor || atomic_load_explicit(&kept->tensor->storage->references, memory_order_acquire) > 1)
            continue;
        rapt_release(kept->tensor);
        kept->tensor = NULL;
    }
}

static bool share_inputs(rapt_segment *s, rapt_tensor *const *inputs)
{
    for (int i = 0; i < s->input_count; i++) {
        s->inputs[i] = rapt_node_share(inputs[i]);
        if (!s->inputs[i]) return false;
    }
    return true;
}

static const rapt_op op = {.name = name, .vjp = rapt_segment_vjp};

/* A node whose edges lead to where the function's graph ends, and for which wait who did for that of the outputs; NULL
 * after an error. */
static rapt_node *node_new(rapt_tensor *owner, const rapt_places *sources, rapt_tensor *const *outputs)
{
    rapt_segment *s = (rapt_segment *)(void *)owner->data;
    rapt_node *node = rapt_node_new(&op, (int)sources->count, 1, s->output_count, sizeof s);
    if (!node) return NULL;
    memcpy(node->options, &s, sizeof s);
    node->saved[0] = (rapt_saved_tensor){.tensor = rapt_retain(owner), .version = rapt_version_of(owner), .output = -1};
    for (int64_t i = 0; i < sources->count; i++)
        rapt_node_connect_to(node, (int)i, sources->list[i].node, sources->list[i].output);
    for (int k = 0; k < s->output_count; k++) {
        void *others = outputs[k]->link ? rapt_node_of(outputs[k])->others : NULL;
        if (others) node->others = others;
        node->meets = node->meets || others;
    }
    return node;
}

/* *node is NULL where no output wants a gradient. */
static bool summarize(rapt_tensor *owner, uint64_t before, rapt_tensor *const *inputs, rapt_tensor *const *outputs,
                      rapt_node **node)
{
    rapt_segment *s = (rapt_segment *)(void *)owner->data;
    rapt_walk walk = {.op = name, .places.outside = before};
    rapt_pointer_set storages = {0};
    bool good = true, any = false;
    for (int k = 0; k < s->output_count && good; k++) {
        if (!outputs[k]->link) continue;
        any = true;
        good = rapt_walk_add_root(&walk, rapt_node_of(outputs[k]), outputs[k]->output);
    }
    if (good && any)
        good = rapt_walk_reach(&walk) && rapt_segment_digest(s, outputs, &s->digest) && share_inputs(s, inputs) &&
               keep_storages(s, &storages, inputs, outputs, &walk.order) &&
               (*node = node_new(owner, &walk.places, outputs));
    rapt_pointer_set_free(&storages);
    rapt_walk_end(&walk);
    return good;
}

/* A share of the tensor that output k is, where the function handed it through, or gave it before: of one tensor the
 * gradients are summed in one order. One that is not linked, where it has no graph. Else NULL. */
static rapt_tensor *share_of_same(int k, rapt_tensor *const *made, rapt_tensor *const *outputs, uint64_t before)
{
    if (!made[k]->link) return rapt_alias_share(made[k], false);
    const rapt_places places = {.outside = before};
    if (!rapt_enters_node(&places, rapt_node_of(made[k]))) return rapt_retain(made[k]);
    for (int j = 0; j < k; j++)
        if (made[j] == made[k]) return rapt_retain(outputs[j]);
    return NULL;
}

/* Runs the function in a graph of its own, of which nothing but the outputs, as shares of the caller's, is left. */
static bool run_first(rapt_tensor *owner, rapt_tensor *const *inputs, rapt_tensor **outputs, rapt_tensor **same,
                      rapt_node **node)
{
    rapt_segment *s = (rapt_segment *)(void *)owner->data;
    rapt_tensor *made[RAPT_MAX_SAVED] = {0};
    RAPT_SCOPE;
    for (int i = 0; i < s->input_count; i++)
        if (inputs[i]->link) rapt_nodes_follow(rapt_node_of(inputs[i]));
    const uint64_t before = rapt_nodes_last();
    bool good = rapt_segment_run(s, inputs, made) && summarize(owner, before, inputs, made, node);
    for (int k = 0; k < s->output_count && good; k++) {
        outputs[k] = rapt_alias_share(made[k], false);
        same[k] = share_of_same(k, made, outputs, before);
        good = outputs[k] && (same[k] || made[k]->link);
    }
    return good;
}

static bool run_recorded(rapt_tensor *owner, rapt_tensor *const *inputs, rapt_tensor **outputs)
{
    rapt_segment *s = (rapt_segment *)(void *)owner->data;
    rapt_node *node = NULL;
    rapt_tensor *same[RAPT_MAX_SAVED] = {0};
    const bool good = run_first(owner, inputs, outputs, same, &node);
    drop_what_was_made(s);
    if (good && node)
        rapt_node_attach(node, outputs);
    else
        rapt_node_release(node);
    for (int k = 0; k < s->output_count; k++) {
        if (good && !same[k]) continue;
        rapt_release(outputs[k]);
        outputs[k] = good ? same[k] : NULL;
        if (!good) rapt_release(same[k]);
    }
    return good;
}

/* --- the two calls --- */

static bool check(const rapt_segment *s, rapt_tensor *const *inputs, rapt_tensor *const *outputs)
{
    if (!s->function && !s->many) return rapt_fail_null(name, "the function");
    if (!outputs) return rapt_fail_null(name, "the list of outputs");
    if (s->input_count > 0 && !inputs) return rapt_fail_null(name, "the list of inputs");
    if (s->input_count < 0 || s->input_count > RAPT_MAX_SAVED)
        return rapt_fail(RAPT_ERROR_VALUE, name,
                         "%d inputs; 0 to %d expected (what the function finds in its context need not be one)",
                         s->input_count, RAPT_MAX_SAVED);
    if (s->output_count < 1 || s->output_count > RAPT_MAX_SAVED)
        return rapt_fail(RAPT_ERROR_VALUE, name, "%d outputs; 1 to %d expected", s->output_count, RAPT_MAX_SAVED);
    for (int i = 0; i < s->input_count; i++) {
        if (!inputs[i]) return rapt_fail(RAPT_ERROR_NULL, name, "input %d is NULL", i);
        if (!rapt_check_alive(name, "an input", inputs[i])) return false;
    }
    return true;
}

static bool run_unrecorded(const rapt_segment *s, rapt_tensor *const *inputs, rapt_tensor **outputs)
{
    RAPT_SCOPE;
    rapt_spare_gradient = NULL; /* the function may read its input again */
    const bool good = rapt_segment_run(s, inputs, outputs);
    for (int k = 0; k < s->output_count; k++) outputs[k] = good ? rapt_keep(outputs[k]) : NULL;
    end_context(s);
    return good;
}

static _Thread_local uint64_t segment_count;

uint64_t rapt_count_segments(void)
{
    return segment_count;
}

static bool recompute(rapt_segment *s, rapt_tensor *const *inputs, rapt_tensor **outputs)
{
    RAPT_UNDO_DRAWS;
    rapt_tensor *shares[RAPT_MAX_SAVED] = {0};
    for (int k = 0; outputs && k < s->output_count; k++) outputs[k] = NULL;
    if (!check(s, inputs, outputs)) {
        end_context(s);
        return false;
    }
    if (rapt_recording_is_off) return run_unrecorded(s, inputs, outputs);
    segment_count++;
    s->random = rapt_generator;
    s->place = rapt_running_place;
    rapt_scope scope = rapt_scope_begin();
    rapt_tensor *owner = segment_new(s);
    const bool good = owner && run_recorded(owner, inputs, shares);
    rapt_scope_end(scope);
    bool owned = good;
    for (int k = 0; k < s->output_count && good; k++) owned = (outputs[k] = rapt_scope_own(shares[k])) && owned;
    for (int k = 0; k < s->output_count && !owned; k++) outputs[k] = NULL;
    return owned;
}

rapt_tensor *rapt_recompute(rapt_recompute_function *function, int count, rapt_tensor *const *inputs, void *context,
                            void (*free_context)(void *context))
{
    rapt_tensor *output;
    rapt_segment s = {.function = function,
                      .input_count = count,
                      .output_count = 1,
                      .context = context,
                      .free_context = free_context};
    return recompute(&s, inputs, &output) ? output : NULL;
}

bool rapt_recompute_many(rapt_recompute_many_function *function, int count, rapt_tensor *const *inputs,
                         int output_count, rapt_tensor **outputs, void *context, void (*free_context)(void *context))
{
    rapt_segment s = {.many = function,
                      .input_count = count,
                      .output_count = output_count,
                      .context = context,
                      .free_context = free_context};
    return recompute(&s, inputs, outputs);
}
