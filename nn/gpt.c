/* GPT: token embeddings and positions, causal pre-norm blocks, and the embeddings once more as the head. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpt.h"
#include "nn/entry.h"
#include "tensor/packing.h"
#include "tensor/random.h"
#include "transformer/transformer.h"

static void describe(const rapt_module *module, char *text, size_t size)
{
    const rapt_gpt_config *c = &((const rapt_gpt *)module)->config;
    snprintf(text, size, "%lld tokens, context %lld", (long long)c->vocabulary, (long long)c->context);
}

static const rapt_module_class kind = {.name = "GPT", .describe = describe};

static bool check_config(const rapt_gpt_config *c)
{
    if (!c) return rapt_fail(RAPT_ERROR_NULL, kind.name, "the configuration is NULL");
    const int64_t sizes[] = {c->vocabulary, c->context, c->hidden}, largest = INT64_MAX / 8;
    if (c->window < 0)
        return rapt_fail(RAPT_ERROR_VALUE, kind.name, "a window of %lld; 0 or more expected", (long long)c->window);
    static const char *const names[] = {"vocabulary", "context", "hidden size"};
    for (int i = 0; i < 3; i++)
        if (sizes[i] < 1 || sizes[i] > largest)
            return rapt_fail(RAPT_ERROR_VALUE, kind.name, "a %s of %lld; 1 to %lld expected", names[i],
                             (long long)sizes[i], (long long)largest);
    return (unsigned)c->positions <= RAPT_POSITIONS_ALIBI ||
           rapt_fail(RAPT_ERROR_VALUE, kind.name, "positions %d are none of rapt_gpt_positions", (int)c->positions);
}

static void add_positions(rapt_gpt *gpt, rapt_module *body)
{
    const rapt_gpt_config *c = &gpt->config;
    if (c->positions == RAPT_POSITIONS_LEARNED)
        gpt->wpe =
            rapt_module_add_child(body, "wpe", (rapt_module *)rapt_learned_positions_new(c->context, c->hidden, 0));
    if (c->positions == RAPT_POSITIONS_SINUSOIDAL)
        gpt->sinusoidal =
            rapt_module_add_child(body, "positions", (rapt_module *)rapt_sinusoidal_positions_new(c->hidden, 0));
    if (c->positions == RAPT_POSITIONS_ALIBI)
        gpt->alibi = rapt_module_add_child(body, "positions", (rapt_module *)rapt_alibi_new(c->heads));
}

static void add_blocks(rapt_gpt *gpt, rapt_module *body)
{
    const rapt_gpt_config *c = &gpt->config;
    const rapt_transformer_config config = {.hidden = c->hidden,
                                            .heads = c->heads,
                                            .groups = c->groups,
                                            .feed_forward = c->feed_forward != 0                  ? c->feed_forward
                                                            : c->kind == RAPT_FEED_FORWARD_SWIGLU ? 8 * c->hidden / 3
                                                                                                  : 4 * c->hidden,
                                            .kind = c->kind,
                                            .encoder_layers = c->layers,
                                            .norm_first = true,
                                            .attention_bias = c->bias,
                                            .no_bias = !c->bias,
                                            .final_norm = true,
                                            .dropout = c->dropout,
                                            .attention_dropout = c->dropout,
                                            .sinks = c->sinks,
                                            .rotary = c->positions == RAPT_POSITIONS_ROTARY,
                                            .names = RAPT_NAMES_GPT2,
                                            .recompute = c->recompute,
                                            .rms_norm = c->rms_norm,
                                            .rotary_halves = c->rotary_halves,
                                            .rotary_base = c->rotary_base,
                                            .norm_epsilon = c->norm_epsilon,
                                            .head_size = c->head_size,
                                            .norm_heads = c->norm_heads,
                                            .rotary_scaling = c->rotary_scaling};
    gpt->blocks = rapt_module_add_child(body, "", (rapt_module *)rapt_transformer_encoder_new(&config));
}

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), end_length = strlen(end);
    return length >= end_length && strcmp(name + length - end_length, end) == 0;
}

static bool init_parameter(const char *name, rapt_tensor *parameter, void *context)
{
    const rapt_gpt *gpt = context;
    if (rapt_rank(parameter) < 2) return !ends_with(name, ".bias") || rapt_fill(parameter, 0);
    bool is_added = ends_with(name, ".c_proj.weight");
    return rapt_fill_normal(parameter, 0, is_added ? 0.02 / sqrt(2.0 * gpt->config.layers) : 0.02);
}

rapt_gpt *rapt_gpt_new(const rapt_gpt_config *config)
{
    static const rapt_module_class body_kind = {.name = "Transformer"};
    rapt_gpt *gpt = check_config(config) ? rapt_module_new(sizeof *gpt, &kind) : NULL;
    if (!gpt) return NULL;
    gpt->config = *config;
    rapt_module *module = &gpt->module, *body = rapt_module_new(sizeof *body, &body_kind);
    if (rapt_module_add_child(module, "transformer", body)) {
        gpt->wte =
            rapt_module_add_child(body, "wte", (rapt_module *)rapt_embedding_new(config->vocabulary, config->hidden));
        if (!body->failed) add_positions(gpt, body);
        if (!body->failed) add_blocks(gpt, body);
        if (config->untied && !body->failed)
            gpt->lm_head =
                rapt_module_add_child(module, "lm_head",
                                      (rapt_module *)rapt_linear_new(config->hidden, config->vocabulary, RAPT_NO_BIAS));
        if (body->failed || !rapt_module_visit(module, RAPT_PARAMETERS, init_parameter, gpt)) module->failed = true;
    }
    return rapt_module_finish(module);
}

static bool check_exist(const rapt_gpt *gpt, const rapt_tensor *tokens)
{
    return (gpt && tokens) || rapt_fail(RAPT_ERROR_NULL, kind.name, gpt ? "the tokens are NULL" : "the model is NULL");
}

bool rapt_gpt_check_tokens(const rapt_tensor *tokens)
{
    char text[128];
    if (rapt_rank(tokens) != 2 || rapt_size(tokens, 1) < 1)
        return rapt_fail(RAPT_ERROR_SHAPE, kind.name, "tokens (B, T) with a T of 1 or more expected, not %s%s",
                         rapt_describe(tokens, text, sizeof text), rapt_batch_cure(tokens, 2));
    return rapt_is_integer(tokens) || rapt_fail(RAPT_ERROR_DTYPE, kind.name, "tokens of %s; int64 or int32 expected",
                                                rapt_dtype_name(rapt_get_dtype(tokens)));
}

static bool check_context(const rapt_gpt *gpt, const rapt_tensor *tokens, int64_t before)
{
    return rapt_size(tokens, 1) <= gpt->config.context - before ||
           rapt_fail(RAPT_ERROR_VALUE, kind.name, "%lld tokens after %lld in the cache; the context is %lld",
                     (long long)rapt_size(tokens, 1), (long long)before, (long long)gpt->config.context);
}

/* Embeddings of tokens at positions from `before` on, or, packed, in each sequence. */
static rapt_tensor *embed(rapt_gpt *gpt, rapt_tensor *tokens, int64_t before, rapt_tensor *places)
{
    rapt_tensor *x = rapt_embedding_forward(gpt->wte, tokens);
    if (gpt->wpe)
        x = places ? rapt_learned_positions_forward_at(gpt->wpe, x, places)
                   : rapt_learned_positions_forward(gpt->wpe, x, before);
    if (gpt->sinusoidal) {
        x = rapt_mul_scalar(x, sqrt((double)gpt->config.hidden));
        x = places ? rapt_sinusoidal_positions_forward_at(gpt->sinusoidal, x, places)
                   : rapt_sinusoidal_positions_forward(gpt->sinusoidal, x, before);
    }
    return x && gpt->module.training && gpt->config.dropout != 0 ? rapt_drop(x, gpt->config.dropout) : x;
}

/* Through the blocks; length: of the longest sequence, what is in the caches included. */
static rapt_tensor *run_blocks(rapt_gpt *gpt, rapt_tensor *x, rapt_mask mask, int64_t length,
                               rapt_attention_cache *caches)
{
    mask.causal = true;
    mask.window = gpt->config.window;
    if (gpt->alibi && x) {
        mask.relative_bias = rapt_alibi_forward(gpt->alibi, rapt_get_dtype(x), length > 0 ? length - 1 : 0);
        if (!mask.relative_bias) return NULL;
    }
    return x ? rapt_transformer_encoder_forward(gpt->blocks, x, &mask, caches) : NULL;
}

/* --- across ranks --- */

rapt_ring_call rapt_gpt_begin(const rapt_gpt *gpt)
{
    return gpt ? rapt_transformer_encoder_begin(gpt->blocks) : rapt_ring_begin(NULL);
}

rapt_tensor *rapt_gpt_end(const rapt_ring_call *across, rapt_tensor *result)
{
    return rapt_ring_end(across, kind.name, result);
}

static bool check_own_tokens(const rapt_gpt *gpt, const rapt_tensor *tokens, const rapt_ring *ring, bool cached)
{
    char text[128];
    const int64_t expected = rapt_ring_count(ring);
    if (cached) return rapt_fail(RAPT_ERROR_UNSUPPORTED, kind.name, "a cache beside attention across ranks");
    if (rapt_rank(tokens) != 2 || rapt_size(tokens, 1) != expected)
        return rapt_fail(RAPT_ERROR_SHAPE, kind.name,
                         "tokens (B, %lld), those of rank %d in a sequence of %lld, expected, not %s",
                         (long long)expected, ring->rank, (long long)ring->length,
                         rapt_describe(tokens, text, sizeof text));
    return ring->length <= gpt->config.context ||
           rapt_fail(RAPT_ERROR_VALUE, kind.name, "a sequence of %lld tokens; the context is %lld",
                     (long long)ring->length, (long long)gpt->config.context);
}

/* This rank's tokens, at their places in the sequence. */
static rapt_tensor *own_states(rapt_gpt *gpt, rapt_tensor *tokens, const rapt_ring *ring, bool cached)
{
    if (!check_own_tokens(gpt, tokens, ring, cached)) return NULL;
    RAPT_SCOPE;
    rapt_tensor *places = rapt_ring_places(ring), *x = places ? embed(gpt, tokens, 0, places) : NULL;
    return rapt_keep(run_blocks(gpt, x, (rapt_mask){0}, ring->length, NULL));
}

/* --- forward --- */

rapt_tensor *rapt_gpt_states(rapt_gpt *gpt, rapt_tensor *tokens, int64_t before, rapt_attention_cache *caches)
{
    if (!check_exist(gpt, tokens)) return NULL;
    const rapt_ring *ring = rapt_gpt_begin(gpt).ring;
    if (ring) return own_states(gpt, tokens, ring, caches != NULL);
    if (!rapt_gpt_check_tokens(tokens) || !check_context(gpt, tokens, before)) return NULL;
    RAPT_SCOPE;
    const int64_t length = rapt_size(tokens, 1);
    rapt_tensor *missing = before > 0 && caches ? caches[0].missing : NULL, *places = NULL;
    if (missing) { /* (B, T) */
        places =
            rapt_sub(rapt_arange(RAPT_INT64, (double)before, (double)(before + length), 1), rapt_unsqueeze(missing, 1));
        if (!places) return NULL;
    }
    return rapt_keep(run_blocks(gpt, embed(gpt, tokens, before, places), (rapt_mask){0}, before + length, caches));
}

rapt_tensor *rapt_gpt_packed_states(rapt_gpt *gpt, rapt_tensor *tokens, rapt_tensor *starts,
                                    rapt_attention_cache *caches)
{
    char text[128];
    if (!check_exist(gpt, tokens)) return NULL;
    RAPT_SCOPE;
    rapt_raw_packing p;
    if (!rapt_read_packing(kind.name, starts, &p)) return NULL;
    if (rapt_rank(tokens) != 1 || rapt_count(tokens) != p.rows) {
        rapt_fail(RAPT_ERROR_SHAPE, kind.name, "tokens (%lld) expected by the starts, not %s", (long long)p.rows,
                  rapt_describe(tokens, text, sizeof text));
        return NULL;
    }
    if (p.longest > gpt->config.context) {
        rapt_fail(RAPT_ERROR_VALUE, kind.name, "a sequence of %lld tokens; the context is %lld", (long long)p.longest,
                  (long long)gpt->config.context);
        return NULL;
    }
    rapt_tensor *places = rapt_packing_positions(starts);
    if (!places) return NULL;
    return rapt_keep(run_blocks(gpt, embed(gpt, tokens, 0, places), (rapt_mask){.starts = starts}, p.longest, caches));
}

rapt_tensor *rapt_gpt_hidden(rapt_gpt *gpt, rapt_tensor *tokens, rapt_tensor *starts)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)gpt);
    RAPT_SCOPE;
    const rapt_ring_call across = rapt_gpt_begin(gpt);
    rapt_tensor *states =
        starts ? rapt_gpt_packed_states(gpt, tokens, starts, NULL) : rapt_gpt_states(gpt, tokens, 0, NULL);
    return rapt_keep(rapt_gpt_end(&across, states));
}

rapt_tensor *rapt_gpt_forward_packed(rapt_gpt *gpt, rapt_tensor *tokens, rapt_tensor *starts)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)gpt);
    RAPT_SCOPE;
    const rapt_ring_call across = rapt_gpt_begin(gpt);
    rapt_tensor *logits = rapt_gpt_logits(gpt, rapt_gpt_packed_states(gpt, tokens, starts, NULL));
    return rapt_keep(rapt_gpt_end(&across, logits));
}

static rapt_tensor *head_of(const rapt_gpt *gpt)
{
    return gpt->lm_head ? gpt->lm_head->weight : gpt->wte->weight;
}

rapt_tensor *rapt_gpt_logits(rapt_gpt *gpt, rapt_tensor *states)
{
    return states ? rapt_affine(states, head_of(gpt), NULL) : NULL;
}

/* The loss of the next tokens, whose logits are never stored. */
static rapt_tensor *loss_of(rapt_gpt *gpt, rapt_tensor *states, rapt_tensor *targets,
                            const rapt_cross_entropy_options *options)
{
    return states ? rapt_linear_cross_entropy(states, head_of(gpt), NULL, targets, options) : NULL;
}

rapt_tensor *rapt_gpt_loss(rapt_gpt *gpt, rapt_tensor *tokens, rapt_tensor *targets,
                           const rapt_cross_entropy_options *options)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)gpt);
    RAPT_SCOPE;
    const rapt_ring_call across = rapt_gpt_begin(gpt);
    return rapt_keep(rapt_gpt_end(&across, loss_of(gpt, rapt_gpt_states(gpt, tokens, 0, NULL), targets, options)));
}

rapt_tensor *rapt_gpt_loss_packed(rapt_gpt *gpt, rapt_tensor *tokens, rapt_tensor *starts, rapt_tensor *targets,
                                  const rapt_cross_entropy_options *options)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)gpt);
    RAPT_SCOPE;
    const rapt_ring_call across = rapt_gpt_begin(gpt);
    rapt_tensor *loss = loss_of(gpt, rapt_gpt_packed_states(gpt, tokens, starts, NULL), targets, options);
    return rapt_keep(rapt_gpt_end(&across, loss));
}
