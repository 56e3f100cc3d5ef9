/* Additive attention's scoring function: a(q, k) = w_vᵀ tanh(W_q q + W_k k). */
#include <rapt/attention.h>

#include "attention/fused_additive.h"
#include "attention/mask/linear_of_seen.h"
#include "scoring.h"
#include "tensor/random.h"

typedef struct additive {
    rapt_scoring scoring;
    rapt_linear *query, *key, *value;
} additive;

/* W_k k */
static rapt_tensor *prepare_seen(rapt_scoring *scoring, rapt_tensor *keys, rapt_tensor *seen_keys)
{
    rapt_linear *key = ((additive *)scoring)->key;
    if (!rapt_check_vectors(scoring, "keys", keys, key->in)) return NULL;
    rapt_tensor *projected = seen_keys ? rapt_linear_of_seen(key, keys, seen_keys) : rapt_linear_forward(key, keys);
    return projected ? rapt_additive_keys(projected) : NULL;
}

static rapt_tensor *prepare(rapt_scoring *scoring, rapt_tensor *keys)
{
    return prepare_seen(scoring, keys, NULL);
}

static rapt_tensor *score(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *prepared_keys)
{
    additive *a = (additive *)scoring;
    if (!rapt_check_pair(scoring, queries, a->query->in, prepared_keys, a->key->out)) return NULL;
    RAPT_SCOPE;
    return rapt_keep(rapt_additive_scores(rapt_linear_forward(a->query, queries), prepared_keys, a->value->weight));
}

static rapt_tensor *attend(rapt_scoring *scoring, const rapt_attention_call *call)
{
    additive *a = (additive *)scoring;
    if (!rapt_check_vectors(scoring, "queries", call->queries, a->query->in) ||
        !rapt_check_vectors(scoring, "prepared keys", call->keys, a->key->out))
        return NULL;
    return rapt_fused_additive(rapt_linear_forward(a->query, call->queries), call->keys, a->value->weight, call);
}

static const rapt_module_class kind = {.name = "Additive"};

bool rapt_additive_scoring_weights(const rapt_scoring *scoring, rapt_tensor **query, rapt_tensor **value)
{
    const additive *a = (const additive *)scoring;
    if (scoring->module.kind != &kind || scoring->attend != attend || scoring->relative_bias ||
        scoring->relative_values)
        return false;
    *query = a->query->weight;
    *value = a->value->weight;
    return true;
}

rapt_scoring *rapt_additive_scoring_new(int64_t query_size, int64_t key_size, int64_t hidden)
{
    if (query_size < 1 || key_size < 1 || hidden < 1) {
        rapt_fail(RAPT_ERROR_VALUE, kind.name, "query size %lld, key size %lld, hidden size %lld; 1 or more expected",
                  (long long)query_size, (long long)key_size, (long long)hidden);
        return NULL;
    }
    additive *a = rapt_module_new(sizeof *a, &kind);
    if (!a) return NULL;
    rapt_module *module = &a->scoring.module;
    a->scoring.prepare = prepare;
    a->scoring.prepare_seen = prepare_seen;
    a->scoring.score = score;
    a->scoring.attend = attend;
    a->key = rapt_module_add_child(module, "W_k", (rapt_module *)rapt_linear_new(key_size, hidden, RAPT_NO_BIAS));
    a->query = rapt_module_add_child(module, "W_q", (rapt_module *)rapt_linear_new(query_size, hidden, RAPT_NO_BIAS));
    a->value = rapt_module_add_child(module, "w_v", (rapt_module *)rapt_linear_new(hidden, 1, RAPT_NO_BIAS));
    return rapt_module_finish(module);
}

rapt_attention *rapt_additive_attention_new(int64_t query_size, int64_t key_size, int64_t hidden, double dropout)
{
    RAPT_UNDO_DRAWS;
    return rapt_attention_new(rapt_additive_scoring_new(query_size, key_size, hidden), dropout);
}
