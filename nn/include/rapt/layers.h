/* The basic layers. Constructors give NULL after an error; forward functions take NULL and give NULL. */
#ifndef RAPT_LAYERS_H
#define RAPT_LAYERS_H

#include <rapt/module.h>

RAPT_BEGIN_DECLS

/* Has the layer a bias? */
enum rapt_layer_flags { RAPT_NO_BIAS = 0, RAPT_BIAS = 1 };

/* y = x Wᵀ + b. weight (out, in) and bias (out) start uniform within ±1/√in, as PyTorch's do. */
typedef struct rapt_linear {
    rapt_module module;
    rapt_tensor *weight, *bias; /* bias may be NULL */
    int64_t in, out;
} rapt_linear;

/* From vectors of `in` numbers to vectors of `out`. flags: RAPT_BIAS or RAPT_NO_BIAS. */
RAPT_API rapt_linear *rapt_linear_new(int64_t in, int64_t out, int flags);
RAPT_API rapt_tensor *rapt_linear_forward(rapt_linear *linear, rapt_tensor *x); /* (…, in) → (…, out) */

/* A table of `count` vectors of `size` numbers, drawn from N(0, 1). */
typedef struct rapt_embedding {
    rapt_module module;
    rapt_tensor *weight; /* (count, size) */
} rapt_embedding;

/* Indices (integers below count) to their vectors. */
RAPT_API rapt_embedding *rapt_embedding_new(int64_t count, int64_t size);
RAPT_API rapt_tensor *rapt_embedding_forward(rapt_embedding *embedding, rapt_tensor *indices); /* (…) → (…, size) */

/* PyTorch's Conv1d and Conv2d: rapt_conv1d or rapt_conv2d with its weight (out, in / groups, size) or (…, height,
 * width) and bias (out), both uniform within ±1/√(in / groups · size) at first. */
typedef struct rapt_convolution_layer {
    rapt_module module;
    rapt_tensor *weight, *bias; /* bias may be NULL */
    rapt_convolution options;
} rapt_convolution_layer;

/* options may be NULL, flags RAPT_BIAS; size of a 2d one: height and width. */
RAPT_API rapt_convolution_layer *rapt_conv1d_layer_new(int64_t in, int64_t out, int64_t size,
                                                       const rapt_convolution *options, int flags);
RAPT_API rapt_convolution_layer *rapt_conv2d_layer_new(int64_t in, int64_t out, const int64_t size[2],
                                                       const rapt_convolution *options, int flags);
RAPT_API rapt_tensor *rapt_convolution_layer_forward(rapt_convolution_layer *layer, rapt_tensor *x);

/* Normalises the last axis, then scales by weight (ones at first) and shifts by bias (zeros at first). */
typedef struct rapt_layer_norm {
    rapt_module module;
    rapt_tensor *weight, *bias; /* (size); bias may be NULL */
    double epsilon;             /* 1e-5 */
} rapt_layer_norm;

/* For a last axis of that size. flags: RAPT_BIAS or RAPT_NO_BIAS. x keeps its shape. */
RAPT_API rapt_layer_norm *rapt_layer_norm_new(int64_t size, int flags);
RAPT_API rapt_tensor *rapt_layer_norm_forward(rapt_layer_norm *layer_norm, rapt_tensor *x);

/* Divides the last axis by its root mean square, then scales by weight (ones at first). */
typedef struct rapt_rms_norm {
    rapt_module module;
    rapt_tensor *weight; /* (size) */
    double epsilon;      /* 1e-6; PyTorch's, where none is given, is the dtype's: 2⁻²³ in float32 */
} rapt_rms_norm;

/* For a last axis of that size; x keeps its shape. */
RAPT_API rapt_rms_norm *rapt_rms_norm_new(int64_t size);
RAPT_API rapt_tensor *rapt_rms_norm_forward(rapt_rms_norm *rms_norm, rapt_tensor *x);

/* Normalises each channel of x (B, C) or (B, C, …) over all other axes, then scales by weight (ones at first) and
 * shifts by bias (zeros at first). In training (rapt_module_train) by the batch's own mean and variance, of 2 or more
 * numbers, and the running ones, buffers, follow: running = (1 − momentum) · running + momentum · new, where the new
 * variance is the unbiased one; a run that rapt_recompute repeats counts once, and one whose later layers fail counts
 * too. In evaluation by the running ones. */
typedef struct rapt_batch_norm {
    rapt_module module;
    rapt_tensor *weight, *bias;              /* (C) */
    rapt_tensor *running_mean, *running_var; /* (C), zeros and ones at first */
    rapt_tensor *batches;                    /* num_batches_tracked, an int64: forwards in training so far */
    double epsilon, momentum;                /* 1e-5, 0.1; a momentum of 0 to 1, or training is an error */
} rapt_batch_norm;

/* For so many channels; x keeps its shape. */
RAPT_API rapt_batch_norm *rapt_batch_norm_new(int64_t size);
RAPT_API rapt_tensor *rapt_batch_norm_forward(rapt_batch_norm *batch_norm, rapt_tensor *x);

/* In training zeroes each element with the probability and scales the others up; in evaluation the identity. */
typedef struct rapt_dropout {
    rapt_module module;
    double probability;
} rapt_dropout;

/* With a probability in [0, 1]. x keeps its shape. */
RAPT_API rapt_dropout *rapt_dropout_new(double probability);
RAPT_API rapt_tensor *rapt_dropout_forward(rapt_dropout *dropout, rapt_tensor *x);

/* An op of one tensor as a layer without parameters, for sequential: rapt_activation_new("ReLU", rapt_relu). The name
 * is copied. */
typedef rapt_tensor *rapt_activation_function(rapt_tensor *x);
RAPT_API rapt_module *rapt_activation_new(const char *name, rapt_activation_function *function);

/* Layers one after the other, named "0", "1", …: its children; what else is added to it takes no part. One may stand in
 * several places of the list. */
typedef struct rapt_sequential {
    rapt_module module;
} rapt_sequential;

/* The layers become its children, as rapt_module_add_child has it; forward runs one after the other. */
RAPT_API rapt_sequential *rapt_sequential_new(int count, rapt_module *const *layers);
RAPT_API rapt_tensor *rapt_sequential_forward(rapt_sequential *sequential, rapt_tensor *x);

/* rapt_sequential_new with the layers written out, as modules: (rapt_module *)rapt_linear_new(2, 16, RAPT_BIAS), where
 * -> would ask a NULL for its member. C leaves open which is made first; gcc and clang go from left to right. */
#define RAPT_SEQUENTIAL(...)                                                                                           \
    rapt_sequential_new(RAPT_LENGTH_OF(rapt_module *, __VA_ARGS__), RAPT_ARRAY_OF(rapt_module *, __VA_ARGS__))

RAPT_END_DECLS

#endif
