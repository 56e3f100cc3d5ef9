/* Rows: models of tokens, and their losses, padded and packed, against the plain way. */
#include "masks.h"

static void *make_gpt(const op_sample *s)
{
    const rapt_gpt_config config = {.vocabulary = 5,
                                    .context = 4,
                                    .hidden = 4,
                                    .layers = 1,
                                    .heads = 2,
                                    .dropout = 0.25,
                                    .bias = true,
                                    .positions = (rapt_gpt_positions)s->axis,
                                    .kind = RAPT_FEED_FORWARD_GELU};
    return rapt_gpt_new(&config);
}

static const rapt_bahdanau_config bahdanau = {.vocabulary = 5,
                                              .embedding = 3,
                                              .hidden = 2,
                                              .layers = 2,
                                              .dropout = 0.25};
LAYER_MAKE(bahdanau_encoder, rapt_bahdanau_encoder_new(&bahdanau))
LAYER_MAKE(bahdanau_decoder, rapt_bahdanau_decoder_new(&bahdanau))

/* variant */
enum { loss = 1, in_rows = 2, and_weights = 4 };

/* Other tokens of the same shape: those in reverse. */
static rapt_tensor *targets_of(rapt_tensor *tokens)
{
    return rapt_flip(tokens, 1, (int[]){rapt_rank(tokens) - 1});
}

static rapt_tensor *call_gpt(void *m, rapt_tensor *const *in, const op_sample *s)
{
    rapt_tensor *tokens = in[0], *targets = targets_of(tokens);
    switch (s->variant) {
    case loss:
        return rapt_gpt_loss(m, tokens, targets, NULL);
    case in_rows:
        return rapt_gpt_forward_packed(m, tokens, two_starts(rapt_size(tokens, 0)));
    case loss | in_rows:
        return rapt_gpt_loss_packed(m, tokens, two_starts(rapt_size(tokens, 0)), targets, NULL);
    default:
        return rapt_gpt_forward(m, tokens, NULL);
    }
}

static void make_plain(const rapt_gpt *gpt, bool plain)
{
    for (int i = 0; i < gpt->blocks->count; i++) gpt->blocks->layers[i]->self_attn->pooling->plain = plain;
}

static rapt_tensor *gpt_by_definition(void *m, rapt_tensor *const *in, const op_sample *s)
{
    op_sample logits = *s;
    logits.variant &= ~loss;
    make_plain(m, true);
    rapt_tensor *y = call_gpt(m, in, &logits);
    make_plain(m, false);
    return s->variant & loss ? rapt_cross_entropy(y, targets_of(in[0]), NULL) : y;
}

static rapt_tensor *flat(rapt_tensor *x)
{
    return rapt_reshape(x, RAPT_SHAPE(rapt_count(x)));
}

static rapt_tensor *call_bahdanau_encoder(void *m, rapt_tensor *const *in, const op_sample *s)
{
    rapt_tensor *state,
        *y = s->variant & in_rows
                 ? rapt_bahdanau_encoder_forward_packed(m, in[0], two_starts(rapt_size(in[0], 0)), &state)
                 : rapt_bahdanau_encoder_forward(m, in[0], &state);
    return y ? rapt_concat(2, (rapt_tensor *[]){flat(y), flat(state)}, 0) : NULL;
}

static rapt_tensor *bahdanau_encoder_by_definition(void *m, rapt_tensor *const *in, const op_sample *s)
{
    rapt_recurrent *rnn = &((rapt_bahdanau_encoder *)m)->rnn->recurrent;
    rnn->plain = true;
    rapt_tensor *y = call_bahdanau_encoder(m, in, s);
    rnn->plain = false;
    return y;
}

/* in: tokens, the encoder's outputs and state; lengths of its sequences or NULL */
static rapt_tensor *call_bahdanau_decoder(void *m, rapt_tensor *const *in, const op_sample *s)
{
    rapt_tensor *tokens = in[0], *targets = targets_of(tokens);
    if (s->variant & in_rows) {
        rapt_tensor *starts = two_starts(rapt_size(tokens, 0)), *from = two_starts(rapt_size(in[1], 0));
        rapt_bahdanau_state state = rapt_bahdanau_decoder_start_packed(m, in[1], in[2], from);
        return s->variant & loss ? rapt_bahdanau_decoder_loss_packed(m, tokens, starts, &state, targets, NULL)
                                 : rapt_bahdanau_decoder_forward_packed(m, tokens, starts, &state);
    }
    rapt_bahdanau_state state = rapt_bahdanau_decoder_start(m, in[1], in[2], in[3]);
    if (s->variant & loss) return rapt_bahdanau_decoder_loss(m, tokens, &state, targets, NULL);
    rapt_tensor *weights,
        *y = rapt_bahdanau_decoder_forward(m, tokens, &state, s->variant & and_weights ? &weights : NULL);
    return y && s->variant & and_weights ? rapt_concat(2, (rapt_tensor *[]){flat(y), flat(weights)}, 0) : y;
}

static rapt_tensor *bahdanau_decoder_by_definition(void *m, rapt_tensor *const *in, const op_sample *s)
{
    rapt_bahdanau_decoder *decoder = m;
    op_sample logits = *s;
    logits.variant &= ~loss;
    decoder->attention->plain = decoder->rnn->recurrent.plain = true;
    rapt_tensor *y = call_bahdanau_decoder(m, in, &logits);
    decoder->attention->plain = decoder->rnn->recurrent.plain = false;
    return s->variant & loss ? rapt_cross_entropy(y, targets_of(in[0]), NULL) : y;
}

static const op_sample texts[] = {
    {.in = {SHAPE(2, 3)}, .limit = 5},
    {.in = {SHAPE(2, 4)}, .limit = 5, .variant = loss, .axis = RAPT_POSITIONS_SINUSOIDAL},
    {.in = {SHAPE(5)}, .limit = 5, .variant = in_rows, .axis = RAPT_POSITIONS_ROTARY},
    {.in = {SHAPE(6)}, .limit = 5, .variant = loss | in_rows, .axis = RAPT_POSITIONS_ALIBI},
};
static const op_sample sources[] = {{.in = {SHAPE(2, 3)}, .limit = 5},
                                    {.in = {SHAPE(1, 2)}, .limit = 5},
                                    {.in = {SHAPE(5)}, .limit = 5, .variant = in_rows},
                                    {.in = {SHAPE(3, 1)}, .limit = 5}};
static const op_sample translations[] = {
    {.in = {SHAPE(2, 2), SHAPE(3, 2, 2), SHAPE(2, 2, 2), ABSENT}, .limit = 4},
    {.in = {SHAPE(2, 3), SHAPE(4, 2, 2), SHAPE(2, 2, 2), SHAPE(2)}, .limit = 4, .variant = and_weights},
    {.in = {SHAPE(2, 3), SHAPE(4, 2, 2), SHAPE(2, 2, 2), SHAPE(2)}, .limit = 4, .variant = loss},
    {.in = {SHAPE(5), SHAPE(4, 2), SHAPE(2, 2, 2), ABSENT}, .limit = 4, .variant = in_rows},
    {.in = {SHAPE(5), SHAPE(4, 2), SHAPE(2, 2, 2), ABSENT}, .limit = 4, .variant = loss | in_rows},
};

#define ROW(id, differentiable_inputs, sample_array)                                                                   \
    .row = {.name = #id,                                                                                               \
            .domain = {index64, [3] = length64},                                                                       \
            .differentiable = differentiable_inputs,                                                                   \
            SAMPLES(sample_array)},                                                                                    \
    .make = make_##id, .call = call_##id

static const layer_row rows[] = {
    {ROW(gpt, 0, texts), .definition = gpt_by_definition},
    {ROW(bahdanau_encoder, 0, sources), .definition = bahdanau_encoder_by_definition},
    {ROW(bahdanau_decoder, 6, translations), .definition = bahdanau_decoder_by_definition, .draws_otherwise = true},
};

LAYER_FAMILY(layers_tokens, rows);
