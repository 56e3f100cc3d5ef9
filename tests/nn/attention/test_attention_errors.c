/* Attention whose fields, or whose own functions, are wrong: an error that names which. */
#include "modules.h"
#include "refused.h"

static rapt_tensor *x;

static void begin(void)
{
    x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 4, 8));
}

TestSuite(attention_errors, .init = begin);

static rapt_tensor *pooled(rapt_attention *attention)
{
    return rapt_attention_forward(attention, x, x, x, NULL);
}

Test(attention_errors, fields_that_are_wrong)
{
    rapt_attention *attention = rapt_dot_product_attention_new(0);
    rapt_scoring *scoring = attention->scoring;
    attention->scoring = NULL;
    NULL_IN(pooled(attention), "Attention: the scoring function is NULL");
    NULL_IN(rapt_attention_prepare(attention, x, NULL), "Attention: the scoring function is NULL");
    attention->scoring = scoring;
    attention->modification_count = 1;
    NULL_IN(pooled(attention), "Attention: modification 0 is NULL");
    const int counts[] = {-1, RAPT_MAX_SCORE_MODIFICATIONS + 1};
    for (int i = 0; i < 2; i++) {
        char words[64];
        snprintf(words, sizeof words, "Attention: %d modifications; 0 to 4 expected", counts[i]);
        attention->modification_count = counts[i];
        BAD_VALUE(pooled(attention), words);
        BAD_VALUE(rapt_attention_prepare(attention, x, NULL), words);
        BAD_VALUE(rapt_attention_modify(attention, "cap", rapt_soft_cap_new(1)), words);
    }
    attention->modification_count = 0;
    cr_expect_not_null(pooled(attention), "%s", rapt_error());
    rapt_module_free(&attention->module);
}

Test(attention_errors, a_multi_head_attention_without_pooling)
{
    rapt_encoder_layer *layer = rapt_encoder_layer_new(
        &(rapt_transformer_config){.hidden = 8, .heads = 2, .feed_forward = 8, .encoder_layers = 1});
    rapt_multi_head_attention *m = layer->self_attn;
    rapt_attention *pooling = m->pooling;
    m->pooling = NULL;
    NULL_IN(rapt_multi_head_attention_forward(m, x, x, x, NULL, NULL), "MultiHeadAttention: the pooling is NULL");
    NULL_IN(rapt_encoder_layer_forward(layer, x, NULL, NULL), "MultiHeadAttention: the pooling is NULL");
    m->pooling = pooling;
    cr_expect_not_null(rapt_multi_head_attention_forward(m, x, x, x, NULL, NULL), "%s", rapt_error());
    rapt_module_free(&layer->module);
}

Test(attention_errors, transformers_without_pooling)
{
    const rapt_transformer_config config = {.hidden = 8,
                                            .heads = 2,
                                            .feed_forward = 8,
                                            .encoder_layers = 1,
                                            .decoder_layers = 1};
    rapt_transformer_encoder *encoder = rapt_transformer_encoder_new(&config);
    rapt_transformer_decoder *decoder = rapt_transformer_decoder_new(&config);
    cr_assert(encoder && decoder, "%s", rapt_error());
    encoder->layers[0]->self_attn->pooling = NULL;
    NULL_IN(rapt_transformer_encoder_forward(encoder, x, NULL, NULL), "the pooling is NULL");
    decoder->layers[0]->multihead_attn->pooling = NULL;
    NULL_IN(rapt_transformer_decoder_forward(decoder, x, x, NULL, NULL, NULL), "the pooling is NULL");
    decoder->layers[0]->self_attn->pooling = NULL;
    NULL_IN(rapt_transformer_decoder_forward(decoder, x, x, NULL, NULL, NULL), "the pooling is NULL");
    rapt_module_free(&encoder->module);
    rapt_module_free(&decoder->module);
}

static rapt_scoring *no_scoring(int64_t size, void *context)
{
    (void)size, (void)context;
    return NULL;
}

Test(attention_errors, a_scoring_function_that_was_not_made)
{
    NULL_IN(rapt_attention_new(NULL, 0), "Attention: the scoring function is NULL");
    const rapt_transformer_config transformer = {.hidden = 8,
                                                 .heads = 2,
                                                 .feed_forward = 8,
                                                 .encoder_layers = 1,
                                                 .scoring = no_scoring};
    NULL_IN(rapt_transformer_encoder_new(&transformer), "Attention: the scoring function is NULL");
    const rapt_bahdanau_config bahdanau = {5, 4, 4, 1, 0, .scoring = no_scoring};
    NULL_IN(rapt_bahdanau_decoder_new(&bahdanau), "Attention: the scoring function is NULL");
}

/* --- functions of one's own --- */

static rapt_tensor *score(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *keys)
{
    (void)scoring;
    return rapt_matmul(queries, rapt_transpose(keys, -1, -2));
}

static rapt_tensor *no_score(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *keys)
{
    (void)scoring, (void)queries, (void)keys;
    return NULL;
}

static rapt_tensor *nothing(rapt_scoring *scoring, rapt_tensor *vectors)
{
    (void)scoring, (void)vectors;
    return NULL;
}

static rapt_tensor *first_key(rapt_scoring *scoring, rapt_tensor *keys)
{
    (void)scoring;
    return rapt_slice(keys, -2, 0, 1, 1);
}

static rapt_tensor *first_item(rapt_scoring *scoring, rapt_tensor *keys)
{
    (void)scoring;
    return rapt_select(keys, 0, 0);
}

static rapt_tensor *no_odd_table(rapt_scoring *scoring, rapt_tensor *queries)
{
    (void)scoring, (void)queries;
    return rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2, 4, 4));
}

static rapt_tensor *table_of_three(rapt_scoring *scoring, rapt_tensor *queries)
{
    (void)scoring, (void)queries;
    return rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 5));
}

static rapt_tensor *number(rapt_scoring *scoring, rapt_tensor *queries)
{
    (void)scoring, (void)queries;
    return rapt_zeros(RAPT_FLOAT32, 0, NULL);
}

static rapt_attention *own_attention(void)
{
    static const rapt_module_class kind = {.name = "Mine"};
    rapt_scoring *scoring = rapt_module_new(sizeof *scoring, &kind);
    scoring->score = score;
    return rapt_attention_new(rapt_module_finish(&scoring->module), 0);
}

Test(attention_errors, own_scoring_functions_that_fail)
{
    rapt_attention *attention = own_attention();
    rapt_scoring *scoring = attention->scoring;
    rapt_tensor *lengths = rapt_ones(RAPT_INT64, RAPT_SHAPE(2));
    scoring->relative_bias = nothing;
    BAD_VALUE(pooled(attention), "Mine: its relative_bias failed without a reason");
    BAD_VALUE(rapt_score(scoring, x, x), "Mine: its relative_bias failed without a reason");
    scoring->prepare = nothing;
    BAD_VALUE(pooled(attention), "Mine: its prepare failed without a reason");
    BAD_VALUE(rapt_attention_prepare(attention, x, NULL), "Mine: its prepare failed without a reason");
    BAD_VALUE(rapt_score(scoring, x, x), "Mine: its prepare failed without a reason");
    scoring->prepare = NULL;
    scoring->prepare_seen = no_score;
    BAD_VALUE(rapt_attention_forward(attention, x, x, x, RAPT_MASK(.valid_lengths = lengths)),
              "Mine: its prepare_seen failed without a reason");
    scoring->score = no_score;
    BAD_VALUE(pooled(attention), "Mine: its score failed without a reason");
    BAD_VALUE(rapt_score(scoring, x, x), "Mine: its score failed without a reason");
    rapt_module_free(&attention->module);
}

Test(attention_errors, own_scoring_functions_of_the_wrong_shape)
{
    rapt_attention *attention = own_attention();
    rapt_scoring *scoring = attention->scoring;
    const rapt_mask biased = {.relative_bias = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(3))};
    scoring->prepare = first_key;
    BAD_SHAPE(pooled(attention), "Attention: 4 prepared keys of rank 3 expected of the scoring function Mine, not "
                                 "float32 [2, 1, 8]");
    scoring->prepare = first_item;
    BAD_SHAPE(rapt_attention_prepare(attention, x, NULL), "not float32 [4, 8]");
    scoring->prepare = NULL;
    scoring->relative_bias = no_odd_table;
    BAD_SHAPE(pooled(attention), "Attention: the scoring function's relative_bias is [2, 4, 4]; an odd number");
    scoring->relative_bias = table_of_three;
    BAD_SHAPE(pooled(attention), "Attention: the scoring function's relative_bias [2, 3, 5] does not broadcast");
    BAD_SHAPE(rapt_attention_forward(attention, x, x, x, &biased), "the scoring function's relative_bias [2, 3, 5]");
    scoring->relative_bias = number;
    BAD_SHAPE(rapt_attention_forward(attention, x, x, x, &biased), "the scoring function's relative_bias is []");
    rapt_module_free(&attention->module);
}

static rapt_tensor *of_first_key(rapt_tensor *scores, const rapt_mask *mask)
{
    (void)mask;
    return rapt_slice(scores, -1, 0, 1, 1);
}

Test(attention_errors, an_own_normaliser_of_the_wrong_shape)
{
    rapt_attention *attention = rapt_dot_product_attention_new(0);
    attention->normalizer = of_first_key;
    BAD_SHAPE(pooled(attention), "Attention: weights [2, 4, 4] expected of the normaliser, not [2, 4, 1]");
    rapt_module_free(&attention->module);
}

static bool no_capture(rapt_score_modification *modification, rapt_dtype dtype, rapt_tensor **captured)
{
    (void)modification, (void)dtype, (void)captured;
    return false;
}

static rapt_tensor *no_ops(const void *options, rapt_tensor *scores, rapt_tensor *const *captured, rapt_tensor *queries,
                           rapt_tensor *keys)
{
    (void)options, (void)scores, (void)captured, (void)queries, (void)keys;
    return NULL;
}

Test(attention_errors, own_modifications_that_fail)
{
    rapt_tensor *scores = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(1, 2, 2));
    for (int i = 0; i < 2; i++) {
        rapt_attention *attention = rapt_dot_product_attention_new(0);
        rapt_score_modification *m = rapt_attention_modify(attention, "temperature", rapt_head_temperature_new(1));
        attention->plain = true;
        const char *words = i ? "HeadTemperature: its by_ops failed without a reason"
                              : "HeadTemperature: its capture failed without a reason";
        if (i)
            m->by_ops = no_ops;
        else
            m->capture = no_capture;
        BAD_VALUE(pooled(attention), words);
        BAD_VALUE(rapt_modify_scores(m, scores, 0), words);
        rapt_module_free(&attention->module);
    }
}
