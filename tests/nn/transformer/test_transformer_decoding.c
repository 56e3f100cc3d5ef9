/* Transformers step by step with caches, what masks keep apart, derivatives, and errors. */
#include "transformer.h"

/* A decoder's caches, one for each layer. */
enum { layers = 2 };
typedef struct caches {
    rapt_decoder_cache layer[layers];
} caches;

static void clear(caches *c)
{
    for (int i = 0; i < layers; i++) rapt_decoder_cache_clear(&c->layer[i]);
}

/* x in steps of the given size, until it is used up, and put together again. After the first step the memory counts no
 * more: `later` can be anything. */
static rapt_tensor *step_by_step(rapt_transformer_decoder *d, rapt_tensor *x, rapt_tensor *memory, rapt_tensor *later,
                                 const rapt_mask *memory_mask, int64_t size)
{
    caches c = {0};
    rapt_tensor *steps[16];
    int count = 0;
    for (int64_t at = 0; at < rapt_size(x, 1); at += size, count++)
        steps[count] = rapt_transformer_decoder_forward(d, rapt_slice(x, 1, at, at + size, 1), at == 0 ? memory : later,
                                                        RAPT_MASK(.causal = true), memory_mask, c.layer);
    cr_expect_eq(c.layer[0].self.length, rapt_size(x, 1));
    cr_expect_eq(c.layer[0].memory.length, rapt_size(memory, 1), "the memory is projected once");
    clear(&c);
    return rapt_concat(count, steps, 1);
}

Test(transformer_decoding, cached_steps_are_the_whole)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_seed(1);
    for (int variant = 0; variant < 8; variant++) {
        config c = small;
        c.heads = 4;
        c.norm_first = variant & 1;
        c.final_norm = variant & 1;
        c.rotary = variant & 2;
        c.groups = variant & 4 ? 2 : 0;
        rapt_transformer_decoder *d = drawn(rapt_transformer_decoder_new(&c));
        rapt_tensor *x = random_input(3, 6, 8), *memory = random_input(3, 5, 8);
        const rapt_mask padding = {.valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){5, 2, 0})};
        rapt_tensor *whole = rapt_transformer_decoder_forward(d, x, memory, RAPT_MASK(.causal = true), &padding, NULL);
        expect_equal("one by one", step_by_step(d, x, memory, NULL, &padding, 1), whole);
        expect_equal("two by two", step_by_step(d, x, memory, memory, &padding, 2), whole);
        rapt_module_free(&d->module);
    }
    expect_no_error();
}

Test(transformer_decoding, an_encoder_with_caches_decodes_alone)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_seed(2);
    rapt_transformer_encoder *e = drawn(rapt_transformer_encoder_new(&small));
    rapt_tensor *x = random_input(2, 5, 8), *steps[5];
    rapt_attention_cache cache[layers] = {0};
    for (int64_t t = 0; t < 5; t++)
        steps[t] = rapt_transformer_encoder_forward(e, rapt_slice(x, 1, t, t + 1, 1), RAPT_MASK(.causal = true), cache);
    expect_equal("steps", rapt_concat(5, steps, 1),
                 rapt_transformer_encoder_forward(e, x, RAPT_MASK(.causal = true), NULL));
    for (int i = 0; i < layers; i++) rapt_attention_cache_clear(&cache[i]);
    rapt_module_free(&e->module);
    expect_no_error();
}

Test(transformer_decoding, selected_items_go_on_as_themselves)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_seed(3);
    rapt_transformer_decoder *d = drawn(rapt_transformer_decoder_new(&small));
    rapt_tensor *x = random_input(3, 4, 8), *memory = random_input(3, 5, 8);
    rapt_tensor *rows = rapt_from(RAPT_INT64, RAPT_SHAPE(4), (int64_t[]){2, 0, 0, 1});
    const rapt_mask causal = {.causal = true};
    caches c = {0};
    rapt_transformer_decoder_forward(d, rapt_slice(x, 1, 0, 3, 1), memory, &causal, NULL, c.layer);
    for (int i = 0; i < layers; i++) cr_expect(rapt_decoder_cache_select(&c.layer[i], rows), "%s", rapt_error());
    rapt_tensor *last = rapt_index_select(rapt_slice(x, 1, 3, 4, 1), 0, rows);
    rapt_tensor *whole = rapt_transformer_decoder_forward(d, x, memory, &causal, NULL, NULL);
    expect_equal("selected", rapt_transformer_decoder_forward(d, last, NULL, &causal, NULL, c.layer),
                 rapt_index_select(rapt_slice(whole, 1, 3, 4, 1), 0, rows));
    expect_no_error();

    const rapt_tensor *keys = c.layer[0].self.keys;
    cr_expect_not(rapt_decoder_cache_select(&c.layer[0], rapt_from(RAPT_INT64, RAPT_SHAPE(1), (int64_t[]){4})));
    expect_error(RAPT_ERROR_VALUE, "4");
    cr_expect_eq(c.layer[0].self.keys, keys, "as it was");
    cr_expect_not(rapt_decoder_cache_select(NULL, rows));
    expect_error(RAPT_ERROR_NULL, "cache");
    cr_expect_not(rapt_decoder_cache_select(&c.layer[0], NULL));
    expect_error(RAPT_ERROR_NULL, "rows");
    clear(&c);
    rapt_decoder_cache_clear(NULL);
    rapt_module_free(&d->module);
}

Test(transformer_decoding, later_positions_and_padding_change_no_bit)
{
    RAPT_SCOPE;
    rapt_seed(4);
    for (int norm_first = 0; norm_first < 2; norm_first++) {
        config c = small;
        c.norm_first = norm_first;
        rapt_transformer *t = drawn(rapt_transformer_new(&c));
        rapt_tensor *source = random_input(2, 5, 8), *target = random_input(2, 4, 8);
        rapt_tensor *other_source = rapt_clone(source), *other_target = rapt_clone(target);
        /* the last three of the first sentence are padding; the last word of each translation is another */
        rapt_fill(rapt_slice(rapt_select(other_source, 0, 0), 0, 2, 5, 1), 7);
        rapt_fill(rapt_slice(other_target, 1, 3, 4, 1), -7);
        const rapt_mask padding = {.valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){2, 5})};
        const rapt_mask causal = {.causal = true};
        rapt_tensor *a = rapt_transformer_forward(t, source, target, &padding, &causal, &padding);
        rapt_tensor *b = rapt_transformer_forward(t, other_source, other_target, &padding, &causal, &padding);
        cr_expect(same_bits(rapt_contiguous(rapt_slice(a, 1, 0, 3, 1)), rapt_contiguous(rapt_slice(b, 1, 0, 3, 1))));
        cr_expect_not(same_bits(a, b));
        /* NaN in the memory's padding as well */
        rapt_tensor *memory = random_input(2, 5, 8), *holes = rapt_clone(memory);
        rapt_fill(rapt_slice(rapt_select(holes, 0, 0), 0, 2, 5, 1), (double)NAN);
        a = rapt_transformer_decoder_forward(t->decoder, target, memory, &causal, &padding, NULL);
        b = rapt_transformer_decoder_forward(t->decoder, target, holes, &causal, &padding, NULL);
        cr_expect(same_bits(a, b));
        rapt_module_free(&t->module);
    }
    expect_no_error();
}

/* --- derivatives --- */

/* A layer of either kind. */
typedef struct checked {
    rapt_encoder_layer *encoder;
    rapt_decoder_layer *decoder;
} checked;

static rapt_tensor *run(rapt_tensor *const *inputs, void *context)
{
    checked *c = context;
    const rapt_mask padding = {.valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){2, 3})};
    const rapt_mask causal = {.causal = true};
    return c->encoder ? rapt_encoder_layer_forward(c->encoder, inputs[0], &padding, NULL)
                      : rapt_decoder_layer_forward(c->decoder, inputs[0], inputs[1], &causal, &padding, NULL);
}

static void expect_gradients(checked *c, rapt_module *module)
{
    rapt_tensor *inputs[] = {rapt_require_gradient(random_input(2, 3, 4)),
                             rapt_require_gradient(random_input(2, 3, 4))};
    for (int order = 1; order <= 2; order++) {
        const rapt_gradcheck_options options = {.context = c, .random_projection = true, .second_order = order == 2};
        rapt_gradcheck_result result = rapt_module_gradcheck(module, run, c->encoder ? 1 : 2, inputs, &options);
        cr_expect(result.passed, "order %d: %s", order, result.message);
    }
}

Test(transformer_decoding, gradients_of_both_orders)
{
    rapt_seed(5);
    for (int norm_first = 0; norm_first < 2; norm_first++) {
        RAPT_SCOPE;
        const config c = {.hidden = 4,
                          .heads = 2,
                          .feed_forward = 3,
                          .kind = norm_first ? RAPT_FEED_FORWARD_SWIGLU : RAPT_FEED_FORWARD_GELU,
                          .norm_first = norm_first,
                          .attention_bias = true};
        checked e = {.encoder = drawn(rapt_encoder_layer_new(&c))};
        expect_gradients(&e, &e.encoder->module);
        rapt_module_free(&e.encoder->module);

        checked d = {.decoder = drawn(rapt_decoder_layer_new(&c))};
        expect_gradients(&d, &d.decoder->module);
        rapt_module_free(&d.decoder->module);
    }
}

/* --- a scoring function of one's own choice --- */

static int64_t asked[8];
static int asked_count;

static rapt_scoring *additive(int64_t head_size, void *context)
{
    asked[asked_count++] = head_size;
    return rapt_additive_scoring_new(head_size, head_size, *(const int64_t *)context);
}

static rapt_scoring *no_scoring(int64_t head_size, void *context)
{
    (void)head_size, (void)context;
    rapt_fail(RAPT_ERROR_VALUE, "mine", "no such scoring");
    return NULL;
}

Test(transformer_decoding, any_scoring_function)
{
    RAPT_SCOPE;
    int64_t hidden = 3;
    config c = small;
    c.scoring = additive;
    c.context = &hidden;
    rapt_decoder_layer *d = rapt_decoder_layer_new(&c);
    cr_expect(asked_count == 2 && asked[0] == 4 && asked[1] == 4, "once for each attention, with the size of a head");
    expect_parameter(d, "multihead_attn.attention.W_q.weight", RAPT_SHAPE(3, 4));
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 8));
    expect_shape(rapt_decoder_layer_forward(d, x, x, NULL, NULL, NULL), RAPT_SHAPE(2, 3, 8));
    rapt_module_free(&d->module);
    expect_no_error();
    c.scoring = no_scoring;
    const int64_t before = live_bytes();
    cr_expect_null(rapt_transformer_new(&c));
    expect_error(RAPT_ERROR_VALUE, "no such scoring");
    cr_expect_eq(live_bytes(), before);
}

/* --- errors --- */

#define EXPECT_BAD(field, value, code, part)                                                                           \
    do {                                                                                                               \
        config bad = small;                                                                                            \
        bad.field = (value);                                                                                           \
        cr_expect_null(rapt_transformer_new(&bad));                                                                    \
        expect_error((code), (part));                                                                                  \
    } while (0)

Test(transformer_decoding, bad_configurations)
{
    const int64_t before = live_bytes();
    EXPECT_BAD(hidden, 9, RAPT_ERROR_VALUE, "hidden size 9 and 2 heads");
    EXPECT_BAD(hidden, 0, RAPT_ERROR_VALUE, "hidden size 0");
    EXPECT_BAD(heads, 0, RAPT_ERROR_VALUE, "0 heads");
    EXPECT_BAD(groups, 3, RAPT_ERROR_VALUE, "3 groups");
    EXPECT_BAD(feed_forward, 0, RAPT_ERROR_VALUE, "feed-forward size of 0");
    EXPECT_BAD(encoder_layers, 0, RAPT_ERROR_VALUE, "TransformerEncoder: 0 layers");
    EXPECT_BAD(decoder_layers, -1, RAPT_ERROR_VALUE, "TransformerDecoder: -1 layers");
    EXPECT_BAD(dropout, 2, RAPT_ERROR_VALUE, "dropout 2");
    EXPECT_BAD(attention_dropout, -1, RAPT_ERROR_VALUE, "attention_dropout -1");
    EXPECT_BAD(feed_forward_dropout, (double)NAN, RAPT_ERROR_VALUE, "feed_forward_dropout");
    EXPECT_BAD(kind, (rapt_feed_forward_kind)7, RAPT_ERROR_VALUE, "kind 7");
    EXPECT_BAD(names, RAPT_NAMES_GPT2, RAPT_ERROR_UNSUPPORTED, "GPT-2");
    cr_expect_null(rapt_multi_head_attention_new(
        &(rapt_multi_head_attention_config){.hidden = 4, .heads = 2, .key_size = 3, .names = RAPT_NAMES_GPT2}));
    expect_error(RAPT_ERROR_VALUE, "GPT-2's names");
    cr_expect_null(rapt_transformer_new(NULL));
    expect_error(RAPT_ERROR_NULL, "configuration");
    cr_expect_null(rapt_encoder_layer_new(NULL));
    expect_error(RAPT_ERROR_NULL, "configuration");
    cr_expect_null(rapt_decoder_layer_new(NULL));
    expect_error(RAPT_ERROR_NULL, "configuration");
    cr_expect_null(rapt_feed_forward_new(NULL));
    expect_error(RAPT_ERROR_NULL, "configuration");
    cr_expect_null(rapt_feed_forward_new(&(rapt_feed_forward_config){.in = 2, .inner = -3, .out = 2}));
    expect_error(RAPT_ERROR_VALUE, "-3");
    cr_expect_null(rapt_feed_forward_new(&(rapt_feed_forward_config){.in = 2, .inner = 3, .out = 2, .dropout = -2}));
    expect_error(RAPT_ERROR_VALUE, "dropout -2");
    cr_expect_eq(live_bytes(), before);
}

static void *make_transformer(void)
{
    config c = small;
    c.final_norm = true;
    c.rotary = true;
    return rapt_transformer_new(&c);
}

Test(transformer_decoding, constructors_without_memory)
{
    cr_expect_geq(expect_clean_failures("Transformer", make_transformer), 20);
}

Test(transformer_decoding, bad_inputs)
{
    RAPT_SCOPE;
    rapt_transformer *t = drawn(rapt_transformer_new(&small));
    rapt_tensor *x = random_input(2, 3, 8), *narrow = random_input(2, 3, 6), *other = random_input(3, 3, 8);
    cr_expect_null(rapt_transformer_forward(NULL, x, x, NULL, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "Transformer is NULL");
    cr_expect_null(rapt_transformer_forward(t, NULL, x, NULL, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "source");
    cr_expect_null(rapt_transformer_forward(t, x, NULL, NULL, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "target");
    cr_expect_null(rapt_transformer_forward(t, narrow, x, NULL, NULL, NULL));
    expect_error(RAPT_ERROR_SHAPE, "[2, 3, 6]");
    cr_expect_null(rapt_transformer_forward(t, x, other, NULL, NULL, NULL));
    expect_error(RAPT_ERROR_SHAPE, "3");
    cr_expect_null(rapt_encoder_layer_forward(NULL, x, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "layer");
    cr_expect_null(rapt_encoder_layer_forward(t->encoder->layers[0], NULL, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "input");
    cr_expect_null(rapt_decoder_layer_forward(t->decoder->layers[0], x, NULL, NULL, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "keys and values are NULL");
    cr_expect_null(rapt_feed_forward_forward(t->decoder->layers[0]->feed_forward, narrow));
    expect_error(RAPT_ERROR_SHAPE, "6");
    cr_expect_null(rapt_feed_forward_forward(NULL, x));
    expect_error(RAPT_ERROR_NULL, "module");
    caches c = {0};
    cr_expect_null(rapt_transformer_decoder_forward(t->decoder, x, x, NULL, NULL, c.layer));
    expect_error(RAPT_ERROR_UNSUPPORTED, "RAPT_NO_GRADIENT");
    rapt_module_free(&t->module);
}

Test(transformer_decoding, a_failed_step_leaves_the_caches_as_they_were)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_transformer_decoder *d = drawn(rapt_transformer_decoder_new(&small));
    rapt_tensor *x = random_input(2, 3, 8), *memory = random_input(2, 4, 8);
    rapt_tensor *first = rapt_slice(x, 1, 0, 2, 1), *second = rapt_slice(x, 1, 2, 3, 1);
    const rapt_mask causal = {.causal = true};
    rapt_tensor *whole = rapt_transformer_decoder_forward(d, x, memory, &causal, NULL, NULL);
    caches c = {0};
    int failures[2] = {0};
    for (int step = 0; step < 2; step++)
        for (rapt_tensor *y = NULL; !y;) {
            rapt_memory_fail_after(failures[step]);
            y = rapt_transformer_decoder_forward(d, step ? second : first, memory, &causal, NULL, c.layer);
            rapt_memory_fail_after(-1);
            if (y) {
                expect_equal("in the end", y, rapt_slice(whole, 1, step ? 2 : 0, step ? 3 : 2, 1));
            } else {
                expect_error(RAPT_ERROR_MEMORY, "no memory");
                for (int i = 0; i < layers; i++) cr_assert_eq(c.layer[i].self.length, step ? 2 : 0);
                for (int i = 0; i < layers; i++) cr_assert_eq(c.layer[i].memory.length, step ? 4 : 0);
                cr_assert_lt(failures[step]++, 1000);
            }
        }
    cr_expect(failures[0] > 20 && failures[1] > 20, "%d and %d failures", failures[0], failures[1]);
    clear(&c);
    rapt_module_free(&d->module);
}

/* A sublayer behind the self-attention may fail, which has then put its keys into the cache. */
Test(transformer_decoding, a_failed_layer_leaves_its_cache_as_it_was)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_decoder_layer *decoder = drawn(rapt_decoder_layer_new(&small));
    rapt_encoder_layer *encoder = drawn(rapt_encoder_layer_new(&small));
    rapt_tensor *x = random_input(2, 1, 8), *memory = random_input(2, 4, 8);
    rapt_decoder_cache of_decoder = {0};
    rapt_attention_cache of_encoder = {0};
    for (int step = 0, failures = 0; step < 4; failures++) {
        rapt_memory_fail_after(failures);
        const bool done = step % 2 ? rapt_encoder_layer_forward(encoder, x, NULL, &of_encoder) != NULL
                                   : rapt_decoder_layer_forward(decoder, x, memory, NULL, NULL, &of_decoder) != NULL;
        rapt_memory_fail_after(-1);
        if (done) {
            cr_expect_gt(failures, 10);
            step++;
            failures = -1;
        } else {
            expect_error(RAPT_ERROR_MEMORY, "no memory");
        }
        cr_assert_eq(of_decoder.self.length, (step + 1) / 2, "failure %d", failures);
        cr_assert_eq(of_decoder.memory.length, step > 0 ? 4 : 0);
        cr_assert_eq(of_encoder.length, step / 2);
    }
    rapt_decoder_cache_clear(&of_decoder);
    rapt_attention_cache_clear(&of_encoder);
    rapt_module_free(&decoder->module);
    rapt_module_free(&encoder->module);
    expect_no_error();
}
