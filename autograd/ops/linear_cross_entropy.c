/* linear_cross_entropy: a linear layer and the cross-entropy of what it gives, some rows after the others, so that the
 * logits of all rows are never stored. */
#include "class_loss.h"
#include "tensor/core.h"
#include "tensor/kernel_matmul.h"
#include "tensor/kernels.h"
#include "tensor/matmul.h"
#include "tensor/parallel.h"

static const char name[] = "linear_cross_entropy";

/* Rows that count, and what is wanted of them. All are dense but the weight. */
typedef struct work {
    int64_t classes;
    double smoothing;
    rapt_tensor *x, *weight, *bias, *targets; /* (N, in), (classes, in), (classes) or NULL, (N) */
    rapt_tensor *losses;                      /* (N) */
    rapt_tensor *g;                           /* of the losses: one for all, one for each, or NULL: no gradients */
    rapt_tensor *dx, *dweight, *dbias;        /* like x, weight and bias; NULL: not wanted */
    rapt_tensor *logits;                      /* of a chunk, and the row that it begins with */
    int64_t first;
} work;

/* Where gradients are wanted, they take the place of the logits. */
static void lose(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    const rapt_dtype dtype = w->losses->dtype;
    const int64_t row = w->first + first, step = w->g && w->g->rank > 0;
    const int64_t *targets = (const int64_t *)(void *)rapt_data_at(w->targets, row);
    char *logits = rapt_data_at(w->logits, first * w->classes), *losses = rapt_data_at(w->losses, row);
    if (w->g)
        rapt_kernel.loss.cross_entropy_gradient[dtype](last - first, w->classes, w->smoothing, logits, targets,
                                                       rapt_data_at(w->g, step * row), step, losses, NULL, logits);
    else
        rapt_kernel.loss.cross_entropy[dtype](last - first, w->classes, w->smoothing, logits, targets, losses, NULL);
}

static rapt_tensor *rows_of(rapt_tensor *matrix, int64_t first, int64_t last)
{
    return rapt_slice(matrix, 0, first, last, 1);
}

/* z = x Wᵀ + b: dx = dz W, dW = dzᵀ x, db = Σ dz, the last two summed over the chunks */
static bool run_chunk(work *w, int64_t first, int64_t last)
{
    RAPT_SCOPE;
    rapt_tensor *x = rows_of(w->x, first, last), *z = rows_of(w->logits, 0, last - first);
    const rapt_tensor *turned = rapt_transpose(w->weight, 0, 1);
    if (!x || !z || !turned || !rapt_matmul_into(name, z, x, turned, w->bias, false)) return false;
    w->first = first;
    rapt_parallel(last - first, rapt_grain(8 * w->classes), lose, w);
    if (w->dx) {
        const rapt_tensor *dx = rows_of(w->dx, first, last);
        if (!dx || !rapt_matmul_into(name, dx, z, w->weight, NULL, false)) return false;
    }
    if (w->dweight) {
        turned = rapt_transpose(z, 0, 1);
        if (!turned || !rapt_matmul_into(name, w->dweight, turned, x, NULL, first > 0)) return false;
    }
    if (!w->dbias) return true;
    const rapt_tensor *sum = rapt_sum(z, RAPT_AXES(0), false);
    return sum && (first > 0 ? rapt_add_in_place(w->dbias, sum, 1) : rapt_copy(w->dbias, sum));
}

/* Is the sum over these blocks of k alone cut as it is among all? */
static bool is_cut_alike(int64_t k, int64_t first, int64_t last)
{
    const int64_t start = rapt_block_start(k, first), rows = rapt_block_start(k, last) - start;
    bool alike = rapt_block_count(rows) == last - first;
    for (int64_t i = first; i < last && alike; i++)
        alike = rapt_block_start(rows, i - first) == rapt_block_start(k, i) - start;
    return alike;
}

/* The end of a chunk of whole blocks of the sum dW, which so gets the bits that a single product gives; as many as give
 * small logits, since each chunk packs the weight anew. */
static int64_t chunk_end(const work *w, int64_t block)
{
    enum { small = 1 << 25 };
    const int64_t k = w->x->shape[0], blocks = rapt_block_count(k);
    const int64_t most = small / (int64_t)rapt_dtype_size(w->x->dtype) / w->classes;
    int64_t end = block + 1;
    while (end < blocks && rapt_block_start(k, end + 1) - rapt_block_start(k, block) <= most) end++;
    while (!is_cut_alike(k, block, end)) end--; /* a single block always is */
    return end;
}

static bool run(work *w)
{
    const int64_t count = w->x->shape[0];
    if (count == 0) return (!w->dweight || rapt_fill(w->dweight, 0)) && (!w->dbias || rapt_fill(w->dbias, 0));
    const int64_t blocks = rapt_block_count(count);
    int64_t largest = 0;
    for (int64_t block = 0, end; block < blocks; block = end) {
        end = chunk_end(w, block);
        const int64_t rows = rapt_block_start(count, end) - rapt_block_start(count, block);
        if (rows > largest) largest = rows;
    }
    w->logits = rapt_new(name, w->x->dtype, 2, (int64_t[]){largest, w->classes});
    bool good = w->logits != NULL;
    for (int64_t block = 0, end; block < blocks && good; block = end) {
        end = chunk_end(w, block);
        good = run_chunk(w, rapt_block_start(count, block), rapt_block_start(count, end));
    }
    return good;
}

/* The numbers of the rows that count; *rows is NULL where all do. False after an error. */
static bool find_counting(const rapt_tensor *targets, rapt_tensor **rows)
{
    const int64_t counted = rapt_count_targets(targets);
    *rows = NULL;
    if (counted == targets->count) return true;
    *rows = rapt_new(name, RAPT_INT64, 1, &counted);
    if (!*rows) return false;
    const int64_t *target = (const int64_t *)(const void *)targets->data;
    int64_t *row = (int64_t *)(void *)(*rows)->data;
    for (int64_t i = 0; i < targets->count; i++)
        if (target[i] >= 0) *row++ = i;
    return true;
}

/* The rows that count of a matrix of so many columns, or of a vector (−1). */
static rapt_tensor *choose(rapt_tensor *x, int64_t count, int64_t columns, rapt_tensor *rows)
{
    rapt_tensor *all = rapt_reshape(x, columns < 0 ? 1 : 2, (int64_t[]){count, columns});
    return rapt_contiguous(rows ? rapt_index_select(all, 0, rows) : all);
}

typedef struct placement {
    const int64_t *row;
    const char *from;
    char *to;
    int64_t bytes; /* of a row */
} placement;

static void place_rows(void *context, int64_t first, int64_t last)
{
    const placement *p = context;
    for (int64_t i = first; i < last; i++)
        memcpy(p->to + p->row[i] * p->bytes, p->from + i * p->bytes, (size_t)p->bytes);
}

/* The chosen rows where they were, zeros in the others; in that shape. */
static rapt_tensor *put_back(rapt_tensor *part, rapt_tensor *rows, int rank, const int64_t *shape)
{
    if (!part || !rows) return rapt_reshape(part, rank, shape);
    rapt_tensor *all = rapt_zeros(part->dtype, rank, shape);
    if (!all || rows->count == 0) return all;
    const int64_t elements = part->count / rows->count;
    placement p = {.row = (const int64_t *)(const void *)rows->data,
                   .from = part->data,
                   .to = all->data,
                   .bytes = elements * (int64_t)rapt_dtype_size(part->dtype)};
    rapt_parallel(rows->count, rapt_grain(elements), place_rows, &p);
    return all;
}

/* What is computed of the inputs x, weight and bias. */
typedef struct result {
    rapt_tensor *losses, *gradients[3];
} result;

/* The losses of checked targets, and the gradients that are wanted of the inputs, from that g of the losses. */
static bool compute(rapt_tensor *const *inputs, rapt_tensor *targets, double smoothing, rapt_tensor *g,
                    const bool *wanted, result *r)
{
    rapt_tensor *x = inputs[0], *weight = inputs[1], *rows;
    const int64_t size = weight->shape[1], count = targets->count;
    if (!find_counting(targets, &rows)) return false;
    work w = {.classes = weight->shape[0], .smoothing = smoothing, .weight = weight, .bias = inputs[2], .g = g};
    w.x = choose(x, count, size, rows);
    w.targets = choose(targets, count, -1, rows);
    if (g && g->rank > 0) w.g = choose(g, count, -1, rows);
    w.losses = w.targets ? rapt_new(name, x->dtype, 1, w.targets->shape) : NULL;
    if (!w.x || !w.losses || (g && !w.g)) return false;
    if (wanted[0] && !(w.dx = rapt_new(name, x->dtype, 2, w.x->shape))) return false;
    if (wanted[1] && !(w.dweight = rapt_new(name, x->dtype, 2, weight->shape))) return false;
    if (wanted[2] && !(w.dbias = rapt_new(name, x->dtype, 1, weight->shape))) return false;
    if (!run(&w)) return false;
    *r = (result){put_back(w.losses, rows, targets->rank, targets->shape), {NULL, w.dweight, w.dbias}};
    if (wanted[0]) r->gradients[0] = put_back(w.dx, rows, x->rank, x->shape);
    return r->losses && (!wanted[0] || r->gradients[0]);
}

static bool check_shapes(const rapt_tensor *x, const rapt_tensor *weight, const rapt_tensor *bias)
{
    if (!rapt_check_floating(name, x)) return false;
    if (weight->dtype != x->dtype || (bias && bias->dtype != x->dtype))
        return rapt_fail(RAPT_ERROR_DTYPE, name,
                         "x is %s, weight %s, bias %s; one floating dtype expected " RAPT_CAST_CURE,
                         rapt_dtype_name(x->dtype), rapt_dtype_name(weight->dtype),
                         bias ? rapt_dtype_name(bias->dtype) : "NULL");
    bool fits = x->rank >= 1 && weight->rank == 2 && x->shape[x->rank - 1] == weight->shape[1] &&
                (!bias || (bias->rank == 1 && bias->shape[0] == weight->shape[0]));
    if (fits) return true;
    char text_x[RAPT_SHAPE_TEXT], text_weight[RAPT_SHAPE_TEXT], text_bias[RAPT_SHAPE_TEXT];
    return rapt_fail(RAPT_ERROR_SHAPE, name, "x %s, weight %s, bias %s; (…, in), (classes, in), (classes) expected",
                     rapt_shape_text(x->rank, x->shape, text_x),
                     rapt_shape_text(weight->rank, weight->shape, text_weight),
                     bias ? rapt_shape_text(bias->rank, bias->shape, text_bias) : "NULL");
}

enum { saved_targets = 3, saved_gradients };

/* y = −Σ q log softmax(z), z = x Wᵀ + b; where one number comes out, the gradients are made with it */
static rapt_tensor *forward(rapt_call *call)
{
    const rapt_cross_entropy_options *o = rapt_call_options(call);
    rapt_tensor *const *inputs = rapt_call_inputs(call), *targets = inputs[3], *g = NULL;
    if (!check_shapes(inputs[0], inputs[1], inputs[2]) || !rapt_check_class_loss(name, o, inputs[0], targets))
        return NULL;
    RAPT_SCOPE;
    targets = rapt_checked_targets(name, o, inputs[1]->shape[0], targets);
    if (!targets) return NULL;
    bool wanted[3] = {false};
    const double share = o->reduction == RAPT_REDUCE_MEAN ? rapt_mean_share(targets) : 1;
    for (int i = 0; i < 3 && o->reduction != RAPT_REDUCE_NONE; i++) wanted[i] = rapt_call_wants(call, i);
    if ((wanted[0] || wanted[1] || wanted[2]) && !(g = rapt_scalar(inputs[0]->dtype, share))) return NULL;
    result r;
    if (!compute(inputs, targets, o->label_smoothing, g, wanted, &r)) return NULL;
    for (int i = 0; i < 3; i++) rapt_call_save(call, inputs[i]);
    rapt_call_save(call, targets);
    /* where the vjp is differentiated, it uses none of these */
    for (int i = 0; i < 3; i++) rapt_call_save_constant(call, r.gradients[i]);
    return rapt_keep(rapt_reduce_losses(r.losses, o->reduction, share));
}

/* dz as cross_entropy's; dx = dz W, dW = dzᵀ x, db = dz, which the engine sums: all by ops */
static bool give_recorded(rapt_call *call, rapt_tensor *const *inputs, rapt_tensor *targets)
{
    rapt_tensor *x = rapt_read_counting(inputs[0], targets), *weight = inputs[1],
                *z = rapt_affine(x, weight, inputs[2]);
    rapt_tensor *dz =
        rapt_cross_entropy_gradient(rapt_call_options(call), rapt_call_gradient(call, 0), z, targets, NULL);
    rapt_tensor *rows = rapt_reshape(dz, 2, (int64_t[]){targets->count, weight->shape[0]});
    x = rapt_reshape(x, 2, (int64_t[]){targets->count, weight->shape[1]});
    bool good = rapt_call_give(call, 0, rapt_matmul(dz, weight));
    good = good && rapt_call_give(call, 1, rapt_matmul(rapt_transpose(rows, 0, 1), x));
    return good && rapt_call_give(call, 2, dz);
}

static bool give_computed(rapt_call *call, rapt_tensor *const *inputs, rapt_tensor *targets)
{
    const rapt_cross_entropy_options *o = rapt_call_options(call);
    rapt_tensor *g = rapt_call_gradient(call, 0);
    if (o->reduction == RAPT_REDUCE_MEAN) g = rapt_mul_scalar(g, rapt_mean_share(targets));
    bool wanted[3], good;
    result r;
    for (int i = 0; i < 3; i++) wanted[i] = rapt_call_wants(call, i);
    good = g && compute(inputs, targets, o->label_smoothing, g, wanted, &r);
    for (int i = 0; i < 3 && good; i++) good = !wanted[i] || rapt_call_give(call, i, r.gradients[i]);
    return good;
}

static bool vjp(rapt_call *call)
{
    rapt_tensor *inputs[3], *targets = rapt_call_saved(call, saved_targets);
    bool can_scale = true, good = true;
    for (int i = 0; i < 3; i++) inputs[i] = rapt_call_saved(call, i);
    if (rapt_is_recording()) return give_recorded(call, inputs, targets);
    for (int i = 0; i < 3 && can_scale; i++)
        can_scale = !rapt_call_wants(call, i) || rapt_can_scale_saved(call, saved_gradients + i);
    if (!can_scale) return give_computed(call, inputs, targets);
    for (int i = 0; i < 3 && good; i++) good = rapt_give_scaled(call, i, saved_gradients + i);
    return good;
}

static const rapt_op linear_cross_entropy = {.name = name,
                                             .forward = forward,
                                             .vjp = vjp,
                                             .options_size = sizeof(rapt_cross_entropy_options),
                                             .optional = 1U << 2};

rapt_tensor *rapt_linear_cross_entropy(rapt_tensor *x, rapt_tensor *weight, rapt_tensor *bias, rapt_tensor *targets,
                                       const rapt_cross_entropy_options *options)
{
    return RAPT_APPLY(&linear_cross_entropy, options ? options : &rapt_standard_class_loss, x, weight, bias, targets);
}
