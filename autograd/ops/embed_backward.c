/* The gradient of a table whose rows were looked up: each row of it is written once, by one task. */
#include <rapt/ops.h>

#include "indices.h"
#include "tensor/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

/* Places that chose row i: order[starts[i] … starts[i + 1] − 1], as they come. */
typedef struct work {
    int64_t size;
    const int64_t *starts, *order;
    const rapt_tensor *g;
    rapt_tensor *out;
    bool accumulate, is_large;
} work;

static void add_rows(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    rapt_kernel.index.add_rows[w->g->dtype](first, last, w->size, w->starts, w->order, w->g->data, w->out->data,
                                            w->accumulate, w->is_large);
}

/* Counts, then gives every place its number. */
static bool sort(const rapt_tensor *indices, int64_t rows, work *w)
{
    const int64_t *index = (const int64_t *)(const void *)indices->data;
    int64_t *starts = rapt_scratch_list("embed", rows + 2, sizeof *starts);
    int64_t *order = rapt_scratch_list("embed", indices->count, sizeof *order);
    if (!starts || !order) return false;
    for (int64_t i = 0; i < indices->count; i++) starts[index[i] + 2]++;
    for (int64_t row = 0; row < rows; row++) starts[row + 2] += starts[row + 1];
    for (int64_t i = 0; i < indices->count; i++) order[starts[index[i] + 1]++] = i;
    w->starts = starts;
    w->order = order;
    return true;
}

/* out += the rows of g, one after the other, which is the order of the sums of each row of out. */
static void add_few(const work *w, const rapt_tensor *indices)
{
    const int64_t *index = (const int64_t *)(const void *)indices->data, one[] = {0, 1};
    const int64_t bytes = w->size * rapt_element_bytes[w->out->dtype];
    for (int64_t i = 0; i < indices->count; i++)
        rapt_kernel.index.add_rows[w->g->dtype](0, 1, w->size, one, &i, w->g->data, w->out->data + index[i] * bytes,
                                                true, false);
}

/* out = Σ of the rows of g that chose each row, or out += that. False after an error. */
static bool add(rapt_tensor *out, const rapt_tensor *g, const rapt_tensor *indices, bool accumulate)
{
    enum { piece = 1 << 16, large = 1 << 25 }; /* elements of a task; bytes that no cache holds */
    RAPT_SCOPE;
    const int64_t rows = out->shape[0];
    work w = {.size = out->shape[1], .out = out, .accumulate = accumulate};
    w.is_large = out->count >= large / (int64_t)rapt_dtype_size(out->dtype);
    indices = rapt_as_contiguous(indices);
    w.g = rapt_as_contiguous(g);
    if (!indices || !w.g) return false;
    if (accumulate && indices->count < rows && w.g->count <= piece) {
        add_few(&w, indices);
        return true;
    }
    if (!sort(indices, rows, &w)) return false;
    const int64_t cost = rows > 0 ? w.size * (1 + indices->count / rows) : 0; /* of a row */
    rapt_parallel(rows, cost >= piece ? 1 : cost ? piece / cost : piece, add_rows, &w);
    return true;
}

/* y[i] = Σ g[k] over the k with indices[k] = i: dg = dy[indices] */
static rapt_tensor *forward(rapt_call *call)
{
    const int64_t *shape = rapt_call_options(call);
    const rapt_tensor *g = rapt_call_input(call, 0);
    rapt_tensor *indices = rapt_call_input(call, 1), *out = rapt_new("embed", g->dtype, 2, shape);
    if (!out || !add(out, g, indices, false)) return NULL;
    rapt_call_save(call, indices);
    return out;
}

static bool vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_embed(rapt_call_gradient(call, 0), rapt_call_saved(call, 0)));
}

static const rapt_op embed_backward = {.name = "embed_backward",
                                       .forward = forward,
                                       .vjp = vjp,
                                       .options_size = 2 * sizeof(int64_t)};

bool rapt_give_embedded(rapt_call *call, rapt_tensor *indices, rapt_tensor *g)
{
    int rank;
    const int64_t *shape = rapt_call_input_shape(call, 0, &rank);
    rapt_tensor *sum = rapt_call_gradient_so_far(call, 0);
    if (sum && indices) return add(sum, g, indices, true);
    return rapt_call_give(call, 0, RAPT_APPLY(&embed_backward, shape, g, indices));
}
