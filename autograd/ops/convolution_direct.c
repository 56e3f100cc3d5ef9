/* Convolutions of few channels a group: each number of the windows times a whole image at once, without columns.
 *
 * An image with its padding is taken apart by the places of its pixels modulo the strides, one plane for each: then
 * neighbouring windows see neighbouring pixels of one plane, and each number of a window stands at a fixed distance
 * from the window's place. A plane's rows are a bit longer than those of the windows; what comes out between is left
 * out.
 *
 *   forward     y[p]       = Σ weight · x[p + distance]
 *   of x        x[p]       = Σ weight · g[p − distance], with zeros around g
 *   of weight   dweight    = Σ g[p] · x[p + distance]
 */
#include "convolution_direct.h"

#include <math.h>

#include "tensor/flops.h"
#include "tensor/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

typedef rapt_convolution_sizes convolution;

/* All in elements. */
typedef struct layout {
    rapt_windows apart;          /* the image as its planes, side by side as columns are */
    rapt_windows around, behind; /* g with zeros around it; or behind its rows, */
    rapt_windows without;        /* which are left out again */
    int64_t planes, plane;       /* of a channel; elements of one */
    int64_t pitch, rows;         /* of a plane */
    int64_t reach;               /* of the last window's place behind the first one, and 1 */
    int64_t around_count, behind_count;
    int64_t spare; /* elements that kernels may go too far */
} layout;

typedef struct work {
    const convolution *c;
    layout l;
    const char *x, *weight, *bias, *g;
    char *out;          /* y, dx or dweight */
    int64_t *distances; /* of each number of a window, its planes one behind the other */
    rapt_scratch scratch;
} work;

static layout layout_of(const convolution *c)
{
    const rapt_windows *w = &c->windows;
    layout l = {.apart = *w, .planes = w->stride[0] * w->stride[1]};
    int64_t sizes[2];
    for (int k = 0; k < 2; k++) {
        const int64_t span = (w->out[k] - 1) * w->stride[k] + (w->size[k] - 1) * w->dilation[k] + 1;
        sizes[k] = rapt_divide_up(span, w->stride[k]);
        l.apart.size[k] = w->stride[k];
        l.apart.dilation[k] = 1;
        l.apart.out[k] = sizes[k];
    }
    l.rows = sizes[0];
    l.pitch = sizes[1];
    l.plane = l.rows * l.pitch;
    l.reach = (w->out[0] - 1) * l.pitch + w->out[1];
    l.behind = (rapt_windows){.size = {1, 1},
                              .stride = {1, 1},
                              .dilation = {1, 1},
                              .in = {w->out[0], w->out[1]},
                              .out = {w->out[0], l.pitch}};
    l.without = l.around = l.behind;
    l.without.in[1] = l.pitch;
    l.without.out[1] = w->out[1];
    l.around.padding[0] = l.rows - w->out[0];
    l.around.padding[1] = l.pitch - w->out[1];
    l.around.out[0] = 2 * l.rows - w->out[0] + 1;
    l.behind_count = w->out[0] * l.pitch;
    l.around_count = l.around.out[0] * l.pitch;
    l.spare = rapt_taps_bytes / (int64_t)rapt_dtype_size(c->dtype);
    return l;
}

bool rapt_convolution_is_direct(const convolution *c)
{
    enum { most_channels = 16, most_elements = 1 << 17, widest = 1 << 16 };
    const rapt_windows *w = &c->windows;
    if (c->is_dense || c->groups == 1 || c->in < 1 || c->out < 1 || c->in > most_channels ||
        c->in * c->out > most_channels)
        return false;
    for (int k = 0; k < 2; k++)
        if (w->in[k] > most_elements || w->padding[k] > widest || w->out[k] > most_elements) return false;
    const layout l = layout_of(c);
    if (l.rows > most_elements || l.pitch > most_elements || l.plane > most_elements) return false;
    return l.planes * l.plane <= 2 * (c->pixels + c->results) + l.spare;
}

static int64_t size_of(const convolution *c)
{
    return (int64_t)rapt_dtype_size(c->dtype);
}

static double element_of(const convolution *c, const char *numbers, int64_t i)
{
    return c->dtype == RAPT_FLOAT32 ? (double)((const float *)(const void *)numbers)[i]
                                    : ((const double *)(const void *)numbers)[i];
}

/* Copies rows [0, rows) of columns that windows see of an image, with what kernels may read behind them. */
static void lay_out(const work *w, const rapt_windows *windows, const char *image, int64_t rows, char *to)
{
    const int64_t count = rapt_windows_count(windows);
    rapt_columns_part part = {*windows, 0, count, 0, (char *)(uintptr_t)image, to};
    rapt_kernel.columns.fill[w->c->dtype](&part, 0, rows);
    memset(to + rows * count * size_of(w->c), 0, rapt_taps_bytes);
}

static void forward_images(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    const convolution *c = w->c;
    const layout *l = &w->l;
    const int64_t size = size_of(c), window = rapt_window_size(c);
    rapt_tap *taps = rapt_scratch_borrow(&w->scratch);
    char *planes = (char *)(taps + c->depth), *y = planes + (c->in * l->planes * l->plane + l->spare) * size;
    for (int64_t i = first; i < last; i++) {
        const int64_t group = i % c->groups;
        lay_out(w, &l->apart, w->x + i * c->in * c->pixels * size, c->in * l->planes, planes);
        for (int64_t o = 0; o < c->out; o++) {
            const int64_t channel = group * c->out + o;
            for (int64_t k = 0; k < c->depth; k++)
                taps[k] = (rapt_tap){k / window * l->planes * l->plane + w->distances[k % window],
                                     element_of(c, w->weight, channel * c->depth + k)};
            rapt_kernel.columns.taps[c->dtype](l->reach, c->depth, taps, w->bias ? element_of(c, w->bias, channel) : 0,
                                               planes, y);
            rapt_columns_part part = {l->without, 0, c->results, 0, y, w->out + (i * c->out + o) * c->results * size};
            rapt_kernel.columns.fill[c->dtype](&part, 0, 1);
        }
    }
    rapt_scratch_return(&w->scratch, taps);
}

static void images_of_x(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    const convolution *c = w->c;
    const layout *l = &w->l;
    const int64_t size = size_of(c), window = rapt_window_size(c), each = l->around_count;
    rapt_tap *taps = rapt_scratch_borrow(&w->scratch);
    char *g = (char *)(taps + c->out * window), *dx = g + (c->out * each + l->spare) * size;
    for (int64_t i = first; i < last; i++) {
        const int64_t group = i % c->groups;
        for (int64_t o = 0; o < c->out; o++)
            lay_out(w, &l->around, w->g + (i * c->out + o) * c->results * size, 1, g + o * each * size);
        for (int64_t channel = 0; channel < c->in; channel++) {
            for (int64_t plane = 0; plane < l->planes; plane++) {
                int64_t count = 0;
                for (int64_t k = 0; k < c->out * window; k++) {
                    const int64_t o = k / window, distance = w->distances[k % window] - plane * l->plane;
                    if (distance >= 0 && distance < l->plane)
                        taps[count++] =
                            (rapt_tap){o * each + l->around.padding[0] * l->pitch + l->around.padding[1] - distance,
                                       element_of(c, w->weight,
                                                  ((group * c->out + o) * c->in + channel) * window + k % window)};
                }
                rapt_kernel.columns.taps[c->dtype](l->plane, count, taps, 0, g, dx + plane * l->plane * size);
            }
            rapt_columns_part part = {l->apart, 0, l->plane, 0, w->out + (i * c->in + channel) * c->pixels * size, dx};
            rapt_kernel.columns.add[c->dtype](&part, 0, 1);
        }
    }
    rapt_scratch_return(&w->scratch, taps);
}

/* Image by image, of the channels of all groups. */
static void channels_of_weight(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    const convolution *c = w->c;
    const layout *l = &w->l;
    const int64_t size = size_of(c), window = rapt_window_size(c), channels = c->groups * c->in;
    rapt_tap *taps = rapt_scratch_borrow(&w->scratch);
    char *planes = (char *)(taps + c->out * window), *g = planes + (l->planes * l->plane + l->spare) * size;
    char *seen = g + (l->behind_count + l->spare) * size;
    for (int64_t p = 0; p < l->behind_count + l->spare; p++)
        rapt_write_element(c->dtype, p < l->behind_count && p % l->pitch < l->behind.in[1], seen + p * size);
    for (int64_t i = first; i < last; i++) {
        const int64_t group = i / c->in;
        for (int64_t k = 0; k < c->out * window; k++) taps[k] = (rapt_tap){.offset = w->distances[k % window]};
        for (int64_t item = 0; item < c->items; item++) {
            lay_out(w, &l->apart, w->x + (item * channels + i) * c->pixels * size, l->planes, planes);
            for (int64_t o = 0; o < c->out; o++) {
                lay_out(w, &l->behind, w->g + ((item * c->groups + group) * c->out + o) * c->results * size, 1, g);
                rapt_kernel.columns.taps_back[c->dtype](l->reach, window, taps + o * window, g, seen, planes);
            }
        }
        for (int64_t k = 0; k < c->out * window; k++)
            rapt_write_element(c->dtype, taps[k].weight,
                               w->out +
                                   (((group * c->out + k / window) * c->in + i % c->in) * window + k % window) * size);
    }
    rapt_scratch_return(&w->scratch, taps);
}

/* Runs so many tasks, each with room for so many taps and elements; false and an error when there is no memory. */
static bool run(work *w, int64_t tasks, int64_t images, int64_t taps, int64_t elements, rapt_task *task)
{
    RAPT_SCOPE;
    const convolution *c = w->c;
    const rapt_windows *v = &c->windows;
    const size_t bytes = (size_t)(taps * (int64_t)sizeof(rapt_tap) + (elements + 4 * w->l.spare) * size_of(c));
    w->distances = rapt_scratch_list(c->op, rapt_window_size(c), sizeof *w->distances);
    if (!w->distances || !rapt_scratch_take(c->op, &w->scratch, tasks, bytes)) return false;
    for (int64_t k = 0; k < rapt_window_size(c); k++) {
        const int64_t y = k / v->size[1] * v->dilation[0], x = k % v->size[1] * v->dilation[1];
        w->distances[k] = (y % v->stride[0] * v->stride[1] + x % v->stride[1]) * w->l.plane +
                          y / v->stride[0] * w->l.pitch + x / v->stride[1];
    }
    rapt_count_flops(2 * (double)c->items * (double)c->groups * (double)c->out * (double)c->results * (double)c->depth);
    rapt_parallel(tasks, rapt_grain(images * c->out * c->depth * w->l.plane / 4), task, w);
    rapt_scratch_give(&w->scratch);
    return true;
}

bool rapt_convolution_direct_forward(const convolution *c, const char *x, const char *weight, const char *bias, char *y)
{
    work w = {.c = c, .l = layout_of(c), .x = x, .weight = weight, .bias = bias, .out = y};
    return run(&w, c->items * c->groups, 1, c->depth, c->in * w.l.planes * w.l.plane + w.l.behind_count,
               forward_images);
}

bool rapt_convolution_direct_of_x(const convolution *c, const char *g, const char *weight, char *dx)
{
    work w = {.c = c, .l = layout_of(c), .g = g, .weight = weight, .out = dx};
    return run(&w, c->items * c->groups, 1, c->out * rapt_window_size(c),
               c->out * w.l.around_count + w.l.planes * w.l.plane, images_of_x);
}

bool rapt_convolution_direct_of_weight(const convolution *c, const char *g, const char *x, char *dweight)
{
    work w = {.c = c, .l = layout_of(c), .g = g, .x = x, .out = dweight};
    return run(&w, c->groups * c->in, c->items, c->out * rapt_window_size(c),
               w.l.planes * w.l.plane + 2 * w.l.behind_count, channels_of_weight);
}

bool rapt_convolution_finite(const convolution *c, const char *weight)
{
    bool finite = true;
    for (int64_t i = 0; i < c->groups * c->out * c->depth; i++) finite &= isfinite(element_of(c, weight, i)) != 0;
    return finite;
}
