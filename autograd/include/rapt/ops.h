/* The differentiable ops. Each gives a new tensor of the innermost scope, or NULL after an error; NULL in gives NULL
 * out. Inputs of one op have one dtype; shapes broadcast as numpy's do where two tensors meet element by element.
 * Negative axes count from the last. The number that a …_scalar op, masked_fill or pad takes counts as one of the
 * tensor's dtype; it is an error where an integer dtype, or bool, has no such number.
 *
 * NaN, infinities and the largest numbers give what they give in PyTorch 2.6, in values and first derivatives, but:
 * - what overflows there on the way to a result that does not, such as the square of a number to be normalised, here
 *   gives that result; only the sums that var, std and norm need overflow in float64, and give ∞;
 * - logsumexp of −∞ only has gradient 0, not NaN; several equal numbers so large that adding log(count) changes nothing
 *   share the gradient, where there each gets 1;
 * - a row left out of a smoothed cross_entropy has gradient 0 where it is NaN too, not NaN;
 * - gradients of prod and cumprod are products of the other elements also where some are NaN or infinite: of prod at
 *   (2, ∞) they are ∞ and 2. PyTorch divides the product by the element, which gives NaN, and has 0 where there are two
 *   zeros and more; second derivatives of prod, cumprod and norm are others where elements are NaN, infinite or the
 *   largest, and at 0 norm's is 0;
 * - a norm of order ±∞ that is NaN has gradient NaN at elements that are neither 0 nor NaN, not 0; one of an order
 *   below 1 has gradient 0 at 0 also where it is NaN or ∞, not NaN;
 * - elu of NaN has gradient 1; there it is NaN in vectorised loops and 1 in what they leave over;
 * - bce_with_logits of −∞ is ∞ for a target above 0, not NaN; gelu of ∞ is ∞ in float32 too, log1p of the largest a
 *   number in float64 too, elu of −0 is −0;
 * - of several NaN in a window of max_pool the first gets the gradient, not the last;
 * - in kl_div a target of 0 counts for nothing: loss and gradients are 0, also where the input is NaN or infinite;
 * - pow_scalar is C's pow for the exponents ½, −½ and 1½ too, where PyTorch takes roots: at ½ it is ∞ at −∞ and 0 at
 *   −0, and the others differ in value or gradient at these two. */
#ifndef RAPT_OPS_H
#define RAPT_OPS_H

#include <rapt/op.h>

RAPT_BEGIN_DECLS

/* Axes written in place: rapt_sum(x, RAPT_AXES(0, 2), true). RAPT_ALL_AXES means every axis. */
#define RAPT_AXES(...) RAPT_LENGTH_OF(int, __VA_ARGS__), RAPT_ARRAY_OF(int, __VA_ARGS__)
#ifdef __cplusplus
#define RAPT_ALL_AXES 0, nullptr /* a template takes NULL for a number */
#else
#define RAPT_ALL_AXES 0, NULL
#endif

/* --- arithmetic, element by element, broadcasting --- */
RAPT_API rapt_tensor *rapt_add(rapt_tensor *a, rapt_tensor *b);          /* a + b */
RAPT_API rapt_tensor *rapt_sub(rapt_tensor *a, rapt_tensor *b);          /* a − b */
RAPT_API rapt_tensor *rapt_mul(rapt_tensor *a, rapt_tensor *b);          /* a · b */
RAPT_API rapt_tensor *rapt_div(rapt_tensor *a, rapt_tensor *b);          /* a / b; integers: floor, b = 0 is an error */
RAPT_API rapt_tensor *rapt_pow(rapt_tensor *a, rapt_tensor *b);          /* a ^ b, floating */
RAPT_API rapt_tensor *rapt_maximum(rapt_tensor *a, rapt_tensor *b);      /* NaN if either is; ties share the gradient */
RAPT_API rapt_tensor *rapt_minimum(rapt_tensor *a, rapt_tensor *b);      /* likewise */
RAPT_API rapt_tensor *rapt_add_scalar(rapt_tensor *x, double value);     /* x + value */
RAPT_API rapt_tensor *rapt_mul_scalar(rapt_tensor *x, double value);     /* x · value */
RAPT_API rapt_tensor *rapt_pow_scalar(rapt_tensor *x, double exponent);  /* x ^ exponent, floating */
RAPT_API rapt_tensor *rapt_maximum_scalar(rapt_tensor *x, double value); /* a tie has half the gradient */
RAPT_API rapt_tensor *rapt_minimum_scalar(rapt_tensor *x, double value); /* likewise */

/* --- functions of one tensor; floating, but for neg and abs --- */
RAPT_API rapt_tensor *rapt_neg(rapt_tensor *x);                            /* −x */
RAPT_API rapt_tensor *rapt_abs(rapt_tensor *x);                            /* gradient 0 at 0 */
RAPT_API rapt_tensor *rapt_exp(rapt_tensor *x);                            /* eˣ */
RAPT_API rapt_tensor *rapt_log(rapt_tensor *x);                            /* the natural logarithm */
RAPT_API rapt_tensor *rapt_expm1(rapt_tensor *x);                          /* eˣ − 1, exact near 0 too */
RAPT_API rapt_tensor *rapt_log1p(rapt_tensor *x);                          /* log(1 + x), likewise */
RAPT_API rapt_tensor *rapt_sqrt(rapt_tensor *x);                           /* √x */
RAPT_API rapt_tensor *rapt_rsqrt(rapt_tensor *x);                          /* 1 / √x */
RAPT_API rapt_tensor *rapt_sin(rapt_tensor *x);                            /* of radians */
RAPT_API rapt_tensor *rapt_cos(rapt_tensor *x);                            /* of radians */
RAPT_API rapt_tensor *rapt_tanh(rapt_tensor *x);                           /* (eˣ − e⁻ˣ) / (eˣ + e⁻ˣ) */
RAPT_API rapt_tensor *rapt_sigmoid(rapt_tensor *x);                        /* σ(x) = 1 / (1 + e⁻ˣ) */
RAPT_API rapt_tensor *rapt_erf(rapt_tensor *x);                            /* 2/√π ∫ exp(−t²) dt from 0 to x */
RAPT_API rapt_tensor *rapt_sign(rapt_tensor *x);                           /* −1, 0 or 1; 0 for NaN; gradient 0 */
RAPT_API rapt_tensor *rapt_floor(rapt_tensor *x);                          /* gradient 0, as of the next two */
RAPT_API rapt_tensor *rapt_ceil(rapt_tensor *x);                           /* the next integer from x upwards */
RAPT_API rapt_tensor *rapt_round(rapt_tensor *x);                          /* halves to the even neighbour */
RAPT_API rapt_tensor *rapt_relu(rapt_tensor *x);                           /* gradient 0 at 0 */
RAPT_API rapt_tensor *rapt_gelu(rapt_tensor *x);                           /* x Φ(x), exact by erf */
RAPT_API rapt_tensor *rapt_gelu_tanh(rapt_tensor *x);                      /* its tanh approximation */
RAPT_API rapt_tensor *rapt_silu(rapt_tensor *x);                           /* x σ(x) */
RAPT_API rapt_tensor *rapt_softplus(rapt_tensor *x);                       /* log(1 + eˣ), also beyond 20 */
RAPT_API rapt_tensor *rapt_mish(rapt_tensor *x);                           /* x tanh(softplus x) */
RAPT_API rapt_tensor *rapt_leaky_relu(rapt_tensor *x, double slope);       /* slope · x up to 0 */
RAPT_API rapt_tensor *rapt_elu(rapt_tensor *x, double alpha);              /* alpha (eˣ − 1) up to 0 */
RAPT_API rapt_tensor *rapt_clamp(rapt_tensor *x, double low, double high); /* gradient 0 outside; low ≤ high */

/* --- comparisons and choice; comparisons give bool and are not differentiable --- */
/* a = b, ≠, <, ≤, >, ≥, of two tensors that broadcast or of one and a number */
RAPT_API rapt_tensor *rapt_equal(rapt_tensor *a, rapt_tensor *b);
RAPT_API rapt_tensor *rapt_not_equal(rapt_tensor *a, rapt_tensor *b);
RAPT_API rapt_tensor *rapt_less(rapt_tensor *a, rapt_tensor *b);
RAPT_API rapt_tensor *rapt_less_equal(rapt_tensor *a, rapt_tensor *b);
RAPT_API rapt_tensor *rapt_greater(rapt_tensor *a, rapt_tensor *b);
RAPT_API rapt_tensor *rapt_greater_equal(rapt_tensor *a, rapt_tensor *b);
RAPT_API rapt_tensor *rapt_equal_scalar(rapt_tensor *x, double value);
RAPT_API rapt_tensor *rapt_not_equal_scalar(rapt_tensor *x, double value);
RAPT_API rapt_tensor *rapt_less_scalar(rapt_tensor *x, double value);
RAPT_API rapt_tensor *rapt_less_equal_scalar(rapt_tensor *x, double value);
RAPT_API rapt_tensor *rapt_greater_scalar(rapt_tensor *x, double value);
RAPT_API rapt_tensor *rapt_greater_equal_scalar(rapt_tensor *x, double value);
/* of bool, broadcasting */
RAPT_API rapt_tensor *rapt_logical_and(rapt_tensor *a, rapt_tensor *b);
RAPT_API rapt_tensor *rapt_logical_or(rapt_tensor *a, rapt_tensor *b);
RAPT_API rapt_tensor *rapt_logical_not(rapt_tensor *x);
RAPT_API rapt_tensor *rapt_isfinite(rapt_tensor *x); /* bool: neither NaN nor infinite */
RAPT_API rapt_tensor *rapt_where(rapt_tensor *condition, rapt_tensor *a, rapt_tensor *b); /* bool ? a : b */
/* the value where the mask, bool and broadcasting to x, is true; x elsewhere */
RAPT_API rapt_tensor *rapt_masked_fill(rapt_tensor *x, rapt_tensor *mask, double value);
/* matrices (…, n, m) with 0 where j − i is less (upper triangle) or more (lower) than diagonal, at i, j */
RAPT_API rapt_tensor *rapt_triu(rapt_tensor *x, int64_t diagonal);
RAPT_API rapt_tensor *rapt_tril(rapt_tensor *x, int64_t diagonal);
/* As C converts; to whole numbers a float beyond them is the nearest one, and NaN is 0, while whole numbers lose the
 * bits that do not fit. Differentiable between floats. */
RAPT_API rapt_tensor *rapt_cast(rapt_tensor *x, rapt_dtype dtype);

/* --- reductions; axes as above, keep: reduced axes stay with size 1 --- */
/* bool and integers sum to int64 */
RAPT_API rapt_tensor *rapt_sum(rapt_tensor *x, int axis_count, const int *axes, bool keep);
/* Π x; bool and integers give int64; right gradients with zeros too */
RAPT_API rapt_tensor *rapt_prod(rapt_tensor *x, int axis_count, const int *axes, bool keep);
/* of bool and integers in float32: the mean of a comparison is the share of what is true */
RAPT_API rapt_tensor *rapt_mean(rapt_tensor *x, int axis_count, const int *axes, bool keep);
/* Σ(x−x̄)² / (n − correction) */
RAPT_API rapt_tensor *rapt_var(rapt_tensor *x, int axis_count, const int *axes, bool keep, int correction);
/* √var; gradient 0 where it is 0 */
RAPT_API rapt_tensor *rapt_std(rapt_tensor *x, int axis_count, const int *axes, bool keep, int correction);
/* (Σ |x|^order)^(1 / order); 0: how many are not 0, ±∞: the largest or smallest |x|; gradient 0 where it is 0 */
RAPT_API rapt_tensor *rapt_norm(rapt_tensor *x, double order, int axis_count, const int *axes, bool keep);
/* ties share the gradient; empty: error */
RAPT_API rapt_tensor *rapt_max(rapt_tensor *x, int axis_count, const int *axes, bool keep);
RAPT_API rapt_tensor *rapt_min(rapt_tensor *x, int axis_count, const int *axes, bool keep);
/* bool: is some element, or each, other than 0? NaN is; of nothing false and true */
RAPT_API rapt_tensor *rapt_any(rapt_tensor *x, int axis_count, const int *axes, bool keep);
RAPT_API rapt_tensor *rapt_all(rapt_tensor *x, int axis_count, const int *axes, bool keep);
/* int64; the first of equals; NaN wins */
RAPT_API rapt_tensor *rapt_argmax(rapt_tensor *x, int axis, bool keep);
/* int64; the first of equals; NaN wins here too */
RAPT_API rapt_tensor *rapt_argmin(rapt_tensor *x, int axis, bool keep);
/* log Σ exp x, without overflow on the way */
RAPT_API rapt_tensor *rapt_logsumexp(rapt_tensor *x, int axis_count, const int *axes, bool keep);
/* element i: the sum of elements 0 … i along the axis */
RAPT_API rapt_tensor *rapt_cumsum(rapt_tensor *x, int axis);
/* the product of the elements so far; right gradients with zeros too */
RAPT_API rapt_tensor *rapt_cumprod(rapt_tensor *x, int axis);

/* --- order, along one axis of fewer than 2³² elements: equal ones stay in order, a NaN is larger than all else --- */
/* The elements in order; indices, unless it is NULL, becomes the places that they had, int64. */
RAPT_API rapt_tensor *rapt_sort(rapt_tensor *x, int axis, bool descending, rapt_tensor **indices);
/* The places alone. */
RAPT_API rapt_tensor *rapt_argsort(rapt_tensor *x, int axis, bool descending);
/* The first `count` elements of rapt_sort in descending (largest) or ascending order, without sorting the rest. */
RAPT_API rapt_tensor *rapt_topk(rapt_tensor *x, int axis, int64_t count, bool largest, rapt_tensor **indices);

/* --- matrix products --- */
/* (…, n, k) · (…, k, m) → (…, n, m); leading axes broadcast; transposed views are used as they are. A vector (k) on
 * the left counts as (1, k), on the right as (k, 1), and that axis is dropped again. Floating, as affine is. */
RAPT_API rapt_tensor *rapt_matmul(rapt_tensor *a, rapt_tensor *b);
/* x Wᵀ + b: x (…, in), weight (out, in), bias (out) or NULL → (…, out). */
RAPT_API rapt_tensor *rapt_affine(rapt_tensor *x, rapt_tensor *weight, rapt_tensor *bias);
/* (n), (m) → (n, m): a_i b_j */
RAPT_API rapt_tensor *rapt_outer(rapt_tensor *a, rapt_tensor *b);
/* Products summed over axes with names, a letter each: "ij,jk->ik" is a matrix product, "bii->b" traces, "...ij->...ji"
 * transposes. An axis whose letter is not in the result is summed; without "->" the result has the letters that occur
 * once, in alphabetical order, behind the axes of "...". Sizes of 1 broadcast. Several tensors are multiplied from left
 * to right. Floating. */
RAPT_API rapt_tensor *rapt_einsum(const char *equation, int count, rapt_tensor *const *tensors);

/* What an affine map may end with: the functions of the same names. */
typedef enum rapt_activation {
    RAPT_ACTIVATION_RELU,
    RAPT_ACTIVATION_GELU,
    RAPT_ACTIVATION_GELU_TANH,
    RAPT_ACTIVATION_SILU
} rapt_activation;

/* drop(f(x Wᵀ + b)) with the activation f and the probability `dropout`, 0 for none: the bits that rapt_affine, f and
 * rapt_drop give one after the other, but with fewer passes over memory, and of relu only what remains is stored. */
RAPT_API rapt_tensor *rapt_affine_activation(rapt_tensor *x, rapt_tensor *weight, rapt_tensor *bias,
                                             rapt_activation activation, double dropout);

/* --- images and sequences --- */
/* Where windows lie: for conv1d the first of each, for conv2d by height and by width. 0 of stride, dilation and groups
 * means 1. */
typedef struct rapt_convolution {
    int64_t stride[2], padding[2], dilation[2];
    int64_t groups; /* of channels that do not see each other; both numbers of channels are multiples of it */
} rapt_convolution;

/* Each output is the product of a window, x's numbers from (i · stride − padding) on, `dilation` apart, with the
 * weight: x (B, C, length), weight (out, C / groups, size), bias (out) or NULL → (B, out, new length), where the new
 * length is ⌊(length + 2 padding − dilation (size − 1) − 1) / stride⌋ + 1. Padding counts as zeros. NULL: no
 * options. */
RAPT_API rapt_tensor *rapt_conv1d(rapt_tensor *x, rapt_tensor *weight, rapt_tensor *bias,
                                  const rapt_convolution *options);
/* The same of (B, C, height, width) and (out, C / groups, height, width). */
RAPT_API rapt_tensor *rapt_conv2d(rapt_tensor *x, rapt_tensor *weight, rapt_tensor *bias,
                                  const rapt_convolution *options);

/* Windows of images: of [0] for …1d, of height and width for …2d. stride 0: the size; dilation 0: 1. */
typedef struct rapt_pool {
    int64_t size[2], stride[2];
    int64_t padding[2];      /* half of the size at most */
    int64_t dilation[2];     /* of max_pool only */
    bool ceil;               /* the last window may reach past the padding by less than a stride, if it begins before */
    bool leaves_padding_out; /* of avg_pool: the mean is over x's numbers only; else padding counts as zeros */
} rapt_pool;

/* (B, C, length) or (B, C, height, width): the largest number of each window, without padding (the gradient goes to the
 * first of equals; NaN wins), and the mean. Sizes as of convolutions. A window that sees no number is an error. */
RAPT_API rapt_tensor *rapt_max_pool1d(rapt_tensor *x, const rapt_pool *pool);
RAPT_API rapt_tensor *rapt_max_pool2d(rapt_tensor *x, const rapt_pool *pool);
RAPT_API rapt_tensor *rapt_avg_pool1d(rapt_tensor *x, const rapt_pool *pool);
RAPT_API rapt_tensor *rapt_avg_pool2d(rapt_tensor *x, const rapt_pool *pool);

/* --- views: no element is copied (but by reshape of a tensor whose strides cannot express it, and contiguous) --- */
RAPT_API rapt_tensor *rapt_reshape(rapt_tensor *x, int rank, const int64_t *shape); /* one size may be −1 */
RAPT_API rapt_tensor *rapt_transpose(rapt_tensor *x, int axis, int other_axis);     /* they change places */
/* axis i of the result is axes[i] of x; each of them once */
RAPT_API rapt_tensor *rapt_permute(rapt_tensor *x, int axis_count, const int *axes);
/* step ≥ 1; bounds clip as Python's */
RAPT_API rapt_tensor *rapt_slice(rapt_tensor *x, int axis, int64_t start, int64_t stop, int64_t step);
/* one index of an axis, which goes; a negative one counts from the end */
RAPT_API rapt_tensor *rapt_select(rapt_tensor *x, int axis, int64_t index);
/* sizes of 1 repeat; −1 keeps */
RAPT_API rapt_tensor *rapt_expand(rapt_tensor *x, int rank, const int64_t *shape);
/* drops an axis of size 1, any other size being an error; puts one in before that axis */
RAPT_API rapt_tensor *rapt_squeeze(rapt_tensor *x, int axis);
RAPT_API rapt_tensor *rapt_unsqueeze(rapt_tensor *x, int axis);
/* row-major, without gaps: a view of the whole x where it is so, a copy elsewhere */
RAPT_API rapt_tensor *rapt_contiguous(rapt_tensor *x);
/* Pieces of the given sizes along an axis (their sum must be its size), written to pieces[0 … count − 1]; NULL each
 * after an error. */
RAPT_API bool rapt_split(rapt_tensor *x, int axis, int count, const int64_t *sizes, rapt_tensor **pieces);

/* --- putting together --- */
/* along an axis that they have, in which alone their shapes may differ; along a new one, of equal shapes */
RAPT_API rapt_tensor *rapt_concat(int count, rapt_tensor *const *tensors, int axis);
RAPT_API rapt_tensor *rapt_stack(int count, rapt_tensor *const *tensors, int axis);
/* so many elements of that value before and after, along the axis */
RAPT_API rapt_tensor *rapt_pad(rapt_tensor *x, int axis, int64_t before, int64_t after, double value);
/* the last element of these axes comes first */
RAPT_API rapt_tensor *rapt_flip(rapt_tensor *x, int axis_count, const int *axes);
RAPT_API rapt_tensor *rapt_roll(rapt_tensor *x, int axis, int64_t shift); /* element i goes to (i + shift) mod size */
/* the whole tensor repeats[i] times along axis i; the shorter of shape and repeats has 1s in front */
RAPT_API rapt_tensor *rapt_tile(rapt_tensor *x, int rank, const int64_t *repeats);
/* each element `repeats` times, one behind the other along the axis */
RAPT_API rapt_tensor *rapt_repeat_interleave(rapt_tensor *x, int axis, int64_t repeats);

/* --- indices: int64 or int32, checked; a negative or too large one is an error that names it --- */
RAPT_API rapt_tensor *rapt_embed(rapt_tensor *table, rapt_tensor *indices); /* (n, d), (…) → (…, d) */
RAPT_API rapt_tensor *rapt_index_select(rapt_tensor *x, int axis, rapt_tensor *indices); /* indices (m) */
RAPT_API rapt_tensor *rapt_gather(rapt_tensor *x, int axis, rapt_tensor *indices);       /* as torch.gather */
/* a new tensor; floating */
RAPT_API rapt_tensor *rapt_scatter_add(rapt_tensor *x, int axis, rapt_tensor *indices, rapt_tensor *source);
/* the same, of any dtype, with the source's elements in the places of x's: of several with one index the last along the
 * axis stays, and the others have gradient 0 */
RAPT_API rapt_tensor *rapt_scatter(rapt_tensor *x, int axis, rapt_tensor *indices, rapt_tensor *source);
/* (…) → (…, classes) */
RAPT_API rapt_tensor *rapt_one_hot(rapt_tensor *indices, int64_t classes, rapt_dtype dtype);

/* The places of all elements that are not 0 (NaN is not) in x's row-major order, as if it had one axis, int64: (…) →
 * (found). The elements of x where a mask of its shape is true, with their gradient:
 * rapt_index_select(rapt_reshape(x, RAPT_SHAPE(-1)), 0, rapt_flatnonzero(mask)). */
RAPT_API rapt_tensor *rapt_flatnonzero(rapt_tensor *x);

/* Indices drawn from the last axis, int64: (…, n) → (…, count), each with a chance that its weight, finite and not
 * negative, has of the row's sum. By `count` numbers u of rapt_rand in float64 for each row: the first index at which
 * the sum of weights exceeds u times the whole. Without replacement by one u for each weight: the indices of the
 * smallest −log(1 − u) / weight in ascending order, of which there must be `count` with a weight above 0. */
RAPT_API rapt_tensor *rapt_multinomial(rapt_tensor *weights, int64_t count, bool replace);

/* --- normalisation; floating --- */
/* exp x / Σ exp x along the axis, and its logarithm */
RAPT_API rapt_tensor *rapt_softmax(rapt_tensor *x, int axis);
RAPT_API rapt_tensor *rapt_log_softmax(rapt_tensor *x, int axis);
/* Weights that add up to 1 as softmax's do, but 0 for what is far below the largest: the closest point of the simplex
 * (Martins & Astudillo 2016), and half-way to softmax, α = 1.5 (Peters et al. 2019). −∞ has weight 0; a row of nothing
 * else gives zeros and zero gradients. */
RAPT_API rapt_tensor *rapt_sparsemax(rapt_tensor *x, int axis);
RAPT_API rapt_tensor *rapt_entmax15(rapt_tensor *x, int axis);
/* Over the last axis (d): weight and bias (d) or NULL. epsilon is inside the root (Ba et al. 2016). */
RAPT_API rapt_tensor *rapt_layer_normalize(rapt_tensor *x, rapt_tensor *weight, rapt_tensor *bias, double epsilon);
/* x / √(mean x² + epsilon) · weight over the last axis; weight (d) or NULL (Zhang & Sennrich 2019). */
RAPT_API rapt_tensor *rapt_rms_normalize(rapt_tensor *x, rapt_tensor *weight, double epsilon);
/* (x − mean) / √(var + epsilon) · weight + bias, mean and var those of each channel, over all axes but axis 1 (Ioffe &
 * Szegedy 2015): x (B, C, …), weight and bias (C) or NULL. Unless NULL, *mean and *variance become these (C),
 * constants; the variance is Σ(x−x̄)² / n, and 0 of no number. */
RAPT_API rapt_tensor *rapt_batch_normalize(rapt_tensor *x, rapt_tensor *weight, rapt_tensor *bias, double epsilon,
                                           rapt_tensor **mean, rapt_tensor **variance);
/* Zeroes each element with the probability, in [0, 1], and scales the others by 1 / (1 − probability). */
RAPT_API rapt_tensor *rapt_drop(rapt_tensor *x, double probability);

/* --- losses --- */
/* One loss of many: their mean, their sum, or all of them as they are. */
typedef enum rapt_reduction { RAPT_REDUCE_MEAN, RAPT_REDUCE_SUM, RAPT_REDUCE_NONE } rapt_reduction;

/* All zeros: the mean over all targets. */
typedef struct rapt_cross_entropy_options {
    bool has_ignore_index;  /* leave out targets equal to ignore_index; the mean is over the others (none: 0) */
    int64_t ignore_index;   /* 0 without has_ignore_index */
    double label_smoothing; /* ε in [0, 1]: (1 − ε)·one-hot + ε / classes */
    rapt_reduction reduction;
} rapt_cross_entropy_options;

/* −log softmax(logits)[target]: logits (…, classes), targets (…) int64 or int32. options may be NULL. */
RAPT_API rapt_tensor *rapt_cross_entropy(rapt_tensor *logits, rapt_tensor *targets,
                                         const rapt_cross_entropy_options *options);
/* rapt_cross_entropy of the logits x weightᵀ + bias, those of a large vocabulary, which are never all stored: x is
 * (…, in), weight (classes, in), bias (classes) or NULL, targets (…). Rows that are left out are not read and cost
 * nothing. A loss that is one number computes its gradients too while it has the logits, unless nothing is recorded.
 * The losses and x's gradient have the bits that rapt_affine and rapt_cross_entropy give, where a gradient of 1 comes
 * in and products are the library's own; so has the weight's, where no row is left out. */
RAPT_API rapt_tensor *rapt_linear_cross_entropy(rapt_tensor *x, rapt_tensor *weight, rapt_tensor *bias,
                                                rapt_tensor *targets, const rapt_cross_entropy_options *options);
/* −log_probabilities[target], shapes as above; ignore_index likewise, label_smoothing must be 0. */
RAPT_API rapt_tensor *rapt_nll_loss(rapt_tensor *log_probabilities, rapt_tensor *targets,
                                    const rapt_cross_entropy_options *options);
/* (input − target)² */
RAPT_API rapt_tensor *rapt_mse_loss(rapt_tensor *input, rapt_tensor *target, rapt_reduction reduction);
/* |input − target| */
RAPT_API rapt_tensor *rapt_l1_loss(rapt_tensor *input, rapt_tensor *target, rapt_reduction reduction);
/* d² / 2 where |d| ≤ delta, else delta (|d| − delta / 2), with d = input − target */
RAPT_API rapt_tensor *rapt_huber_loss(rapt_tensor *input, rapt_tensor *target, double delta, rapt_reduction reduction);
/* Of logits and targets in [0, 1], stable for large logits. */
RAPT_API rapt_tensor *rapt_bce_with_logits(rapt_tensor *logits, rapt_tensor *targets, rapt_reduction reduction);
/* target · (log target − input), input holding log-probabilities; 0 where the target is 0. The mean is over
 * elements. */
RAPT_API rapt_tensor *rapt_kl_div(rapt_tensor *input, rapt_tensor *target, rapt_reduction reduction);

RAPT_END_DECLS

#endif
