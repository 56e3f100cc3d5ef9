/* The blocks of Transformers: formulas, names, sizes, initial values, dropout, masks. */
#include "transformer.h"

static rapt_feed_forward *feed_forward(const rapt_feed_forward_config *c)
{
    return drawn(rapt_feed_forward_new(c));
}

Test(transformer, feed_forward_treats_all_positions_alike)
{
    RAPT_SCOPE;
    rapt_feed_forward *f =
        rapt_feed_forward_new(&(rapt_feed_forward_config){.in = 4, .inner = 4, .out = 8, .bias = true});
    rapt_tensor *y = rapt_feed_forward_forward(f, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 4)));
    expect_shape(y, RAPT_SHAPE(2, 3, 8));
    for (int64_t i = 1; i < 6; i++)
        cr_expect(memcmp((const float *)rapt_data(y) + 8 * i, rapt_data(y), 8 * sizeof(float)) == 0, "row %d", (int)i);
    rapt_module_free(&f->module);
}

Test(transformer, feed_forward_is_its_formula)
{
    RAPT_SCOPE;
    rapt_seed(1);
    for (int kind = RAPT_FEED_FORWARD_RELU; kind <= RAPT_FEED_FORWARD_GELU_TANH; kind++)
        for (int bias = 0; bias < 2; bias++) {
            rapt_feed_forward *f = feed_forward(&(rapt_feed_forward_config){.in = 3,
                                                                            .inner = 5,
                                                                            .out = 4,
                                                                            .kind = (rapt_feed_forward_kind)kind,
                                                                            .bias = bias});
            rapt_tensor *x = random_input(2, 3, 3);
            expect_equal("feed-forward", rapt_feed_forward_forward(f, x), defined_feed_forward(f, x));
            cr_expect_eq(f->linear3 != NULL, kind == RAPT_FEED_FORWARD_SWIGLU);
            cr_expect_eq(rapt_module_find(&f->module, "linear2.bias") != NULL, bias);
            rapt_module_free(&f->module);
        }
    expect_no_error();
}

Test(transformer, add_norm)
{
    RAPT_SCOPE;
    rapt_add_norm *a = in_float64(rapt_add_norm_new(2, RAPT_BIAS, 0));
    expect_parameter(a, "weight", RAPT_SHAPE(2));
    expect_parameter(a, "bias", RAPT_SHAPE(2));
    rapt_tensor *x = doubles(RAPT_SHAPE(2, 2), (double[]){1, 1, 1, 1});
    rapt_tensor *y = doubles(RAPT_SHAPE(2, 2), (double[]){0, 1, 1, 2});
    const double one = 0.99998000059998; /* 0.5 / √(0.25 + 1e-5) */
    expect_values("post-norm", rapt_add_norm_forward(a, x, y), 4, (double[]){-one, one, -one, one}, 1e-12);
    cr_expect_eq(rapt_add_norm_input(a, y), y);
    a->norm_first = true;
    expect_values("pre-norm", rapt_add_norm_forward(a, x, y), 4, (double[]){1, 2, 2, 3}, 0);
    expect_values("its input", rapt_add_norm_input(a, y), 4, (double[]){-one, one, -one, one}, 1e-12);
    expect_no_error();

    cr_expect_null(rapt_add_norm_forward(a, x, doubles(RAPT_SHAPE(2), (double[]){0, 1})));
    expect_error(RAPT_ERROR_SHAPE, "one shape");
    cr_expect_null(rapt_add_norm_forward(NULL, x, y));
    expect_error(RAPT_ERROR_NULL, "the layer");
    cr_expect_null(rapt_add_norm_forward(a, NULL, y));
    expect_error(RAPT_ERROR_NULL, "x is NULL");
    cr_expect_null(rapt_add_norm_forward(a, x, NULL));
    expect_error(RAPT_ERROR_NULL, "sublayer");
    cr_expect_null(rapt_add_norm_input(a, NULL));
    expect_error(RAPT_ERROR_NULL, "input");
    cr_expect_null(rapt_add_norm_new(2, RAPT_BIAS, 1.5));
    expect_error(RAPT_ERROR_VALUE, "dropout 1.5");
    rapt_module_free(&a->module);
}

/* All names in the order of registration, each with a space behind it. */
static bool append_name(const char *name, rapt_tensor *tensor, void *context)
{
    (void)tensor;
    strcat(strcat(context, name), " ");
    return true;
}

static void expect_names(void *module, const char *expected)
{
    char names[4096] = "";
    cr_assert(rapt_module_visit(module, RAPT_PARAMETERS | RAPT_BUFFERS, append_name, names), "%s", rapt_error());
    cr_expect_str_eq(names, expected);
    rapt_module_free(module);
}

#define OF_ATTENTION(name) name ".in_proj_weight " name ".in_proj_bias " name ".out_proj.weight " name ".out_proj.bias "
#define OF(name) name ".weight " name ".bias "

Test(transformer, names_are_pytorchs)
{
    expect_names(rapt_encoder_layer_new(&small),
                 OF_ATTENTION("self_attn") OF("linear1") OF("linear2") OF("norm1") OF("norm2"));
    expect_names(rapt_decoder_layer_new(&small), OF_ATTENTION("self_attn") OF_ATTENTION("multihead_attn") OF("linear1")
                                                     OF("linear2") OF("norm1") OF("norm2") OF("norm3"));
    config c = small;
    c.encoder_layers = 1;
    c.attention_bias = false;
    c.kind = RAPT_FEED_FORWARD_SWIGLU;
    c.no_bias = true;
    c.final_norm = true;
    expect_names(rapt_transformer_encoder_new(&c),
                 "layers.0.self_attn.in_proj_weight layers.0.self_attn.out_proj.weight layers.0.linear1.weight "
                 "layers.0.linear2.weight layers.0.linear3.weight layers.0.norm1.weight layers.0.norm2.weight "
                 "norm.weight ");
    c.names = RAPT_NAMES_GPT2;
    expect_names(rapt_transformer_encoder_new(&c),
                 "h.0.attn.c_attn.weight h.0.attn.c_proj.weight h.0.mlp.c_fc.weight h.0.mlp.c_proj.weight "
                 "h.0.mlp.c_gated.weight h.0.ln_1.weight h.0.ln_2.weight ln_f.weight ");
    rapt_transformer *transformer = rapt_transformer_new(&small);
    expect_parameter(transformer, "encoder.layers.1.self_attn.in_proj_weight", RAPT_SHAPE(24, 8));
    expect_parameter(transformer, "decoder.layers.1.multihead_attn.out_proj.weight", RAPT_SHAPE(8, 8));
    expect_parameter(transformer, "decoder.layers.0.linear1.weight", RAPT_SHAPE(5, 8));
    rapt_module_free(&transformer->module);
    expect_no_error();
}

/* The two ways to put the norm: x + f(norm x) and norm(x + f x). */
static rapt_tensor *defined_sublayer(const rapt_add_norm *a, rapt_tensor *x, rapt_tensor *(*f)(void *, rapt_tensor *),
                                     void *context)
{
    if (a->norm_first) return rapt_add(x, f(context, defined_norm(a->norm, x)));
    return defined_norm(a->norm, rapt_add(x, f(context, x)));
}

static rapt_tensor *memory;

static rapt_tensor *self_attention(void *attention, rapt_tensor *x)
{
    return rapt_multi_head_attention_forward(attention, x, x, x, RAPT_MASK(.causal = true), NULL);
}

static rapt_tensor *cross_attention(void *attention, rapt_tensor *x)
{
    return rapt_multi_head_attention_forward(attention, x, memory, memory, NULL, NULL);
}

static rapt_tensor *feed(void *feed_forward, rapt_tensor *x)
{
    return defined_feed_forward(feed_forward, x);
}

Test(transformer, layers_are_their_formulas)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_seed(2);
    for (int norm_first = 0; norm_first < 2; norm_first++) {
        config c = small;
        c.norm_first = norm_first;
        c.kind = RAPT_FEED_FORWARD_GELU;
        rapt_encoder_layer *e = drawn(rapt_encoder_layer_new(&c));
        rapt_tensor *x = random_input(3, 4, 8), *y = defined_sublayer(e->norm1, x, self_attention, e->self_attn);
        y = defined_sublayer(e->norm2, y, feed, e->feed_forward);
        expect_equal("encoder layer", rapt_encoder_layer_forward(e, x, RAPT_MASK(.causal = true), NULL), y);
        rapt_module_free(&e->module);

        rapt_decoder_layer *d = drawn(rapt_decoder_layer_new(&c));
        memory = random_input(3, 5, 8);
        y = defined_sublayer(d->norm1, x, self_attention, d->self_attn);
        y = defined_sublayer(d->norm2, y, cross_attention, d->multihead_attn);
        y = defined_sublayer(d->norm3, y, feed, d->feed_forward);
        expect_equal("decoder layer", rapt_decoder_layer_forward(d, x, memory, RAPT_MASK(.causal = true), NULL, NULL),
                     y);
        rapt_module_free(&d->module);
    }
    expect_no_error();
}

Test(transformer, stacks_are_layers_one_after_the_other)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_seed(3);
    config c = small;
    c.final_norm = true;
    rapt_transformer *t = drawn(rapt_transformer_new(&c));
    rapt_tensor *source = random_input(2, 5, 8), *target = random_input(2, 4, 8), *x = source, *y = target;
    const rapt_mask padding = {.valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){3, 5})};
    const rapt_mask causal = {.causal = true};
    for (int i = 0; i < 2; i++) x = rapt_encoder_layer_forward(t->encoder->layers[i], x, &padding, NULL);
    x = defined_norm(t->encoder->norm, x);
    for (int i = 0; i < 2; i++) y = rapt_decoder_layer_forward(t->decoder->layers[i], y, x, &causal, &padding, NULL);
    y = defined_norm(t->decoder->norm, y);
    expect_equal("Transformer", rapt_transformer_forward(t, source, target, &padding, &causal, &padding), y);
    rapt_module_free(&t->module);
    expect_no_error();
}

Test(transformer, shapes_are_kept)
{
    RAPT_SCOPE;
    rapt_seed(4);
    const config c = {.hidden = 24,
                      .heads = 8,
                      .feed_forward = 48,
                      .encoder_layers = 2,
                      .decoder_layers = 2,
                      .dropout = 0.5,
                      .attention_dropout = 0.5};
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 100, 24));
    const rapt_mask mask = {.valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){3, 2})};
    rapt_encoder_layer *layer = rapt_encoder_layer_new(&c);
    expect_shape(rapt_encoder_layer_forward(layer, x, &mask, NULL), RAPT_SHAPE(2, 100, 24));
    rapt_module_free(&layer->module);
    rapt_transformer *t = rapt_transformer_new(&c);
    rapt_attention_keep_weights(&t->module, true);
    expect_shape(rapt_transformer_forward(t, x, x, &mask, RAPT_MASK(.causal = true), &mask), RAPT_SHAPE(2, 100, 24));
    rapt_tensor *weights = t->decoder->layers[1]->multihead_attn->pooling->weights;
    expect_shape(weights, RAPT_SHAPE(2, 8, 100, 100));
    rapt_tensor *hidden = rapt_slice(rapt_select(weights, 0, 0), 2, 3, 100, 1);
    cr_expect_eq(rapt_item(rapt_max(rapt_abs(hidden), RAPT_ALL_AXES, false)), 0, "padding has weight 0 exactly");
    cr_expect_not_null(t->encoder->layers[0]->self_attn->pooling->weights);
    cr_expect_not_null(t->decoder->layers[0]->self_attn->pooling->weights);
    rapt_module_free(&t->module);
    expect_no_error();
}

/* Dive into Deep Learning 11.7: hidden size 256, 2 blocks a side, 4 heads, feed-forward 64. */
Test(transformer, the_books_translator_has_1869782_parameters)
{
    const config c = {.hidden = 256, .heads = 4, .feed_forward = 64, .encoder_layers = 2, .decoder_layers = 2};
    rapt_transformer_encoder *encoder = rapt_transformer_encoder_new(&c);
    rapt_transformer_decoder *decoder = rapt_transformer_decoder_new(&c);
    const int64_t source = 194, target = 214;
    int64_t of_encoder = rapt_module_parameter_count(&encoder->module) + source * 256;
    int64_t of_decoder = rapt_module_parameter_count(&decoder->module) + target * 256 + target * (256 + 1);
    cr_expect_eq(of_encoder, 642176, "%lld", (long long)of_encoder);
    cr_expect_eq(of_decoder, 1227606, "%lld", (long long)of_decoder);
    cr_expect_eq(of_encoder + of_decoder, 1869782);
    rapt_module_free(&encoder->module);
    rapt_module_free(&decoder->module);
}

Test(transformer, only_the_whole_starts_xavier_uniform)
{
    rapt_seed(5);
    const config c = {.hidden = 128,
                      .heads = 4,
                      .feed_forward = 64,
                      .encoder_layers = 1,
                      .decoder_layers = 1,
                      .attention_bias = true};
    rapt_transformer *t = rapt_transformer_new(&c);
    rapt_encoder_layer *layer = rapt_encoder_layer_new(&c);
    expect_uniform(rapt_module_find(&t->module, "decoder.layers.0.linear1.weight"), sqrt(6.0 / (128 + 64)));
    expect_uniform(rapt_module_find(&t->module, "encoder.layers.0.self_attn.out_proj.weight"), sqrt(6.0 / 256));
    expect_uniform(rapt_module_find(&t->module, "encoder.layers.0.self_attn.in_proj_weight"), sqrt(6.0 / 512));
    expect_uniform(layer->feed_forward->linear1->weight, 1 / sqrt(128));
    expect_uniform(layer->self_attn->out_proj->weight, 1 / sqrt(128));
    rapt_module_free(&layer->module);
    rapt_module_free(&t->module);
}

/* A dropout of 1 takes away all that it stands on, so that what is left tells its place. */
Test(transformer, dropout_places)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_seed(6);
    for (int norm_first = 0; norm_first < 2; norm_first++)
        for (int place = 0; place < 3; place++) {
            config c = small;
            c.norm_first = norm_first;
            *(double *[]){&c.dropout, &c.attention_dropout, &c.feed_forward_dropout}[place] = 1;
            rapt_encoder_layer *e = drawn(rapt_encoder_layer_new(&c));
            rapt_tensor *x = random_input(2, 3, 8), *zeros = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(2, 3, 8));
            rapt_tensor *evaluated = rapt_encoder_layer_forward(e, x, NULL, NULL);
            rapt_module_train(&e->module, true);
            rapt_tensor *trained = rapt_encoder_layer_forward(e, x, NULL, NULL);
            cr_expect_not(same_bits(evaluated, trained));
            rapt_tensor *after = norm_first ? x : defined_norm(e->norm1->norm, x), *y = after;
            if (place == 0) { /* what each sublayer adds */
                expect_equal("sublayers", trained, norm_first ? x : defined_norm(e->norm2->norm, y));
            } else if (place == 1) { /* the weights: the projection's bias is left */
                y = rapt_add(x, rapt_add(zeros, e->self_attn->out_proj->bias));
                if (!norm_first) y = defined_norm(e->norm1->norm, y);
                expect_equal("weights", trained, defined_sublayer(e->norm2, y, feed, e->feed_forward));
            } else { /* the inner activations: the second layer's bias is left */
                rapt_module_train(&e->self_attn->module, false);
                rapt_tensor *seen = norm_first ? defined_norm(e->norm1->norm, x) : x;
                y = rapt_add(x, rapt_multi_head_attention_forward(e->self_attn, seen, seen, seen, NULL, NULL));
                if (!norm_first) y = defined_norm(e->norm1->norm, y);
                y = rapt_add(y, rapt_add(zeros, e->feed_forward->linear2->bias));
                expect_equal("inner", trained, norm_first ? y : defined_norm(e->norm2->norm, y));
            }
            rapt_module_free(&e->module);
        }
    expect_no_error();
}
