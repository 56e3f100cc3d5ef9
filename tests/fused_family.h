/* The scoring functions that fused dot-product attention carries out, drawn at random. */
#ifndef RAPT_TESTS_FUSED_FAMILY_H
#define RAPT_TESTS_FUSED_FAMILY_H

#include "fused.h"

static const char *const family[] = {"dot",    "scaled dot", "padded dot",  "bilinear",
                                     "cosine", "relative",   "log Gaussian"};

static inline const scoring_case *find_scoring(const char *name)
{
    for (int i = 0; i < scoring_case_count; i++)
        if (strcmp(scoring_cases[i].name, name) == 0) return &scoring_cases[i];
    cr_assert_fail("no scoring function %s", name);
    return NULL;
}

static inline rapt_scoring *draw_dot_family(drawn *d, double scales[2])
{
    const scoring_case *scoring = find_scoring(family[draw_below(&d->state, sizeof family / sizeof *family)]);
    if (scoring->one_size) d->key_size = d->query_size;
    const double scale = 1 / sqrt((double)d->query_size); /* scores of about 1, which float32 rounds to 1e-7 */
    if (scoring->define == defined_log_gaussian) scales[0] = scales[1] = scale;
    if (scoring->define == defined_dot) scales[0] = scale;
    return scoring_of(scoring, d->query_size, d->key_size, d->dtype);
}

#endif
