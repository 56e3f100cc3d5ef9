/* A bilinear form as a scoring function: a(q, k) = qᵀ M k. */
#include <math.h>
#include <stdio.h>

#include "nn/fused_dot.h"
#include "scoring.h"

typedef struct bilinear {
    rapt_scoring scoring;
    rapt_tensor *matrix; /* M (query_size, key_size) */
} bilinear;

static rapt_tensor *prepare(rapt_scoring *scoring, rapt_tensor *keys)
{
    rapt_tensor *matrix = ((bilinear *)scoring)->matrix;
    if (!rapt_check_vectors(scoring, "keys", keys, rapt_size(matrix, 1))) return NULL;
    return rapt_affine(keys, matrix, NULL); /* M k: (…, K, q) */
}

static rapt_tensor *score(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *prepared_keys)
{
    int64_t size = rapt_size(((bilinear *)scoring)->matrix, 0);
    if (!rapt_check_pair(scoring, queries, size, prepared_keys, size)) return NULL;
    return rapt_matmul(queries, rapt_transpose(prepared_keys, -2, -1));
}

static rapt_tensor *attend(rapt_scoring *scoring, const rapt_attention_call *call)
{
    int64_t size = rapt_size(((bilinear *)scoring)->matrix, 0);
    return rapt_check_sizes(scoring, call->queries, size, call->keys, size)
               ? rapt_fused_dot(call->queries, call->keys, 1, call)
               : NULL;
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    const rapt_tensor *matrix = ((const bilinear *)module)->matrix;
    snprintf(text, size, "%lld x %lld", (long long)rapt_size(matrix, 0), (long long)rapt_size(matrix, 1));
}

static const rapt_module_class kind = {.name = "Bilinear", .describe = describe};

rapt_scoring *rapt_bilinear_scoring_new(int64_t query_size, int64_t key_size)
{
    if (query_size < 1 || key_size < 1) {
        rapt_fail(RAPT_ERROR_VALUE, kind.name, "query size %lld and key size %lld; 1 or more expected",
                  (long long)query_size, (long long)key_size);
        return NULL;
    }
    RAPT_SCOPE;
    bilinear *b = rapt_module_new(sizeof *b, &kind);
    if (!b) return NULL;
    b->scoring.prepare = prepare;
    b->scoring.score = score;
    b->scoring.attend = attend;
    rapt_tensor *matrix = rapt_empty(RAPT_FLOAT32, RAPT_SHAPE(query_size, key_size));
    /* Uniform of variance 1 / (query_size · key_size): of N(0, 1) vectors the scores have variance 1, as scaled dot
     * products. */
    double bound = sqrt(3 / ((double)query_size * (double)key_size));
    if (matrix && !rapt_fill_uniform(matrix, -bound, bound)) matrix = NULL;
    b->matrix = rapt_module_add_parameter(&b->scoring.module, "M", matrix);
    return rapt_module_finish(&b->scoring.module);
}
