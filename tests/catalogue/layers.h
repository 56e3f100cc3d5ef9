/* The layer table: every constructor of the folder nn, and every normaliser, with sample inputs and, where there is
 * another way to say it, what it should compute. */
#ifndef RAPT_TESTS_LAYERS_H
#define RAPT_TESTS_LAYERS_H

#include "../ops.h"

/* A layer's forward function: the module, NULL where there is none, and the inputs of the sample. */
typedef rapt_tensor *layer_call(void *module, rapt_tensor *const *in, const op_sample *s);

/* One layer. `axis` and `variant` of a sample say what kind of it is made and how it is called, as its file has it. */
typedef struct layer_row {
    op_row row;                        /* name, domains, differentiable inputs, samples */
    void *(*make)(const op_sample *s); /* NULL: a function without a module */
    layer_call *call, *definition;     /* definition: the same in plain ops or the plain way; NULL: none */
    bool draws_otherwise;              /* the definition: it drops other numbers, and counts in evaluation alone */
    double float32;                    /* what float32 may lose of the largest element; 0: 1e-5 */
    bool needs_spread;                 /* a norm: of equal numbers its gradient is what cancellation leaves */
    const char *kind;                  /* "scoring", "modification" or "function"; NULL: "layer" */
} layer_row;

/* One family of rows. */
typedef struct layer_family {
    const layer_row *rows;
    int count;
} layer_family;

/* Row i, NULL after the last. Those added come last. */
const layer_row *layer_at(int i);

/* Adds a row of one's own, which stays in its place. */
void layer_add(const layer_row *row);

extern const layer_family layers_basic, layers_recurrent, layers_attention, layers_scoring, layers_models,
    layers_tokens, layers_functions;

#define LAYER_FAMILY(name, array_name) const layer_family name = {array_name, sizeof array_name / sizeof *array_name}

/* make_ID: an expression that gives a new module; and a layer_call: an expression of the module m, in and s. */
#define LAYER_MAKE(id, expression)                                                                                     \
    static void *make_##id(const op_sample *s)                                                                         \
    {                                                                                                                  \
        (void)s;                                                                                                       \
        return expression;                                                                                             \
    }
#define LAYER_FUNCTION(id, expression)                                                                                 \
    static rapt_tensor *id(void *m, rapt_tensor *const *in, const op_sample *s)                                        \
    {                                                                                                                  \
        (void)m, (void)in, (void)s;                                                                                    \
        return expression;                                                                                             \
    }

/* The one line that adds a layer of one's own, which maps a tensor to a tensor: its name, an expression that gives a
 * new one, and the shape of an input. */
#define CATALOGUE_LAYER(id, module, ...)                                                                               \
    LAYER_MAKE(id, module)                                                                                             \
    LAYER_FUNCTION(call_##id, rapt_module_forward(m, in[0]))                                                           \
    static const op_sample samples_##id[] = {{.in = {SHAPE(__VA_ARGS__)}}};                                            \
    static const layer_row row_##id = {.row = {.name = #id, .differentiable = 1, SAMPLES(samples_##id)},               \
                                       .make = make_##id,                                                              \
                                       .call = call_##id};                                                             \
    __attribute__((constructor)) static void add_##id(void)                                                            \
    {                                                                                                                  \
        layer_add(&row_##id);                                                                                          \
    }

#endif
