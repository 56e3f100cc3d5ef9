/* The translator's model: one of two architectures behind the same functions, its loss and its translations. */
#ifndef TRANSLATE_MODEL_H
#define TRANSLATE_MODEL_H

#include <rapt.h>

#include "batches.h"
#include "vocabulary.h"

/* What decides the shapes of the weights, and how they are used. */
struct model_sizes {
    int architecture; /* RECURRENT or TRANSFORMER */
    int scoring;      /* ADDITIVE, … */
    int64_t source_vocabulary, target_vocabulary, embedding, hidden, layers, heads, feed_forward;
    double dropout;
    bool is_book; /* a Transformer as the book runs it: generated tokens at position 0, evaluation without causality */
    bool reads_padding; /* a recurrent model as the book runs it: the encoder goes on through the padding */
};

/* The scoring functions: choice, name, and how one is made for queries and keys of that size. */
#define MODEL_SCORINGS(X)                                                                                              \
    X(ADDITIVE, "additive", rapt_additive_scoring_new(size, size, size))                                               \
    X(SCALED_DOT, "scaled-dot", rapt_scaled_dot_product_scoring_new())                                                 \
    X(DOT, "dot", rapt_dot_product_scoring_new())                                                                      \
    X(BILINEAR, "bilinear", rapt_bilinear_scoring_new(size, size))                                                     \
    X(COSINE, "cosine", rapt_cosine_scoring_new(0.1, true))                                                            \
    X(GAUSSIAN, "gaussian", rapt_gaussian_scoring_new(1, true))

/* The choices, and what options and files call them (closed by NULL). */
enum { RECURRENT, TRANSFORMER };
extern const char *const model_architectures[];
#define MODEL_SCORING_CHOICE(choice, name, scoring) choice,
enum { MODEL_SCORINGS(MODEL_SCORING_CHOICE) };
extern const char *const model_scorings[];

/* One translation under way: the first member of an architecture's own struct. */
struct decoding {
    struct model *model;
    bool keeps_weights; /* set it before the first step */
};

/* Attention weights of one sentence, float, (rows, columns, queries, keys) each. */
enum { most_maps = 3 };
struct attention_maps {
    int count;
    struct attention_map {
        const char *name, *query_axis,
            *key_axis; /* an axis is the "source", the "translation", or the decoder's "input" */
        rapt_tensor *weights;
    } map[most_maps];
};

/* What an architecture is. Functions give NULL or false after an error. */
struct architecture {
    struct model *(*make)(const struct model_sizes *sizes);
    rapt_tensor *(*loss)(struct model *model, const struct batch *batch, const rapt_cross_entropy_options *options);
    struct decoding *(*start)(struct model *model, const struct batch *batch);
    rapt_tensor *(*next)(void *decoding, rapt_tensor *tokens); /* as rapt_token_model has them */
    bool (*select)(void *decoding, rapt_tensor *rows);
    bool (*maps)(struct decoding *decoding, struct attention_maps *maps); /* of all steps so far */
    void (*end)(struct decoding *decoding);
};

extern const struct architecture architecture_recurrent, architecture_transformer;

/* The first member of an architecture's own module. */
struct model {
    rapt_module module;
    const struct architecture *architecture;
    struct model_sizes sizes;
};

/* NULL after an error. Free it with rapt_module_free(&model->module). */
struct model *model_new(const struct model_sizes *sizes);

/* For the architectures: a model of that size and kind with its first members set; the scoring function of the
 * sizes, for the configurations of the library's modules (context: the sizes). */
void *model_begin(size_t size, const rapt_module_class *kind, const struct architecture *architecture,
                  const struct model_sizes *sizes);
void model_describe(const rapt_module *module, char *text, size_t size);
rapt_scoring *model_scoring(int64_t size, void *sizes);

/* Cross-entropy: the mean over all positions, padding included, as the book trains; or over what is not padding. */
rapt_tensor *model_loss(struct model *model, const struct batch *batch, const int64_t *padding);

/* Translations of sources (batch, num_steps): num_steps ids of the target vocabulary for each, int64 (batch,
 * num_steps); greedy, or the best of several beams. maps, unless NULL, gets the attention (for one sentence,
 * greedy). */
rapt_tensor *model_translate(struct model *model, const struct batch *batch, const struct vocabulary *target, int beams,
                             struct attention_maps *maps);

#endif
