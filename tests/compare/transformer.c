/* Steps of the blocks of Transformers, of GPT, and of Bahdanau's encoder and decoder. */
#include "compare.h"

static rapt_feed_forward_kind kind_of(const run *r)
{
    if (record_says(r->step, "kind", "gelu")) return RAPT_FEED_FORWARD_GELU;
    if (record_says(r->step, "kind", "gelu_tanh")) return RAPT_FEED_FORWARD_GELU_TANH;
    return record_says(r->step, "kind", "swiglu") ? RAPT_FEED_FORWARD_SWIGLU : RAPT_FEED_FORWARD_RELU;
}

static rapt_transformer_config config_of(const run *r)
{
    return (rapt_transformer_config){
        .hidden = step_integer(r, "size"),
        .heads = (int)step_integer(r, "heads"),
        .feed_forward = step_integer(r, "inner"),
        .kind = kind_of(r),
        .encoder_layers = (int)step_integer(r, "layers"),
        .decoder_layers = (int)step_integer(r, "layers"),
        .norm_first = step_integer(r, "norm_first"),
        .attention_bias = step_integer(r, "bias"),
        .no_bias = step_integer(r, "no_bias"),
        .final_norm = step_integer(r, "final_norm"),
    };
}

static void feed_forward(run *r)
{
    rapt_feed_forward *layer =
        step_module(r, rapt_feed_forward_new(&(rapt_feed_forward_config){.in = step_integer(r, "in_size"),
                                                                         .inner = step_integer(r, "inner"),
                                                                         .out = step_integer(r, "out_size"),
                                                                         .kind = kind_of(r),
                                                                         .bias = step_integer(r, "bias")}));
    step_give(r, rapt_feed_forward_forward(layer, step_input(r, 0)));
}

/* Around a sublayer that multiplies with input 1. */
static void add_norm(run *r)
{
    rapt_add_norm *layer = step_module(r, rapt_add_norm_new(step_integer(r, "size"), (int)step_integer(r, "bias"), 0));
    if (layer) layer->norm_first = step_integer(r, "norm_first");
    rapt_tensor *x = step_input(r, 0);
    step_give(r, rapt_add_norm_forward(layer, x, rapt_mul(rapt_add_norm_input(layer, x), step_input(r, 1))));
}

static void encoder_layer(run *r)
{
    rapt_transformer_config config = config_of(r);
    rapt_mask mask = step_mask(r, 1, "");
    rapt_encoder_layer *layer = step_module(r, rapt_encoder_layer_new(&config));
    step_give(r, rapt_encoder_layer_forward(layer, step_input(r, 0), &mask, NULL));
}

static void decoder_layer(run *r)
{
    rapt_transformer_config config = config_of(r);
    rapt_mask mask = step_mask(r, 2, ""), memory_mask = step_mask(r, 6, "memory_");
    rapt_decoder_layer *layer = step_module(r, rapt_decoder_layer_new(&config));
    step_give(r, rapt_decoder_layer_forward(layer, step_input(r, 0), step_input(r, 1), &mask, &memory_mask, NULL));
}

static void encoder(run *r)
{
    rapt_transformer_config config = config_of(r);
    rapt_mask mask = step_mask(r, 1, "");
    rapt_transformer_encoder *layer = step_module(r, rapt_transformer_encoder_new(&config));
    step_give(r, rapt_transformer_encoder_forward(layer, step_input(r, 0), &mask, NULL));
}

static void decoder(run *r)
{
    rapt_transformer_config config = config_of(r);
    rapt_mask mask = step_mask(r, 2, ""), memory_mask = step_mask(r, 6, "memory_");
    rapt_transformer_decoder *layer = step_module(r, rapt_transformer_decoder_new(&config));
    step_give(r,
              rapt_transformer_decoder_forward(layer, step_input(r, 0), step_input(r, 1), &mask, &memory_mask, NULL));
}

/* The part start … end − 1 of an axis counted from the end; all where it is missing, or 1 and stands for all. */
static rapt_tensor *piece_of(rapt_tensor *x, int axis, int64_t start, int64_t end)
{
    return x && rapt_rank(x) >= -axis && rapt_size(x, axis) > 1 ? rapt_slice(x, axis, start, end, 1) : x;
}

/* The mask of the queries start … end − 1 and of the first so many keys. */
static rapt_mask mask_of_piece(rapt_mask mask, int64_t start, int64_t end, int64_t keys)
{
    if (mask.valid_lengths && rapt_rank(mask.valid_lengths) == 2)
        mask.valid_lengths = piece_of(mask.valid_lengths, -1, start, end);
    mask.seen = piece_of(piece_of(mask.seen, -2, start, end), -1, 0, keys);
    mask.bias = piece_of(piece_of(mask.bias, -2, start, end), -1, 0, keys);
    mask.relative_bias = piece_of(mask.relative_bias, -2, start, end);
    return mask;
}

/* The `first` queries, then the others one by one; the memory is read once. */
static void decoder_in_pieces(run *r)
{
    RAPT_NO_GRADIENT;
    rapt_transformer_config config = config_of(r);
    rapt_mask mask = step_mask(r, 2, ""), memory_mask = step_mask(r, 6, "memory_");
    rapt_transformer_decoder *layer = step_module(r, rapt_transformer_decoder_new(&config));
    rapt_tensor *x = step_input(r, 0), *memory = step_input(r, 1), *results[16];
    rapt_decoder_cache caches[4] = {0};
    const int64_t first = step_integer(r, "first"), keys = rapt_size(memory, 1);
    int count = 0;
    for (int64_t start = 0, end; start < rapt_size(x, 1); start = end) {
        end = start < first ? first : start + 1;
        rapt_mask own = mask_of_piece(mask, start, end, end), other = mask_of_piece(memory_mask, start, end, keys);
        results[count++] = rapt_transformer_decoder_forward(layer, rapt_slice(x, 1, start, end, 1),
                                                            start == 0 ? memory : NULL, &own, &other, caches);
    }
    for (int i = 0; i < 4; i++) rapt_decoder_cache_clear(&caches[i]);
    step_give(r, rapt_concat(count, results, 1));
}

static void transformer(run *r)
{
    rapt_transformer_config config = config_of(r);
    rapt_mask mask = step_mask(r, 2, ""), memory_mask = step_mask(r, 6, "memory_"),
              source = step_mask(r, 10, "source_");
    rapt_transformer *layer = step_module(r, rapt_transformer_new(&config));
    step_give(r, rapt_transformer_forward(layer, step_input(r, 1), step_input(r, 0), &source, &mask, &memory_mask));
}

static rapt_gpt *gpt_of(run *r)
{
    const rapt_gpt_config config = {.vocabulary = step_integer(r, "vocabulary"),
                                    .context = step_integer(r, "context"),
                                    .hidden = step_integer(r, "size"),
                                    .layers = (int)step_integer(r, "layers"),
                                    .heads = (int)step_integer(r, "heads"),
                                    .groups = step_integer(r, "groups"),
                                    .bias = step_integer(r, "bias"),
                                    .positions = (rapt_gpt_positions)step_integer(r, "positions"),
                                    .kind = kind_of(r),
                                    .rms_norm = step_integer(r, "rms"),
                                    .feed_forward = step_integer(r, "inner"),
                                    .window = step_integer(r, "window"),
                                    .rotary_halves = step_integer(r, "halves"),
                                    .rotary_base = (double)step_integer(r, "base"),
                                    .untied = step_integer(r, "untied"),
                                    .head_size = step_integer(r, "head_size"),
                                    .norm_heads = step_integer(r, "norm_heads"),
                                    .rotary_scaling = {(double)step_integer(r, "factor"),
                                                       (double)step_integer(r, "low"), (double)step_integer(r, "high"),
                                                       step_integer(r, "stretched")}};
    return step_module(r, rapt_gpt_new(&config));
}

static void gpt(run *r)
{
    step_give(r, rapt_gpt_forward(gpt_of(r), step_input(r, 0), NULL));
}

/* The `first` tokens, then the others one by one. */
static void gpt_in_pieces(run *r)
{
    RAPT_NO_GRADIENT;
    rapt_gpt *layer = gpt_of(r);
    rapt_tensor *tokens = step_input(r, 0), *logits[16];
    rapt_gpt_cache *cache = rapt_gpt_cache_new(layer);
    const int64_t first = step_integer(r, "first");
    int count = 0;
    for (int64_t start = 0, end; start < rapt_size(tokens, 1); start = end) {
        end = start < first ? first : start + 1;
        logits[count++] = rapt_gpt_forward(layer, rapt_slice(tokens, 1, start, end, 1), cache);
    }
    rapt_gpt_cache_free(cache);
    step_give(r, rapt_concat(count, logits, 1));
}

/* Encoder and decoder as one module: tokens in, logits, the last state and the weights out. */
static void bahdanau(run *r)
{
    static const rapt_module_class kind = {.name = "Translator"};
    const rapt_bahdanau_config sizes = {.vocabulary = step_integer(r, "vocabulary"),
                                        .embedding = step_integer(r, "embedding"),
                                        .hidden = step_integer(r, "size"),
                                        .layers = (int)step_integer(r, "layers")};
    rapt_module *both = rapt_module_new(sizeof *both, &kind);
    rapt_bahdanau_encoder *encoder =
        rapt_module_add_child(both, "encoder", (rapt_module *)rapt_bahdanau_encoder_new(&sizes));
    rapt_bahdanau_decoder *decoder =
        rapt_module_add_child(both, "decoder", (rapt_module *)rapt_bahdanau_decoder_new(&sizes));
    if (!step_module(r, rapt_module_finish(both))) return;
    rapt_tensor *last = NULL, *weights = NULL;
    rapt_tensor *outputs = rapt_bahdanau_encoder_forward(encoder, step_input(r, 0), &last);
    rapt_bahdanau_state state = rapt_bahdanau_decoder_start(decoder, outputs, last, step_input(r, 2));
    step_give(r, rapt_bahdanau_decoder_forward(decoder, step_input(r, 1), &state, &weights));
    step_give(r, state.hidden);
    step_give(r, weights);
}

const step_row steps_transformer[] = {
    {"feed_forward", feed_forward},           {"add_norm", add_norm},       {"encoder_layer", encoder_layer},
    {"decoder_layer", decoder_layer},         {"encoder", encoder},         {"decoder", decoder},
    {"decoder_in_pieces", decoder_in_pieces}, {"transformer", transformer}, {"gpt", gpt},
    {"gpt_in_pieces", gpt_in_pieces},         {"bahdanau", bahdanau},       {NULL, NULL},
};
