/* Score modifications given what they cannot take, and wrong uses of them. */
#include "modules.h"
#include "score_modifications.h"

Test(score_modification, bad_numbers)
{
    const int64_t before = live_bytes();
    const double bad[] = {0, -1, (double)NAN, (double)INFINITY};
    for (int i = 0; i < 4; i++) {
        cr_expect_null(rapt_soft_cap_new(bad[i]));
        expect_error(RAPT_ERROR_VALUE, "SoftCap: cap");
        cr_expect_null(rapt_gaussian_window_new(2, bad[i], false));
        expect_error(RAPT_ERROR_VALUE, "GaussianWindow: width");
    }
    cr_expect_null(rapt_head_temperature_new(0));
    expect_error(RAPT_ERROR_VALUE, "0 heads");
    cr_expect_null(rapt_alibi_modification_new(-1));
    expect_error(RAPT_ERROR_VALUE, "-1 heads");
    cr_expect_null(rapt_learned_bias_new(1, INT64_MAX));
    expect_error(RAPT_ERROR_VALUE, "reach 9223372036854775807 is too large");
    cr_expect_null(rapt_bucketed_bias_new(1, 7, 100, true));
    expect_error(RAPT_ERROR_VALUE, "7 buckets");
    cr_expect_null(rapt_bucketed_bias_new(1, 1, 100, false));
    expect_error(RAPT_ERROR_VALUE, "1 buckets");
    cr_expect_null(rapt_bucketed_bias_new(1, 32, 16, false));
    expect_error(RAPT_ERROR_VALUE, "max_distance 16");
    cr_expect_null(rapt_prefix_modification_new(NULL));
    expect_error(RAPT_ERROR_NULL, "prefixes");
    cr_expect_eq(live_bytes(), before);
}

static rapt_tensor *pooled(rapt_attention *attention, rapt_dtype dtype, int64_t heads)
{
    rapt_tensor *x = rapt_ones(dtype, RAPT_SHAPE(2, heads, 3, 4));
    return rapt_attention_forward(attention, x, x, x, NULL);
}

static bool capture_nothing(rapt_score_modification *modification, rapt_dtype dtype, rapt_tensor **captured)
{
    (void)dtype;
    for (int c = 0; c < modification->captured_count; c++) captured[c] = NULL;
    return true;
}

static rapt_tensor *one_score(const void *options, rapt_tensor *scores, rapt_tensor *const *captured,
                              rapt_tensor *queries, rapt_tensor *keys)
{
    (void)options, (void)captured, (void)queries, (void)keys;
    return rapt_sum(scores, RAPT_ALL_AXES, false);
}

Test(score_modification, wrong_uses_get_their_sentence)
{
    RAPT_SCOPE;
    rapt_attention *attention = rapt_dot_product_attention_new(0);
    cr_expect_null(rapt_attention_modify(NULL, "a", rapt_soft_cap_new(1)));
    expect_error(RAPT_ERROR_NULL, "the layer is NULL");
    cr_expect_null(rapt_attention_modify(attention, "a", NULL));
    expect_error(RAPT_ERROR_NULL, "");
    own *m = (own *)rapt_attention_modify(attention, "gate", own_new(gate, 2, 3));
    cr_expect_null(pooled(attention, RAPT_FLOAT32, 4));
    expect_error(RAPT_ERROR_SHAPE, "gate: captured tensor 0 of shape (2 or 1, 4 or 1, ...) expected, not");
    cr_expect_null(pooled(attention, RAPT_FLOAT64, 3));
    expect_error(RAPT_ERROR_DTYPE, "captured tensor 0 is float32, the scores are float64");
    cr_expect_not_null(pooled(attention, RAPT_FLOAT32, 3));
    const rapt_score_functions functions = m->modification.float32;
    m->modification.float32.differentiate = NULL;
    cr_expect_null(pooled(attention, RAPT_FLOAT32, 3));
    expect_error(RAPT_ERROR_NULL, "no differentiate for float32");
    m->modification.float32.change = NULL;
    cr_expect_not_null(pooled(attention, RAPT_FLOAT32, 3)); /* by ops */
    m->modification.by_ops = NULL;
    cr_expect_null(pooled(attention, RAPT_FLOAT32, 3));
    expect_error(RAPT_ERROR_UNSUPPORTED, "neither functions for tiles of float32 nor by_ops");
    m->modification.float32 = functions;
    m->modification.options_size = RAPT_SCORE_OPTIONS_SIZE + 1;
    cr_expect_null(pooled(attention, RAPT_FLOAT32, 3));
    expect_error(RAPT_ERROR_VALUE, "options of 65 bytes");
    m->modification.options_size = 8;
    m->modification.captured_count = RAPT_MAX_CAPTURED + 1;
    cr_expect_null(pooled(attention, RAPT_FLOAT32, 3));
    expect_error(RAPT_ERROR_VALUE, "7 captured tensors");
    m->modification.captured_count = 2;
    m->modification.capture = NULL;
    cr_expect_null(pooled(attention, RAPT_FLOAT32, 3));
    expect_error(RAPT_ERROR_VALUE, "gate: 2 captured tensors without a function to capture them");
    m->modification.capture = capture_nothing;
    cr_expect_null(pooled(attention, RAPT_FLOAT32, 3));
    expect_error(RAPT_ERROR_NULL, "gate: captured tensor 0 is NULL");
    m->modification.captured_count = 0;
    m->modification.float32 = (rapt_score_functions){0};
    m->modification.by_ops = one_score;
    cr_expect_null(pooled(attention, RAPT_FLOAT32, 3));
    expect_error(RAPT_ERROR_SHAPE, "gate: float32 scores [2, 3, 3, 3] expected of by_ops, not float32 []");
    for (int k = 1; k < RAPT_MAX_SCORE_MODIFICATIONS; k++)
        cr_expect(rapt_attention_modify(attention, (const char[]){(char)('a' + k), 0}, rapt_soft_cap_new(k)));
    cr_expect_null(rapt_attention_modify(attention, "last", rapt_soft_cap_new(1)));
    expect_error(RAPT_ERROR_VALUE, "4 modifications");
    cr_expect_null(rapt_modify_scores(NULL, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 2, 2)), 0));
    expect_error(RAPT_ERROR_NULL, "the modification is NULL");
    cr_expect_null(rapt_modify_scores(&m->modification, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2)), 0));
    expect_error(RAPT_ERROR_SHAPE, "scores");
    rapt_module_free(&attention->module);
    expect_no_error();
}

/* Tables are read by differences of places, which do not overflow. */
Test(score_modification, places_too_far_for_differences)
{
    RAPT_SCOPE;
    const int64_t farthest = INT64_C(1) << 52, places[] = {0, INT64_MIN, 1};
    rapt_attention *attention = rapt_dot_product_attention_new(0);
    rapt_score_modification *m = rapt_attention_modify(attention, "bias", rapt_bucketed_bias_new(1, 4, 10, true));
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 3, 4)), *rows = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 4));
    rapt_tensor *scores = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 3, 4)),
                *starts = rapt_packing_starts(rapt_full(RAPT_INT64, RAPT_SHAPE(1), 3));
    for (int sign = -1; sign <= 1; sign += 2) {
        cr_expect(rapt_attention_forward(attention, x, x, x, RAPT_MASK(.offset = sign * farthest)));
        cr_expect(rapt_modify_scores(m, scores, sign * farthest));
        expect_no_error();
        const rapt_mask far = {.offset = sign * (farthest + 1)}, far_packed = {.offset = far.offset, .starts = starts};
        cr_expect_null(rapt_attention_forward(attention, x, x, x, &far));
        expect_error(RAPT_ERROR_VALUE, sign < 0 ? "query 0 is at place -4503599627370497" : "4503599627370497");
        cr_expect_null(rapt_attention_forward(attention, rows, rows, rows, &far_packed));
        expect_error(RAPT_ERROR_VALUE, "-2^52 to 2^52 expected beside a score modification");
        cr_expect_null(rapt_modify_scores(m, scores, far.offset));
        expect_error(RAPT_ERROR_VALUE, "-2^52 to 2^52 expected beside a score modification");
    }
    rapt_tensor *by_query = rapt_from(RAPT_INT64, RAPT_SHAPE(3), places);
    cr_expect_null(rapt_attention_forward(attention, x, x, x, RAPT_MASK(.query_places = by_query)));
    expect_error(RAPT_ERROR_VALUE, "query 1 is at place -9223372036854775808");
    rapt_module_free(&attention->module);
}
