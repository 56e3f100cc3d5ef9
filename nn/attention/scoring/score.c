/* A scoring function alone. */
#include <rapt/scoring.h>

#include "nn/pooling.h"
#include "tensor/debug.h"

rapt_tensor *rapt_score(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *keys)
{
    if (rapt_was_freed("score", scoring)) return NULL;
    if (!scoring || !scoring->score) {
        rapt_fail_null("score", scoring ? "the scoring function's score" : "the scoring function");
        return NULL;
    }
    if (!queries || !keys) {
        rapt_fail_null("score", queries ? "keys" : "queries");
        return NULL;
    }
    if (queries->rank < 2 || keys->rank < 2) {
        rapt_fail(RAPT_ERROR_SHAPE, "score", "queries of rank %d and keys of rank %d; 2 or more expected",
                  queries->rank, keys->rank);
        return NULL;
    }
    RAPT_SCOPE;
    rapt_tensor *prepared = scoring->prepare ? scoring->prepare(scoring, keys) : keys;
    rapt_tensor *scores = prepared ? scoring->score(scoring, queries, prepared) : NULL;
    if (!scores || !scoring->relative_bias) return rapt_keep(scores);
    rapt_tensor *bias = scoring->relative_bias(scoring, queries);
    return rapt_keep(
        rapt_add(scores, rapt_by_relative_position(bias, rapt_length_of(queries), rapt_length_of(keys), 0, true)));
}
