/* The steps of Bahdanau's decoder over raw numbers, forwards and backwards: attention, then the layers of a GRU. */
#ifndef RAPT_NN_BAHDANAU_ROWS_H
#define RAPT_NN_BAHDANAU_ROWS_H

#include "step_rows.h"
#include "tensor/additive_attention.h"
#include "tensor/packed_matrix.h"

enum { rapt_bahdanau_layers = 4 }; /* at most; more go the way of any other module */

typedef struct rapt_bahdanau_sizes {
    rapt_dtype dtype;
    int layers;
    int64_t bytes; /* of an element */
    rapt_step_rows steps;
    int64_t hidden, units, keys; /* units: of attention's projections */
} rapt_bahdanau_sizes;

/* Everything (rows, …) of all steps and dense unless it says otherwise; of layers one behind the other. */
typedef struct rapt_bahdanau_run {
    rapt_bahdanau_sizes s;
    const char *from_embedding; /* (…, 3·hidden): the part of the first projection that is known */
    const char *initial;        /* (layers, batch, hidden) */
    const char *drops;          /* (layers − 1, …, hidden): factors of dropout; NULL: none */
    const char *bias_hh[rapt_bahdanau_layers], *bias_ih[rapt_bahdanau_layers]; /* bias_ih: not of layer 0 */
    rapt_additive_attention attention; /* of one step, the first: (batch, 1, 1, keys) */
    char *sequence, *below;            /* states: of the last layer, and (layers − 1, …) of the others */
    char *cells;                       /* (layers, …, 4·hidden): what the cells keep */
    char *inputs;                      /* (layers − 1, …, hidden): what goes up; `below` without dropout */
    char *queries, *contexts;          /* (…, units) and (…, hidden) */
    char *weights, *statistics;        /* (…, keys) and (…, 2) */
    char *powers, *largest;            /* of the queries of one step: (batch, padded) and (batch) */

    const char *gradient;                        /* backward: of the sequence, */
    const char *weights_gradient;                /* and of the weights, (…, keys); NULL: none */
    char *carry;                                 /* (layers, batch, hidden): in goes the last state's gradient */
    char *input_gradients[rapt_bahdanau_layers]; /* (…, 3·hidden), of the projections */
    char *hidden_gradients[rapt_bahdanau_layers];
    char *query_gradients, *context_gradient; /* (…, units); (batch, hidden) */
    char *scores, *pooled;                    /* (batch, keys); pooled only with dropout */
    char *key_gradients, *value_gradients;    /* (batch, keys, units) and (batch, keys, hidden) */
    char *unit_gradients;                     /* (batch, units): of attention's weight */

    /* What rows are multiplied with, forward or, backward, the other way round; input: what goes up, of layer 0 the
     * context */
    rapt_packed_matrix query, input[rapt_bahdanau_layers], hidden[rapt_bahdanau_layers];
} rapt_bahdanau_run;

/* weights: what is packed: query (units, hidden), input and hidden (3·hidden, hidden), whose rows are so far apart. */
typedef struct rapt_bahdanau_weights {
    rapt_rows query, input[rapt_bahdanau_layers], hidden[rapt_bahdanau_layers];
} rapt_bahdanau_weights;

/* Runs all steps, backwards if there is a carry. False after an error under the op's name (no memory). */
bool rapt_bahdanau_run_steps(const char *op, rapt_bahdanau_run *run, const rapt_bahdanau_weights *weights);

/* The states of layer l after step t, or of t = −1 the initial ones. */
char *rapt_bahdanau_states(const rapt_bahdanau_run *run, int layer, int64_t step);

#endif
