/* What a scoring function gives, and a scoring function alone. */
#include <rapt/scoring.h>

#include "nn/padding.h"
#include "nn/pooling.h"
#include "tensor/debug.h"

static rapt_tensor *given(const rapt_scoring *scoring, const char *function, rapt_tensor *result)
{
    if (!result) rapt_fail(RAPT_ERROR_VALUE, scoring->module.kind->name, "its %s failed without a reason", function);
    return result;
}

rapt_tensor *rapt_scoring_prepare(rapt_scoring *scoring, rapt_tensor *keys, rapt_tensor *seen_keys)
{
    if (!keys) return NULL;
    if (seen_keys && scoring->prepare_seen)
        return given(scoring, "prepare_seen", scoring->prepare_seen(scoring, keys, seen_keys));
    keys = rapt_hide_rows(keys, seen_keys);
    return keys && scoring->prepare ? given(scoring, "prepare", scoring->prepare(scoring, keys)) : keys;
}

rapt_tensor *rapt_scoring_score(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *prepared_keys)
{
    return given(scoring, "score", scoring->score(scoring, queries, prepared_keys));
}

rapt_tensor *rapt_scoring_relative_bias(rapt_scoring *scoring, rapt_tensor *queries)
{
    return given(scoring, "relative_bias", scoring->relative_bias(scoring, queries));
}

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
    rapt_tensor *prepared = rapt_scoring_prepare(scoring, keys, NULL);
    rapt_tensor *scores = prepared ? rapt_scoring_score(scoring, queries, prepared) : NULL;
    if (!scores || !scoring->relative_bias) return rapt_keep(scores);
    rapt_tensor *bias = rapt_scoring_relative_bias(scoring, queries);
    return rapt_keep(
        rapt_add(scores, rapt_by_relative_position(bias, rapt_length_of(queries), rapt_length_of(keys), 0, true)));
}
