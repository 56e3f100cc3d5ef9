/* Scoring functions given what they cannot take: bad numbers, sizes and types, no memory. */
#include "scorings.h"

Test(scoring_errors, constructors)
{
    const int64_t before = live_bytes();
    const double bad[] = {0, -1, (double)NAN, (double)INFINITY, 1e-300, 1e-39, 1e39};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int learns = 0; learns < 2; learns++) {
            cr_expect_null(rapt_cosine_scoring_new(bad[i], learns));
            expect_error(RAPT_ERROR_VALUE, "Cosine: temperature");
            cr_expect_null(rapt_gaussian_scoring_new(bad[i], learns));
            expect_error(RAPT_ERROR_VALUE, "a finite number above 0 expected");
            cr_expect_null(rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_GAUSSIAN, bad[i], learns));
            expect_error(RAPT_ERROR_VALUE, "RegressionKernel: width");
        }
    for (int shape = -1; shape <= 4; shape += 5) {
        cr_expect_null(rapt_regression_kernel_scoring_new((rapt_regression_kernel)shape, 1, false));
        expect_error(RAPT_ERROR_VALUE, "no regression kernel");
    }
    cr_expect_null(rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_BOXCAR, 1, true));
    expect_error(RAPT_ERROR_VALUE, "the gradient of a boxcar kernel is 0");
    cr_expect_null(rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_CONSTANT, 1, true));
    expect_error(RAPT_ERROR_VALUE, "constant");
    cr_expect_null(rapt_bilinear_scoring_new(0, 2));
    expect_error(RAPT_ERROR_VALUE, "Bilinear: query size 0 and key size 2; 1 or more expected");
    cr_expect_null(rapt_bilinear_scoring_new(INT64_MAX / 2, INT64_MAX / 2));
    expect_error(RAPT_ERROR_MEMORY, "");
    cr_expect_null(rapt_additive_scoring_new(2, 3, -4));
    expect_error(RAPT_ERROR_VALUE, "Additive: query size 2, key size 3, hidden size -4; 1 or more expected");
    cr_expect_null(rapt_relative_scoring_new(0, 0, 1));
    expect_error(RAPT_ERROR_VALUE, "Relative: size 0");
    cr_expect_null(rapt_relative_scoring_new(4, -1, 1));
    expect_error(RAPT_ERROR_VALUE, "value size -1");
    cr_expect_null(rapt_relative_scoring_new(4, 0, -2));
    expect_error(RAPT_ERROR_VALUE, "reach -2");
    cr_expect_null(rapt_relative_scoring_new(4, 0, INT64_MAX));
    expect_error(RAPT_ERROR_VALUE, "reach 9223372036854775807");
    cr_expect_eq(live_bytes(), before);
}

/* Of each scoring function, made for vectors of 3. */
Test(scoring_errors, vectors)
{
    for (int i = 0; i < scoring_case_count; i++) {
        RAPT_SCOPE;
        const scoring_case *c = &scoring_cases[i];
        rapt_scoring *scoring = scoring_of(c, 3, 3, RAPT_FLOAT32);
        const char *name = scoring->module.kind->name;
        rapt_tensor *queries = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 4, 3)),
                    *keys = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 5, 3)),
                    *wide = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 5, 7)),
                    *three = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 5, 3));
        if (strcmp(c->name, "padded dot") != 0) {
            cr_expect_null(rapt_score(scoring, queries, wide), "%s", c->name);
            expect_error(RAPT_ERROR_SHAPE, "keys (..., length, 3) expected, not float32 [2, 5, 7]");
        }
        cr_expect_null(rapt_score(scoring, queries, three), "%s", c->name);
        expect_error(RAPT_ERROR_SHAPE, "[2] and [3] do not broadcast");
        cr_expect_null(scoring->score(scoring, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3)), keys), "%s", c->name);
        expect_error(RAPT_ERROR_SHAPE, name);
        cr_expect_null(scoring->score(scoring, queries, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3))), "%s", c->name);
        expect_error(RAPT_ERROR_SHAPE, name);
        cr_expect_null(rapt_score(scoring, rapt_cast(queries, RAPT_INT64), keys), "%s", c->name);
        expect_error(RAPT_ERROR_DTYPE, "not int64 [2, 4, 3]");
        cr_expect_null(rapt_score(scoring, queries, rapt_cast(keys, RAPT_INT64)), "%s", c->name);
        expect_error(RAPT_ERROR_DTYPE, "not int64 [2, 5, 3]");
        cr_expect_null(rapt_score(scoring, rapt_cast(queries, RAPT_FLOAT64), keys), "%s", c->name);
        expect_error(RAPT_ERROR_DTYPE, "float64");
        cr_expect_null(rapt_score(scoring, NULL, keys));
        expect_error(RAPT_ERROR_NULL, "queries");
        cr_expect_null(rapt_score(scoring, queries, NULL));
        expect_error(RAPT_ERROR_NULL, "keys");
        cr_expect_null(scoring->score(scoring, NULL, keys));
        expect_error(RAPT_ERROR_NULL, "the queries are NULL");
        cr_expect_null(scoring->score(scoring, queries, NULL));
        expect_error(RAPT_ERROR_NULL, "the keys are NULL");
        rapt_module_free(&scoring->module);
    }
    RAPT_SCOPE;
    cr_expect_null(
        rapt_score(NULL, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 1)), rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 1))));
    expect_error(RAPT_ERROR_NULL, "scoring function");
}

/* Queries of a wrong size, where the size is known before the keys are. */
Test(scoring_errors, sizes_of_queries)
{
    RAPT_SCOPE;
    rapt_scoring *scorings[] = {rapt_bilinear_scoring_new(3, 2), rapt_additive_scoring_new(3, 2, 4),
                                rapt_relative_scoring_new(3, 0, 1)};
    for (int i = 0; i < 3; i++) {
        rapt_tensor *queries = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4, 9)),
                    *keys = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(5, i < 2 ? 2 : 3));
        cr_expect_null(rapt_score(scorings[i], queries, keys));
        expect_error(RAPT_ERROR_SHAPE, "queries (..., length, 3) expected, not float32 [4, 9]");
        rapt_module_free(&scorings[i]->module);
    }
}

/* Each constructor, and each scoring with its derivatives, with every allocation failing once. */
Test(scoring_errors, without_memory)
{
    for (int i = 0; i < scoring_case_count; i++) {
        RAPT_SCOPE;
        const scoring_case *c = &scoring_cases[i];
        rapt_tensor *queries = rapt_require_gradient(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 4))),
                    *keys = rapt_require_gradient(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 5, 4)));
        const int64_t before = live_bytes();
        bool done = false;
        for (int64_t failures = 0; !done; failures++) {
            rapt_scope scope = rapt_scope_begin();
            rapt_memory_fail_after(failures);
            rapt_scoring *scoring = c->make(4, 4);
            rapt_tensor *scores = scoring ? rapt_score(scoring, queries, keys) : NULL, *gradients[2];
            rapt_tensor *sum = rapt_sum(scores, RAPT_ALL_AXES, false);
            done = sum && rapt_gradients(1, &sum, NULL, 2, (rapt_tensor *[]){queries, keys}, gradients, 0);
            rapt_memory_fail_after(-1);
            if (!done) expect_error(RAPT_ERROR_MEMORY, "no memory");
            rapt_module_free((rapt_module *)scoring);
            rapt_scope_end(scope);
            cr_assert(live_bytes() == before, "%s: %lld bytes leak after failure %lld", c->name,
                      (long long)(live_bytes() - before), (long long)failures);
            cr_assert_lt(failures, 500);
        }
    }
    expect_no_error();
}
