/* Transformers step by step with caches, what masks keep apart, and derivatives. */
#include "transformer.h"

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

static rapt_scoring *relative(int64_t head_size, void *context)
{
    (void)context;
    return rapt_relative_scoring_new(head_size, 0, 2);
}

/* A query's place counts from the first step on where the memory is looked at by places, too. */
Test(transformer_decoding, steps_go_on_among_the_places_of_the_memory)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_seed(1);
    for (int variant = 0; variant < 4; variant++) {
        config c = small;
        c.scoring = variant & 1 ? relative : NULL;
        rapt_transformer_decoder *d = drawn(rapt_transformer_decoder_new(&c));
        rapt_tensor *x = random_input(3, 6, 8), *memory = random_input(3, 5, 8);
        const rapt_mask *memory_mask = variant & 2 ? RAPT_MASK(.window = 2, .offset = -1) : NULL;
        rapt_tensor *whole =
            rapt_transformer_decoder_forward(d, x, memory, RAPT_MASK(.causal = true), memory_mask, NULL);
        expect_equal("one by one", step_by_step(d, x, memory, NULL, memory_mask, 1), whole);
        expect_equal("two by two", step_by_step(d, x, memory, memory, memory_mask, 2), whole);
        rapt_module_free(&d->module);
    }
    expect_no_error();
    rapt_decoder_layer *layer = drawn(rapt_decoder_layer_new(&small));
    rapt_decoder_cache cache = {0};
    rapt_tensor *x = random_input(1, 1, 8);
    cr_assert(rapt_decoder_layer_forward(layer, x, x, NULL, NULL, &cache), "%s", rapt_error());
    cr_expect_null(rapt_decoder_layer_forward(layer, x, x, NULL, RAPT_MASK(.offset = INT64_MAX), &cache));
    expect_error(RAPT_ERROR_VALUE, "DecoderLayer: the mask's offset 9223372036854775807 is too large");
    cr_expect_eq(cache.self.length, 1);
    rapt_decoder_cache_clear(&cache);
    rapt_module_free(&layer->module);
}

Test(transformer_decoding, an_encoder_with_caches_decodes_alone)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_seed(2);
    rapt_transformer_encoder *e = drawn(rapt_transformer_encoder_new(&small));
    rapt_tensor *x = random_input(2, 5, 8), *steps[5];
    rapt_attention_cache cache[cached_layers] = {0};
    for (int64_t t = 0; t < 5; t++)
        steps[t] = rapt_transformer_encoder_forward(e, rapt_slice(x, 1, t, t + 1, 1), RAPT_MASK(.causal = true), cache);
    expect_equal("steps", rapt_concat(5, steps, 1),
                 rapt_transformer_encoder_forward(e, x, RAPT_MASK(.causal = true), NULL));
    for (int i = 0; i < cached_layers; i++) rapt_attention_cache_clear(&cache[i]);
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
    for (int i = 0; i < cached_layers; i++) cr_expect(rapt_decoder_cache_select(&c.layer[i], rows), "%s", rapt_error());
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
