/* Second derivatives of layers and whole models as they are, with nothing set for it: against differences, in one
 * random direction of all inputs and parameters. */
#include "modules.h"

#include <rapt/transformer.h>

enum { batch = 2, length = 3, vocabulary = 7 };

typedef rapt_tensor *model_function(rapt_tensor *const *inputs, void *context);

/* Both orders; inputs of size 0 are none. */
static void check(const char *name, void *module, model_function *function, void *context, int count,
                  rapt_tensor *const *inputs)
{
    in_float64(module);
    draw_parameters(module);
    for (int order = 1; order <= 2; order++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            const rapt_gradcheck_options options = {.context = context,
                                                    .second_order = order == 2,
                                                    .random_projection = true,
                                                    .seed = seed};
            const rapt_gradcheck_result result = rapt_module_gradcheck(module, function, count, inputs, &options);
            cr_expect(result.passed, "%s: %s", name, result.message);
            expect_no_error();
        }
}

static rapt_tensor *random_leaf(int64_t a, int64_t b, int64_t c)
{
    return rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(a, b, c)));
}

/* --- recurrent layers, of two layers with dropout between them --- */

static rapt_tensor *call_gru(rapt_tensor *const *in, void *gru)
{
    rapt_tensor *state, *y = rapt_gru_forward(gru, in[0], in[1], &state);
    return rapt_concat(2, (rapt_tensor *[]){y, state}, 0);
}

static rapt_tensor *call_lstm(rapt_tensor *const *in, void *lstm)
{
    rapt_tensor *state, *cell, *y = rapt_lstm_forward(lstm, in[0], in[1], in[2], &state, &cell);
    return rapt_concat(3, (rapt_tensor *[]){y, state, cell}, 0);
}

Test(second_order, recurrent_layers)
{
    RAPT_SCOPE;
    rapt_seed(1);
    rapt_tensor *in[] = {random_leaf(length, batch, 4), random_leaf(2, batch, 5), random_leaf(2, batch, 5)};
    rapt_gru *gru = rapt_gru_new(4, 5, 2, 0.4);
    check("GRU", gru, call_gru, gru, 2, in);
    rapt_module_free(&gru->recurrent.module);
    rapt_lstm *lstm = rapt_lstm_new(4, 5, 2, 0.4);
    check("LSTM", lstm, call_lstm, lstm, 3, in);
    rapt_module_free(&lstm->recurrent.module);
}

/* --- Bahdanau's model --- */

typedef struct translator {
    rapt_module module;
    rapt_bahdanau_encoder *encoder;
    rapt_bahdanau_decoder *decoder;
    rapt_tensor *lengths, *source, *target;
    bool packed;
} translator;

static const rapt_module_class translator_kind = {.name = "Translator"};

static rapt_tensor *call_translator(rapt_tensor *const *in, void *context)
{
    (void)in;
    translator *t = context;
    rapt_tensor *hidden, *outputs, *target = t->target, *starts = rapt_packing_starts(t->lengths);
    rapt_bahdanau_state state;
    if (t->packed) {
        outputs = rapt_bahdanau_encoder_forward_packed(t->encoder, rapt_pack(t->source, starts), starts, &hidden);
        state = rapt_bahdanau_decoder_start_packed(t->decoder, outputs, hidden, starts);
        target = rapt_pack(target, starts);
    } else {
        outputs = rapt_bahdanau_encoder_forward(t->encoder, t->source, &hidden);
        state = rapt_bahdanau_decoder_start(t->decoder, outputs, hidden, t->lengths);
    }
    rapt_tensor *logits = t->packed ? rapt_bahdanau_decoder_forward_packed(t->decoder, target, starts, &state)
                                    : rapt_bahdanau_decoder_forward(t->decoder, target, &state, NULL);
    return rapt_add(rapt_mean(rapt_mul(logits, logits), RAPT_ALL_AXES, false),
                    rapt_sum(state.hidden, RAPT_AXES(0), false));
}

Test(second_order, the_model_of_bahdanau)
{
    for (int layers = 1; layers <= 3; layers++)
        for (int packed = 0; packed < 2; packed++)
            for (int drops = 0; drops < 2; drops++) {
                RAPT_SCOPE;
                rapt_seed(2);
                const rapt_bahdanau_config config = {.vocabulary = vocabulary,
                                                     .embedding = 3,
                                                     .hidden = 4,
                                                     .layers = layers,
                                                     .dropout = 0.3 * drops};
                translator *t = rapt_module_new(sizeof *t, &translator_kind);
                t->encoder = rapt_module_add_child(&t->module, "encoder", (void *)rapt_bahdanau_encoder_new(&config));
                t->decoder = rapt_module_add_child(&t->module, "decoder", (void *)rapt_bahdanau_decoder_new(&config));
                cr_assert(rapt_module_finish(&t->module));
                t->packed = packed;
                t->lengths = lengths_of(2, 3);
                t->source = rapt_randint(0, vocabulary, RAPT_SHAPE(batch, length));
                t->target = rapt_randint(0, vocabulary, RAPT_SHAPE(batch, length));
                check(packed ? "packed" : "padded", t, call_translator, t, 0, &t->source);
                rapt_module_free(&t->module);
            }
}

/* --- Transformers --- */

static rapt_tensor *call_transformer(rapt_tensor *const *in, void *transformer)
{
    const rapt_mask causal = {.causal = true}, padding = {.valid_lengths = lengths_of(2, 3)};
    return rapt_transformer_forward(transformer, in[0], in[1], &padding, &causal, &padding);
}

Test(second_order, the_whole_transformer)
{
    for (int norm_first = 0; norm_first < 2; norm_first++) {
        RAPT_SCOPE;
        rapt_seed(3);
        rapt_tensor *in[] = {random_leaf(batch, length, 4), random_leaf(batch, length, 4)};
        rapt_transformer *t = rapt_transformer_new(
            &(rapt_transformer_config){.hidden = 4,
                                       .heads = 2,
                                       .feed_forward = 6,
                                       .kind = norm_first ? RAPT_FEED_FORWARD_SWIGLU : RAPT_FEED_FORWARD_GELU,
                                       .encoder_layers = 2,
                                       .decoder_layers = 2,
                                       .norm_first = norm_first,
                                       .attention_bias = true,
                                       .final_norm = true,
                                       .dropout = 0.1,
                                       .attention_dropout = 0.2,
                                       .feed_forward_dropout = 0.1,
                                       .rotary = norm_first});
        check("Transformer", t, call_transformer, t, 2, in);
        rapt_module_free(&t->module);
    }
}

typedef struct reader {
    rapt_gpt *gpt;
    rapt_tensor *tokens, *targets;
    bool packed;
} reader;

static rapt_tensor *call_gpt(rapt_tensor *const *in, void *context)
{
    (void)in;
    const reader *r = context;
    rapt_tensor *starts = rapt_packing_starts(lengths_of(2, 3));
    return r->packed
               ? rapt_gpt_loss_packed(r->gpt, rapt_pack(r->tokens, starts), starts, rapt_pack(r->targets, starts), NULL)
               : rapt_gpt_loss(r->gpt, r->tokens, r->targets, NULL);
}

Test(second_order, gpt)
{
    for (int packed = 0; packed < 2; packed++) {
        RAPT_SCOPE;
        rapt_seed(4);
        reader r = {.tokens = rapt_randint(0, vocabulary, RAPT_SHAPE(batch, length)),
                    .targets = rapt_randint(0, vocabulary, RAPT_SHAPE(batch, length)),
                    .packed = packed,
                    .gpt = rapt_gpt_new(&(rapt_gpt_config){.vocabulary = vocabulary,
                                                           .context = length,
                                                           .hidden = 4,
                                                           .layers = 2,
                                                           .heads = 2,
                                                           .bias = true,
                                                           .dropout = 0.2})};
        check("GPT", r.gpt, call_gpt, &r, 0, &r.tokens);
        rapt_module_free(&r.gpt->module);
    }
}

/* --- layers of one input --- */

Test(second_order, layers)
{
    RAPT_SCOPE;
    rapt_seed(5);
    rapt_tensor *x = random_leaf(batch, length, 4);
    rapt_module *layers[] = {
        &rapt_linear_new(4, 3, RAPT_BIAS)->module,
        &rapt_layer_norm_new(4, RAPT_BIAS)->module,
        &rapt_rms_norm_new(4)->module,
        &rapt_dropout_new(0.5)->module,
        rapt_activation_new("gelu", rapt_gelu),
        &rapt_feed_forward_new(
             &(rapt_feed_forward_config){
                 .in = 4, .inner = 5, .out = 4, .kind = RAPT_FEED_FORWARD_SWIGLU, .bias = true, .dropout = 0.1})
             ->module,
    };
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        check(layers[i]->kind->name, layers[i], NULL, NULL, 1, &x);
        rapt_module_free(layers[i]);
    }
}
