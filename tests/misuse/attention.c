/* Mistakes with attention: masks, lengths, heads and caches. */
#include <math.h>

#include "mistakes.h"

/* Queries, keys and values (2, 4, 3) under a mask. */
static rapt_tensor *attend(const rapt_mask *mask)
{
    rapt_tensor *x = rapt_require_gradient(ones(RAPT_SHAPE(2, 4, 3)));
    return rapt_attention_forward(rapt_dot_product_attention_new(0), x, x, x, mask);
}

static rapt_multi_head_attention *heads_of(int64_t hidden, int heads)
{
    return rapt_multi_head_attention_new(&(rapt_multi_head_attention_config){.hidden = hidden, .heads = heads});
}

static bool lengths_of_other_batch(void)
{
    return !attend(RAPT_MASK(.valid_lengths = integers(3, (int64_t[]){1, 2, 3})));
}

static bool seen_of_other_length(void)
{
    return !attend(RAPT_MASK(.seen = rapt_ones(RAPT_BOOL, RAPT_SHAPE(2, 4, 5))));
}

static bool lengths_too_long(void)
{
    return is_all(attend(RAPT_MASK(.valid_lengths = integers(2, (int64_t[]){4, 99}))), 1);
}

static bool negative_lengths(void)
{
    return is_all(attend(RAPT_MASK(.valid_lengths = integers(2, (int64_t[]){-1, -2}))), 0);
}

static bool nothing_seen(void)
{
    rapt_tensor *x = leaf(RAPT_SHAPE(2, 4, 3)), *lengths = integers(2, (int64_t[]){0, 0});
    rapt_tensor *y =
        rapt_attention_forward(rapt_dot_product_attention_new(0), x, x, x, RAPT_MASK(.valid_lengths = lengths));
    return is_all(y, 0) && rapt_backward(total(y)) && is_all(rapt_gradient(x), 0);
}

static bool causal_of_other_length(void)
{
    rapt_tensor *q = ones(RAPT_SHAPE(1, 2, 3)), *k = ones(RAPT_SHAPE(1, 4, 3));
    rapt_tensor *v = rapt_reshape(rapt_arange(RAPT_FLOAT32, 0, 4, 1), RAPT_SHAPE(1, 4, 1));
    rapt_tensor *y = rapt_attention_forward(rapt_dot_product_attention_new(0), q, k, v, RAPT_MASK(.causal = true));
    return y && rapt_at(y, (const int64_t[]){0, 0, 0}) == 0 && rapt_at(y, (const int64_t[]){0, 1, 0}) == 0.5;
}

static bool float_mask(void)
{
    return !attend(RAPT_MASK(.seen = ones(RAPT_SHAPE(2, 4, 4))));
}

static bool bias_of_other_dtype(void)
{
    return !attend(RAPT_MASK(.bias = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(4, 4))));
}

static bool even_relative_bias(void)
{
    return !attend(RAPT_MASK(.relative_bias = ones(RAPT_SHAPE(4))));
}

static bool mask_that_is_gone(void)
{
    rapt_tensor *lengths;
    {
        RAPT_SCOPE;
        lengths = integers(2, (int64_t[]){1, 2});
    }
    return !attend(RAPT_MASK(.valid_lengths = lengths));
}

static bool no_batch_axis(void)
{
    rapt_tensor *x = ones(RAPT_SHAPE(4, 3));
    return !rapt_attention_forward(rapt_dot_product_attention_new(0), x, x, x, NULL);
}

static bool fewer_values(void)
{
    rapt_tensor *x = ones(RAPT_SHAPE(2, 4, 3));
    return !rapt_attention_forward(rapt_dot_product_attention_new(0), x, x, ones(RAPT_SHAPE(2, 5, 3)), NULL);
}

static bool sizes_differ(void)
{
    rapt_tensor *keys = ones(RAPT_SHAPE(2, 4, 5));
    return !rapt_attention_forward(rapt_dot_product_attention_new(0), ones(RAPT_SHAPE(2, 4, 3)), keys, keys, NULL);
}

static bool dtypes_differ(void)
{
    rapt_tensor *x = ones(RAPT_SHAPE(2, 4, 3)), *keys = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 4, 3));
    return !rapt_attention_forward(rapt_dot_product_attention_new(0), x, keys, keys, NULL);
}

static bool heads_do_not_divide(void)
{
    return !heads_of(10, 3);
}

static bool odd_heads_turned(void)
{
    return !rapt_multi_head_attention_new(
        &(rapt_multi_head_attention_config){.hidden = 6, .heads = 2, .rotary = rapt_rotary_new()});
}

static bool mask_without_heads(void)
{
    rapt_tensor *x = ones(RAPT_SHAPE(2, 4, 6));
    return !rapt_multi_head_attention_forward(heads_of(6, 2), x, x, x,
                                              RAPT_MASK(.seen = rapt_ones(RAPT_BOOL, RAPT_SHAPE(2, 4, 4))), NULL);
}

static bool dropout_in_percent(void)
{
    rapt_attention *attention = rapt_dot_product_attention_new(10);
    rapt_tensor *x = ones(RAPT_SHAPE(2, 4, 3));
    return !attention || !rapt_attention_forward(attention, x, x, x, NULL);
}

static bool weights_not_kept(void)
{
    rapt_attention *attention = rapt_dot_product_attention_new(0);
    rapt_tensor *x = ones(RAPT_SHAPE(2, 4, 3));
    return rapt_attention_forward(attention, x, x, x, NULL) && !attention->weights;
}

static bool cache_while_recording(void)
{
    rapt_attention_cache cache = {0};
    rapt_tensor *x = ones(RAPT_SHAPE(2, 4, 6));
    return !rapt_multi_head_attention_forward(heads_of(6, 2), x, x, x, NULL, &cache);
}

static bool cache_of_other_batch(void)
{
    RAPT_NO_GRADIENT;
    rapt_multi_head_attention *heads = heads_of(6, 2);
    rapt_attention_cache cache = {0};
    rapt_tensor *x = ones(RAPT_SHAPE(2, 4, 6)), *y = ones(RAPT_SHAPE(3, 1, 6));
    return rapt_multi_head_attention_forward(heads, x, x, x, NULL, &cache) &&
           !rapt_multi_head_attention_forward(heads, y, y, y, NULL, &cache);
}

static rapt_gpt *gpt(void)
{
    return rapt_gpt_new(&(rapt_gpt_config){.vocabulary = 5, .context = 4, .hidden = 4, .layers = 1, .heads = 2});
}

static bool beyond_context(void)
{
    return !rapt_gpt_forward(gpt(), rapt_zeros(RAPT_INT64, RAPT_SHAPE(1, 5)), NULL);
}

static bool cache_of_other_model(void)
{
    RAPT_NO_GRADIENT;
    return !rapt_gpt_forward(gpt(), rapt_zeros(RAPT_INT64, RAPT_SHAPE(1, 2)), rapt_gpt_cache_new(gpt()));
}

static bool cache_after_free(void)
{
    RAPT_NO_GRADIENT;
    rapt_gpt *model = gpt();
    rapt_gpt_cache *cache = rapt_gpt_cache_new(model);
    rapt_gpt_cache_free(cache);
    return !rapt_gpt_forward(model, rapt_zeros(RAPT_INT64, RAPT_SHAPE(1, 2)), cache);
}

static bool cache_outlives_model(void)
{
    RAPT_NO_GRADIENT;
    rapt_gpt *model = gpt();
    rapt_gpt_cache *cache = rapt_gpt_cache_new(model);
    rapt_module_free(&model->module);
    return !rapt_gpt_forward(model, rapt_zeros(RAPT_INT64, RAPT_SHAPE(1, 2)), cache);
}

static bool starts_are_lengths(void)
{
    rapt_tensor *rows = ones(RAPT_SHAPE(5, 3)), *lengths = integers(2, (int64_t[]){2, 3});
    return !rapt_attention_forward(rapt_dot_product_attention_new(0), rows, rows, rows, RAPT_MASK(.starts = lengths));
}

const mistake attention_mistakes[] = {
    {"The lengths of another batch", lengths_of_other_batch, FAILS, RAPT_ERROR_SHAPE,
     "valid lengths (B) or (B, Q) expected for scores [2, 4, 4], not [3]", "Make the mask of the batch that goes in."},
    {"A mask of another length", seen_of_other_length, FAILS, RAPT_ERROR_SHAPE,
     "the mask's seen [2, 4, 5] does not broadcast to the scores [2, 4, 4]", "(B, Q, K): as many keys as there are."},
    {"Lengths beyond the number of keys", lengths_too_long, WORKS, RAPT_OK, "all keys are seen", "None needed."},
    {"Negative lengths", negative_lengths, WORKS, RAPT_OK, "nothing is seen: zeros", "Look where they come from."},
    {"A query sees nothing", nothing_seen, WORKS, RAPT_OK, "its result and its gradients are zeros, not NaN",
     "None needed."},
    {"A causal mask of fewer queries than keys", causal_of_other_length, WORKS, RAPT_OK,
     "query i sees the keys up to i, counted from the first", "`.offset` says how many keys come before query 0."},
    {"A mask of floats", float_mask, FAILS, RAPT_ERROR_DTYPE, "the mask's seen is float32",
     "`rapt_not_equal_scalar(mask, 0)`; TRUE IS SEEN."},
    {"A bias of another dtype than the scores", bias_of_other_dtype, FAILS, RAPT_ERROR_DTYPE,
     "the mask's bias is float64", "`rapt_cast` it."},
    {"A relative bias of an even number", even_relative_bias, FAILS, RAPT_ERROR_SHAPE,
     "an odd number of relative positions expected", "From −R to R there are 2R + 1."},
    {"The lengths are of a scope that has ended", mask_that_is_gone, GONE, RAPT_ERROR_GONE,
     "the mask's valid_lengths is gone: int64 [2]", "A mask holds no shares: make it where it is used."},
    {"No batch axis", no_batch_axis, FAILS, RAPT_ERROR_SHAPE,
     "queries of shape (B, length, size) expected, not float32 [4, 3]", "`rapt_unsqueeze(x, 0)`."},
    {"Keys and values of different lengths", fewer_values, FAILS, RAPT_ERROR_SHAPE, "one length of keys and values",
     "They belong together, one value for each key."},
    {"Queries and keys of different sizes, by dot product", sizes_differ, FAILS, RAPT_ERROR_SHAPE,
     "keys (..., length, 3) expected, not float32 [2, 4, 5]", "Project one, or additive attention."},
    {"Queries and keys of different dtypes", dtypes_differ, FAILS, RAPT_ERROR_DTYPE,
     "the queries are float32, the keys float64; one dtype expected", "`rapt_cast`."},
    {"Heads that do not divide the hidden size", heads_do_not_divide, FAILS, RAPT_ERROR_VALUE,
     "hidden size 10 and 3 heads; a multiple of 1 or more heads expected", "12 and 3."},
    {"Rotary positions of heads of an odd size", odd_heads_turned, FAILS, RAPT_ERROR_VALUE,
     "rotary positions need an even size", "They turn pairs of numbers."},
    {"A mask (B, Q, K) for several heads", mask_without_heads, FAILS, RAPT_ERROR_SHAPE,
     "(B, 1, Q, K), (1, heads, Q, K) or (B, heads, Q, K) expected", "`rapt_unsqueeze(mask, 1)`."},
    {"Dropout in percent", dropout_in_percent, FAILS, RAPT_ERROR_VALUE, "dropout 10; 0 to 1 expected", "0.1, not 10."},
    {"Weights are read that were not kept", weights_not_kept, WORKS, RAPT_OK, "`attention->weights` is NULL",
     "Set `keep_weights` before forward."},
    {"A cache while gradients are recorded", cache_while_recording, FAILS, RAPT_ERROR_UNSUPPORTED,
     "a cache is changed in place, which gradients cannot follow", "`RAPT_NO_GRADIENT;`."},
    {"A cache of another batch", cache_of_other_batch, FAILS, RAPT_ERROR_SHAPE, "the cache holds float32 [2, 2, 16, 3]",
     "`rapt_attention_cache_clear` between two batches."},
    {"More tokens than the context", beyond_context, FAILS, RAPT_ERROR_VALUE,
     "GPT: 5 tokens after 0 in the cache; the context is 4", "Cut the sequence, or a larger context."},
    {"A cache of another model", cache_of_other_model, FAILS, RAPT_ERROR_VALUE, "the cache belongs to another model",
     "One cache for each model."},
    {"A cache is used after it was freed", cache_after_free, GONE, RAPT_ERROR_GONE, "the GPT's cache is gone",
     "`rapt_gpt_cache_clear` empties it."},
    {"A cache outlives its model, which is used", cache_outlives_model, GONE, RAPT_ERROR_GONE, "the GPT is gone",
     "Free the cache first, then the model."},
    {"Lengths are given as starts", starts_are_lengths, FAILS, RAPT_ERROR_VALUE, "start 0 is 2",
     "`rapt_packing_starts(lengths)`."},
    {0},
};
