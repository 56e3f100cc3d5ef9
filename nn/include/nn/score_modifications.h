/* The modifications of an attention made ready for one call. */
#ifndef RAPT_NN_SCORE_MODIFICATIONS_H
#define RAPT_NN_SCORE_MODIFICATIONS_H

#include <rapt/score_modification.h>

#include "tensor/score_changes.h"

/* What a call captures belongs to the innermost scope. */
typedef struct rapt_resolved_changes {
    rapt_score_changes changes;
    rapt_tensor *captured[rapt_most_captured]; /* dense */
} rapt_resolved_changes;

/* Captures for scores of that dtype and shape (batch, heads, …). False after an error under the name of the
 * modification. */
bool rapt_resolve_changes(int count, rapt_score_modification *const *modifications, rapt_dtype dtype, int64_t batch,
                          int64_t heads, rapt_resolved_changes *resolved);

/* Can modifications, which see differences of places, be told where the queries are: at i + offset or, unless NULL, at
 * places as below? False and an error for one that is too far. */
bool rapt_check_change_places(const char *op, int64_t offset, const rapt_tensor *places);

/* Has each of them functions over tiles? changes may be NULL: none. */
bool rapt_changes_have_functions(const rapt_resolved_changes *changes);

/* The plain way: scores (B, Q, K) or (B, heads, Q, K) changed, where query i is at place i + offset or, unless NULL,
 * where places say: int64 (Q) or (1 or B, Q), dense. NULL for NULL and after an error; changes may be NULL: none. */
rapt_tensor *rapt_change_plainly(const rapt_resolved_changes *changes, rapt_tensor *scores, int64_t offset,
                                 rapt_tensor *places);

/* Captured tensors as the loops read them; none of them wants a gradient yet. */
void rapt_raw_changes_of(const rapt_score_changes *changes, rapt_dtype dtype, rapt_tensor *const *captured,
                         rapt_raw_changes *raw);

#endif
