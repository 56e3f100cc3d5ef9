/* Additive attention's scoring function: a(q, k) = w_vᵀ tanh(W_q q + W_k k). */
#include <rapt/attention.h>

typedef struct additive {
    rapt_scoring scoring;
    rapt_linear *query, *key, *value;
} additive;

static rapt_tensor *prepare(rapt_scoring *scoring, rapt_tensor *keys)
{
    return rapt_linear_forward(((additive *)scoring)->key, keys); /* W_k k: (B, K, h) */
}

static rapt_tensor *score(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *prepared_keys)
{
    additive *a = (additive *)scoring;
    /* (B, Q, 1, h) + (B, 1, K, h) → (B, Q, K, h) */
    rapt_tensor *query = rapt_unsqueeze(rapt_linear_forward(a->query, queries), 2);
    rapt_tensor *features = rapt_tanh(rapt_add(query, rapt_unsqueeze(prepared_keys, 1)));
    /* w_vᵀ features: (B, Q, K) */
    return rapt_squeeze(rapt_linear_forward(a->value, features), -1);
}

static const rapt_module_class kind = {.name = "Additive"};

rapt_scoring *rapt_additive_scoring_new(int64_t query_size, int64_t key_size, int64_t hidden)
{
    additive *a = rapt_module_new(sizeof *a, &kind);
    if (!a) return NULL;
    rapt_module *module = &a->scoring.module;
    a->scoring.prepare = prepare;
    a->scoring.score = score;
    a->key = rapt_module_add_child(module, "W_k", (rapt_module *)rapt_linear_new(key_size, hidden, RAPT_NO_BIAS));
    a->query = rapt_module_add_child(module, "W_q", (rapt_module *)rapt_linear_new(query_size, hidden, RAPT_NO_BIAS));
    a->value = rapt_module_add_child(module, "w_v", (rapt_module *)rapt_linear_new(hidden, 1, RAPT_NO_BIAS));
    return rapt_module_finish(module);
}

rapt_attention *rapt_additive_attention_new(int64_t query_size, int64_t key_size, int64_t hidden, double dropout)
{
    return rapt_attention_new(rapt_additive_scoring_new(query_size, key_size, hidden), dropout);
}
