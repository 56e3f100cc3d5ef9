/* The products of convolutions, some columns at a time: windows are copied to columns that stay in the cache, which are
 * packed and multiplied before others come. Each task writes what no other one writes.
 *
 *   forward     y       (out, results)  =  weight  (out, depth)    · columns  (depth, results)
 *   of x        columns (depth, results) = weightᵀ (depth, out)    · g        (out, results)
 *   of weight   dweight (out, depth)    =  g       (out, results)  · columnsᵀ (results, depth)
 */
#include "convolution_products.h"

#include <rapt/error.h>

#include "tensor/flops.h"
#include "tensor/kernels.h"
#include "tensor/matmul.h"
#include "tensor/memory.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

typedef rapt_convolution_sizes convolution;

/* Columns that are copied and then packed at once; bytes of one of the things that are in the second-level cache
 * together; parts that keep threads busy, without which a product shares its work among threads itself. */
enum { strip_columns = 128, near_bytes = 1 << 18, fewest_tasks = 16 };

typedef struct work {
    const convolution *c;
    const rapt_matmul_kernels *kernels;
    const char *x, *weight, *bias, *g; /* those that are read */
    char *out;                         /* y, dx or dweight */
    int64_t most;                      /* results at once */
    int64_t blocks, chunk;             /* of an image's results; channels of a task */
    bool packs;
    rapt_product (*part)(const struct work *, int64_t); /* of the weight: of a group, or a chunk of its channels */
    char *packed;                                       /* the weight's parts */
    size_t packed_bytes, capacity;
    size_t panels; /* where they begin in a thread's memory */
    rapt_scratch scratch;
    _Atomic bool failed;
} work;

/* Few rows, columns or terms are multiplied where they lie. */
static bool packs(const work *w, int64_t m, int64_t n, int64_t k)
{
    enum { fewest_rows = 16 };
    return m >= fewest_rows && n >= w->kernels->columns && k > RAPT_THIN_TERMS && !rapt_matmul_uses_blas();
}

/* The bytes of so many elements. */
static int64_t bytes_of(const convolution *c, int64_t count)
{
    return count * (int64_t)rapt_dtype_size(c->dtype);
}

/* So many results at once, in whole panels, that columns of `rows` rows have up to so many bytes. */
static int64_t most_results(const work *w, int64_t rows, int64_t bytes)
{
    const int64_t panel = w->kernels->columns, fitting = bytes / bytes_of(w->c, rows > 0 ? rows : 1) / panel * panel;
    return fitting < panel ? panel : fitting;
}

static int64_t end_of_part(const work *w, int64_t first)
{
    return rapt_smaller_of(first + w->most, w->c->results);
}

/* The columns of results [first, last): their rows [top, bottom), which begin in that image. */
static const char *columns_of(const convolution *c, const char *image, int64_t top, int64_t bottom, int64_t first,
                              int64_t last, char *room, int64_t *row)
{
    *row = c->is_dense ? c->results : last - first;
    if (c->is_dense) return image + bytes_of(c, top * c->results + first);
    rapt_columns_fill(&c->windows, c->dtype, image, top, bottom, first, last, room);
    return room;
}

/* A product of what lies where it lies. Whichever thread it is, the caller tells the error. */
static void multiply(work *w, const rapt_product *p)
{
    const bool stood = rapt_error() != NULL, left_before = rapt_error_leave_to_others(true);
    const bool good = rapt_gemm(w->c->op, w->c->dtype, p->m, p->n, p->k, p->a, p->a_row, p->a_column, p->b, p->b_row,
                                p->b_column, p->c, p->c_row, p->accumulate);
    rapt_error_leave_to_others(left_before);
    if (good) return;
    if (!stood) rapt_clear_error();
    atomic_store(&w->failed, true);
}

static void pack_all_columns(const work *w, const rapt_product *p, int64_t block, char *to)
{
    w->kernels->pack_block(p, block, 0, rapt_divide_up(p->n, w->kernels->columns), to);
}

/* Where a block of k begins among packed rows. */
static int64_t rows_before(const work *w, const rapt_product *p, int64_t block)
{
    return w->kernels->rows_bytes(p->m, rapt_block_start(p->k, block));
}

static void pack_all_rows(const work *w, const rapt_product *p, char *to)
{
    for (int64_t block = 0; block < rapt_block_count(p->k); block++)
        w->kernels->pack_rows(p, block, 0, rapt_divide_up(p->m, w->kernels->rows), to + rows_before(w, p, block));
}

static void multiply_block(const work *w, const rapt_product *p, int64_t block, const char *rows, const char *panels)
{
    w->kernels->multiply_packed(p, block, rows + rows_before(w, p, block), panels, p->n, (rapt_ahead){0});
}

static char *packed_part(const work *w, int64_t part)
{
    return w->packed + (size_t)part * w->packed_bytes;
}

static void pack_parts(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    for (int64_t i = first; i < last; i++) {
        const rapt_product p = w->part(w, i);
        pack_all_rows(w, &p, packed_part(w, i));
    }
}

/* --- forward --- */

static rapt_product of_weight_and_columns(const work *w, int64_t group)
{
    const convolution *c = w->c;
    return (rapt_product){.m = c->out,
                          .k = c->depth,
                          .a = w->weight + bytes_of(c, group * c->out * c->depth),
                          .a_row = c->depth,
                          .a_column = 1,
                          .b_column = 1,
                          .c_row = c->results,
                          .c_column = 1,
                          .accumulate = w->bias != NULL};
}

static void fill_bias(const work *w, int64_t group, char *y, int64_t count)
{
    const convolution *c = w->c;
    const int64_t strides[] = {bytes_of(c, 1), 0};
    for (int64_t o = 0; o < c->out; o++) {
        char *bias = (char *)(uintptr_t)w->bias + bytes_of(c, group * c->out + o);
        rapt_kernel.elementwise.cast[c->dtype][c->dtype](count, (char *[]){y + bytes_of(c, o * c->results), bias},
                                                         strides, NULL);
    }
}

/* A block of k of the columns: strips that stay in the first-level cache or near it, each packed at once. */
static void pack_strips(const work *w, const char *image, int64_t top, int64_t bottom, int64_t first, int64_t last,
                        char *room)
{
    const convolution *c = w->c;
    const int64_t k = bottom - top, step = c->is_dense ? last - first : strip_columns;
    rapt_product p = {.k = k, .b_column = 1};
    char *to = room + w->panels;
    for (int64_t from = first; from < last; from += step) {
        const int64_t end = rapt_smaller_of(from + step, last);
        p.n = end - from;
        p.b = columns_of(c, image, top, bottom, from, end, room, &p.b_row);
        pack_all_columns(w, &p, 0, to + w->kernels->columns_bytes(from - first, k));
    }
}

/* y = weight · columns (+ y), of some results of an image */
static void forward_parts(void *context, int64_t first, int64_t last)
{
    work *w = context;
    const convolution *c = w->c;
    char *room = rapt_scratch_borrow(&w->scratch);
    for (int64_t i = first; i < last; i++) {
        const int64_t image = i / w->blocks, group = image % c->groups, from = i % w->blocks * w->most;
        const char *x = w->x + bytes_of(c, image * c->in * c->pixels);
        rapt_product p = of_weight_and_columns(w, group);
        p.n = end_of_part(w, from) - from;
        p.c = w->out + bytes_of(c, image * c->out * c->results + from);
        if (w->bias) fill_bias(w, group, p.c, p.n);
        if (!w->packs) {
            p.b = columns_of(c, x, 0, c->depth, from, from + p.n, room, &p.b_row);
            multiply(w, &p);
            continue;
        }
        for (int64_t block = 0; block < rapt_block_count(p.k); block++) {
            const int64_t top = rapt_block_start(p.k, block), bottom = rapt_block_start(p.k, block + 1);
            pack_strips(w, x, top, bottom, from, from + p.n, room);
            multiply_block(w, &p, block, packed_part(w, group), room + w->panels);
        }
    }
    rapt_scratch_return(&w->scratch, room);
}

/* --- of x --- */

static int64_t chunk_count(const work *w)
{
    return rapt_divide_up(w->c->in, w->chunk);
}

/* Of the channels of a group's chunk; all but g and where it goes. */
static rapt_product of_weight_and_g(const work *w, int64_t part)
{
    const convolution *c = w->c;
    const int64_t group = part / chunk_count(w), size = rapt_window_size(c), channel = part % chunk_count(w) * w->chunk;
    return (rapt_product){.m = rapt_smaller_of(c->in - channel, w->chunk) * size,
                          .k = c->out,
                          .a = w->weight + bytes_of(c, group * c->out * c->depth + channel * size),
                          .a_row = 1,
                          .a_column = c->depth,
                          .b_row = c->results,
                          .b_column = 1,
                          .c_column = 1};
}

/* columns = weightᵀ g, of some channels of an image, each number added where it came from */
static void backward_channels_of_x(void *context, int64_t first, int64_t last)
{
    work *w = context;
    const convolution *c = w->c;
    const int64_t chunks = chunk_count(w);
    char *room = rapt_scratch_borrow(&w->scratch);
    for (int64_t i = first; i < last; i++) {
        const int64_t image = i / chunks, chunk = i % chunks, part = image % c->groups * chunks + chunk;
        rapt_product p = of_weight_and_g(w, part);
        char *dx = w->out + bytes_of(c, (image * c->in + chunk * w->chunk) * c->pixels);
        for (int64_t from = 0, to; from < c->results; from = to) {
            to = end_of_part(w, from);
            p.n = to - from;
            p.b = w->g + bytes_of(c, image * c->out * c->results + from);
            p.c = c->is_dense ? dx + bytes_of(c, from) : room;
            p.c_row = c->is_dense ? c->results : p.n;
            if (!w->packs) multiply(w, &p);
            for (int64_t block = 0; w->packs && block < rapt_block_count(p.k); block++) {
                pack_all_columns(w, &p, block, room + w->panels);
                multiply_block(w, &p, block, packed_part(w, part), room + w->panels);
            }
            if (!c->is_dense) rapt_columns_add(&c->windows, c->dtype, p.m / rapt_window_size(c), room, from, to, dx);
        }
    }
    rapt_scratch_return(&w->scratch, room);
}

/* --- of weight --- */

/* dweight += g columnsᵀ of some channels, image by image */
static void backward_channels_of_weight(void *context, int64_t first, int64_t last)
{
    work *w = context;
    const convolution *c = w->c;
    const int64_t chunks = chunk_count(w), size = rapt_window_size(c);
    char *room = rapt_scratch_borrow(&w->scratch);
    for (int64_t i = first; i < last; i++) {
        const int64_t group = i / chunks, channel = i % chunks * w->chunk;
        rapt_product p = {.m = c->out,
                          .n = rapt_smaller_of(c->in - channel, w->chunk) * size,
                          .a_row = c->results,
                          .a_column = 1,
                          .b_row = 1,
                          .c = w->out + bytes_of(c, group * c->out * c->depth + channel * size),
                          .c_row = c->depth,
                          .c_column = 1,
                          .accumulate = true};
        for (int64_t image = group; image < c->items * c->groups; image += c->groups)
            for (int64_t from = 0, to; from < c->results; from = to) {
                to = end_of_part(w, from);
                p.k = to - from;
                p.a = w->g + bytes_of(c, image * c->out * c->results + from);
                p.b = columns_of(c, w->x + bytes_of(c, (image * c->in + channel) * c->pixels), 0, p.n, from, to, room,
                                 &p.b_column);
                if (!w->packs) {
                    multiply(w, &p);
                    continue;
                }
                char *panels = room + w->panels, *rows = panels + w->kernels->columns_bytes(p.n, p.k);
                pack_all_columns(w, &p, 0, panels);
                pack_all_rows(w, &p, rows);
                multiply_block(w, &p, 0, rows, panels);
            }
    }
    rapt_scratch_return(&w->scratch, room);
}

/* --- all of them --- */

/* Packs the weight once for all tasks, `count` parts of `bytes` each. */
static bool pack_once(work *w, int64_t count, int64_t bytes)
{
    if (!w->packs) return true;
    w->packed_bytes = (size_t)bytes;
    w->packed = rapt_block_take(w->c->op, (size_t)(count * bytes), &w->capacity);
    if (!w->packed) return false;
    rapt_parallel(count, rapt_grain(w->c->out * w->c->depth), pack_parts, w);
    return true;
}

/* Runs so many tasks, each with so much room in front of its panels and for them; false and an error when there is no
 * memory. */
static bool run(work *w, int64_t tasks, int64_t room, int64_t panels, rapt_task *task)
{
    enum { cache_line = 64 };
    const convolution *c = w->c;
    double *const flops = rapt_flops; /* counted here for all threads */
    w->panels = (size_t)rapt_divide_up(room, cache_line) * cache_line;
    bool good = rapt_scratch_take(c->op, &w->scratch, tasks, w->panels + (size_t)panels);
    if (good) {
        rapt_count_flops(2 * (double)c->items * (double)c->groups * (double)c->out * (double)c->results *
                         (double)c->depth);
        rapt_flops = NULL;
        rapt_parallel(tasks, rapt_grain(c->depth * w->most), task, w);
        rapt_flops = flops;
        rapt_scratch_give(&w->scratch);
        if (w->failed)
            good = rapt_fail(RAPT_ERROR_MEMORY, c->op, "no memory for a product of %lld rows", (long long)c->out);
    }
    rapt_block_give(w->packed, w->capacity);
    return good;
}

static work work_of(const convolution *c)
{
    return (work){.c = c, .kernels = &rapt_kernel.matmul[c->dtype]};
}

/* So many channels that their rows of the columns are about so many. */
static int64_t channels_of(const convolution *c, int64_t rows)
{
    const int64_t channels = rows / rapt_window_size(c);
    return channels < 1 ? 1 : rapt_smaller_of(channels, c->in);
}

bool rapt_convolution_forward(const convolution *c, const char *x, const char *weight, const char *bias, char *y)
{
    work w = work_of(c);
    w.x = x, w.weight = weight, w.bias = bias, w.out = y, w.part = of_weight_and_columns;
    const int64_t panel = w.kernels->columns, k = rapt_smaller_of(c->depth, RAPT_BLOCK_DEPTH);
    w.packs = packs(&w, c->out, c->results, c->depth) &&
              c->items * c->groups * rapt_divide_up(c->results, panel) >= fewest_tasks;
    if (w.packs)
        w.most = most_results(&w, k, 2 * near_bytes);
    else
        w.most = c->is_dense ? c->results : most_results(&w, c->depth, near_bytes);
    w.blocks = rapt_divide_up(c->results, w.most);
    const int64_t columns = end_of_part(&w, 0);
    const int64_t room = c->is_dense ? 0 : w.packs ? k * strip_columns : c->depth * columns;
    return pack_once(&w, c->groups, w.kernels->rows_bytes(c->out, c->depth)) &&
           run(&w, c->items * c->groups * w.blocks, bytes_of(c, room),
               w.packs ? w.kernels->columns_bytes(columns, k) : 0, forward_parts);
}

/* What is added at once, and so each bit of dx, depends on the sizes of one image alone. */
bool rapt_convolution_of_x(const convolution *c, const char *g, const char *weight, char *dx)
{
    enum { rows_at_once = 288 };
    work w = work_of(c);
    w.g = g, w.weight = weight, w.out = dx, w.part = of_weight_and_g;
    const int64_t k = rapt_smaller_of(c->out, RAPT_BLOCK_DEPTH), channels = channels_of(c, rows_at_once);
    w.packs = packs(&w, channels * rapt_window_size(c), c->results, c->out);
    w.chunk = w.packs ? channels : c->in;
    const int64_t rows = w.chunk * rapt_window_size(c);
    w.most = c->is_dense && !w.packs ? c->results : most_results(&w, w.packs && k > rows ? k : rows, near_bytes);
    const int64_t columns = end_of_part(&w, 0), chunks = chunk_count(&w);
    return pack_once(&w, c->groups * chunks, w.kernels->rows_bytes(rows, c->out)) &&
           run(&w, c->items * c->groups * chunks, c->is_dense ? 0 : bytes_of(c, rows * columns),
               w.packs ? w.kernels->columns_bytes(columns, k) : 0, backward_channels_of_x);
}

bool rapt_convolution_of_weight(const convolution *c, const char *g, const char *x, char *dweight)
{
    enum { rows_at_once = 144, chunks = 4 };
    work w = work_of(c);
    w.g = g, w.x = x, w.out = dweight;
    const int64_t fourth = c->in > chunks ? rapt_divide_up(c->in, chunks) : 1;
    w.chunk = rapt_smaller_of(fourth, channels_of(c, rows_at_once));
    const int64_t rows = w.chunk * rapt_window_size(c), k = rapt_smaller_of(c->results, RAPT_BLOCK_DEPTH);
    w.packs = packs(&w, c->out, rows, k);
    if (!w.packs) w.chunk = fourth;
    w.most = w.packs       ? RAPT_BLOCK_DEPTH
             : c->is_dense ? c->results
                           : most_results(&w, w.chunk * rapt_window_size(c), near_bytes);
    const int64_t columns = end_of_part(&w, 0);
    return run(&w, c->groups * chunk_count(&w), c->is_dense ? 0 : bytes_of(c, w.chunk * rapt_window_size(c) * columns),
               w.packs ? w.kernels->columns_bytes(rows, k) + w.kernels->rows_bytes(c->out, k) : 0,
               backward_channels_of_weight);
}
