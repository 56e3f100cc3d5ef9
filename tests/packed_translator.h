/* Bahdanau's encoder and decoder with packed sequences, run and differentiated. */
#ifndef RAPT_TESTS_PACKED_TRANSLATOR_H
#define RAPT_TESTS_PACKED_TRANSLATOR_H

#include "modules.h"

#include <rapt/seq2seq.h>

enum { vocabulary = 11, most_results = 64, most_sequences = 70 };

typedef struct setting {
    rapt_dtype dtype;
    int sequences;
    int64_t hidden;
    int layers;
    double dropout;
    bool plain;  /* both of the recurrent layers and of attention */
    bool is_dot; /* another scoring function, which the op of all steps does not have */
    bool alike;  /* all lengths the same */
    bool steep;  /* one long sequence, others of one token */
} setting;

typedef struct translator {
    rapt_bahdanau_encoder *encoder;
    rapt_bahdanau_decoder *decoder;
    int sequences;
    rapt_tensor *sources, *inputs, *labels; /* (rows) */
    rapt_tensor *source_starts, *target_starts;
} translator;

static inline rapt_scoring *dot(int64_t size, void *context)
{
    (void)size, (void)context;
    return rapt_scaled_dot_product_scoring_new();
}

static inline rapt_tensor *starts_of(const setting *s, int64_t step)
{
    int64_t lengths[most_sequences];
    cr_assert_leq(s->sequences, most_sequences);
    for (int64_t b = 0; b < s->sequences; b++)
        lengths[b] = s->alike ? 4 : s->steep ? (b == step ? 90 : 1) : 1 + (b * step + 2) % 7;
    return rapt_packing_starts(rapt_from(RAPT_INT64, RAPT_SHAPE(s->sequences), lengths));
}

static inline rapt_tensor *words(rapt_tensor *starts)
{
    const int64_t *start = rapt_data(starts);
    return rapt_randint(0, vocabulary, RAPT_SHAPE(start[rapt_count(starts) - 1]));
}

static inline translator translator_new(const setting *s)
{
    rapt_seed(4);
    const rapt_bahdanau_config config = {.vocabulary = vocabulary,
                                         .embedding = 5,
                                         .hidden = s->hidden,
                                         .layers = s->layers,
                                         .dropout = s->dropout,
                                         .scoring = s->is_dot ? dot : NULL};
    translator t = {.encoder = rapt_bahdanau_encoder_new(&config), .decoder = rapt_bahdanau_decoder_new(&config)};
    cr_assert(t.encoder && t.decoder && rapt_module_cast(&t.encoder->module, s->dtype) &&
                  rapt_module_cast(&t.decoder->module, s->dtype),
              "%s", rapt_error());
    t.encoder->rnn->recurrent.plain = t.decoder->rnn->recurrent.plain = t.decoder->attention->plain = s->plain;
    t.sequences = s->sequences;
    t.source_starts = starts_of(s, 3);
    t.target_starts = starts_of(s, 5);
    t.sources = words(t.source_starts);
    t.inputs = words(t.target_starts);
    t.labels = words(t.target_starts);
    return t;
}

static inline void translator_free(const translator *t)
{
    rapt_module_free(&t->encoder->module);
    rapt_module_free(&t->decoder->module);
}

/* Tensors that must be the same whichever way they are computed: the encoder's outputs and last states, logits (rows,
 * vocabulary) and the decoder's last states, and the gradients of all parameters. */
typedef struct outcome {
    int values, count;
    rapt_tensor *results[most_results];
} outcome;

enum { outputs_of_encoder, state_of_encoder, logits_of_rows, state_of_decoder };

static inline bool forward_packed(const translator *t, rapt_tensor **to)
{
    to[outputs_of_encoder] =
        rapt_bahdanau_encoder_forward_packed(t->encoder, t->sources, t->source_starts, &to[state_of_encoder]);
    rapt_bahdanau_state state =
        rapt_bahdanau_decoder_start_packed(t->decoder, to[outputs_of_encoder], to[state_of_encoder], t->source_starts);
    to[logits_of_rows] =
        state.keys ? rapt_bahdanau_decoder_forward_packed(t->decoder, t->inputs, t->target_starts, &state) : NULL;
    to[state_of_decoder] = state.hidden;
    return to[logits_of_rows] != NULL;
}

static inline rapt_tensor *loss_of(rapt_tensor *const *values, int count)
{
    rapt_tensor *loss = NULL;
    for (int i = 0; i < count; i++) {
        rapt_tensor *y = values[i], *part = rapt_sum(rapt_mul(y, rapt_sin(y)), RAPT_ALL_AXES, false);
        loss = loss ? rapt_add(loss, part) : part;
    }
    return loss;
}

static inline bool add_leaf(const char *name, rapt_tensor *tensor, void *context)
{
    (void)name;
    outcome *leaves = context;
    cr_assert_lt(leaves->count, most_results);
    leaves->results[leaves->count++] = tensor;
    return true;
}

static inline outcome leaves_of(const translator *t)
{
    outcome leaves = {0};
    rapt_module_visit(&t->encoder->module, RAPT_PARAMETERS, add_leaf, &leaves);
    rapt_module_visit(&t->decoder->module, RAPT_PARAMETERS, add_leaf, &leaves);
    return leaves;
}

#endif
