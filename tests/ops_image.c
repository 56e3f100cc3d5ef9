/* Rows: convolutions and pools of images and sequences. */
#include <math.h>

#include "ops.h"

/* number: stride, padding and dilation of the first axis, axes: of the second; axis: groups. */
static rapt_convolution convolution_of(const op_sample *s)
{
    return (rapt_convolution){.stride = {s->number[0], s->axes[0]},
                              .padding = {s->number[1], s->axes[1]},
                              .dilation = {s->number[2], s->axes[2]},
                              .groups = s->axis};
}

static rapt_tensor *call_conv1d(rapt_tensor *const *in, const op_sample *s)
{
    const rapt_convolution how = convolution_of(s);
    return rapt_conv1d(in[0], in[1], in[2], &how);
}

static rapt_tensor *call_conv2d(rapt_tensor *const *in, const op_sample *s)
{
    const rapt_convolution how = convolution_of(s);
    return rapt_conv2d(in[0], in[1], in[2], &how);
}

/* number: size, stride, padding and dilation of the first axis, axes: of the second. */
enum { ceil_bit = 1, padding_out_bit = 2 };

static rapt_pool pool_of(const op_sample *s)
{
    return (rapt_pool){.size = {s->number[0], s->axes[0]},
                       .stride = {s->number[1], s->axes[1]},
                       .padding = {s->number[2], s->axes[2]},
                       .dilation = {s->number[3], s->axes[3]},
                       .ceil = s->variant & ceil_bit,
                       .leaves_padding_out = s->variant & padding_out_bit};
}

#define POOL(name)                                                                                                     \
    static rapt_tensor *call_##name(rapt_tensor *const *in, const op_sample *s)                                        \
    {                                                                                                                  \
        const rapt_pool pool = pool_of(s);                                                                             \
        return rapt_##name(in[0], &pool);                                                                              \
    }
POOL(max_pool1d)
POOL(max_pool2d)
POOL(avg_pool1d)
POOL(avg_pool2d)

/* --- references --- */

/* Along one spatial axis: sizes, and whether place k of window i is inside. */
typedef struct line {
    int64_t in, size, stride, padding, dilation, out;
} line;

static line line_new(int64_t in, int64_t size, int64_t stride, int64_t padding, int64_t dilation, bool ceil)
{
    line l = {in, size, stride ? stride : 1, padding, dilation ? dilation : 1, 0};
    const int64_t reach = l.dilation * (size - 1) + 1;
    for (int64_t start = -padding; start + reach <= in + padding; start += l.stride) l.out++;
    const int64_t next = l.out * l.stride - padding;
    if (ceil && next < in && next - l.stride + reach < in + padding) l.out++;
    return l;
}

static int64_t place(const line *l, int64_t window, int64_t k)
{
    return window * l->stride - l->padding + k * l->dilation;
}

static bool is_inside(const line *l, int64_t place)
{
    return place >= 0 && place < l->in;
}

/* A shape's first spatial axis counted as 1 where there is one only. */
static int64_t spatial(const array *a, int axis)
{
    return a->rank == 4 ? a->shape[2 + axis] : axis == 0 ? 1 : a->shape[2];
}

static array reference_conv(const array *in, const op_sample *s)
{
    const array *x = &in[0], *weight = &in[1];
    const bool is_flat = x->rank == 3;
    const rapt_convolution c = convolution_of(s);
    const line rows = is_flat
                          ? line_new(1, 1, 1, 0, 1, false)
                          : line_new(x->shape[2], weight->shape[2], c.stride[0], c.padding[0], c.dilation[0], false);
    const int k = is_flat ? 0 : 1;
    const line columns = line_new(spatial(x, 1), spatial(weight, 1), c.stride[k], c.padding[k], c.dilation[k], false);
    const int64_t groups = c.groups ? c.groups : 1, out = weight->shape[0], depth = weight->shape[1];
    array y = array_new(x->rank, is_flat ? (int64_t[]){x->shape[0], out, columns.out}
                                         : (int64_t[]){x->shape[0], out, rows.out, columns.out});
    double *to = y.data;
    for (int64_t i = 0; i < y.count; i++, to++) {
        const int64_t column = i % columns.out, row = i / columns.out % rows.out;
        const int64_t o = i / (columns.out * rows.out) % out, item = i / (columns.out * rows.out * out);
        *to = in[2].data ? in[2].data[o] : 0;
        for (int64_t d = 0; d < depth; d++)
            for (int64_t a = 0; a < rows.size; a++)
                for (int64_t b = 0; b < columns.size; b++) {
                    const int64_t at = place(&rows, row, a), beside = place(&columns, column, b);
                    const int64_t channel = o / (out / groups) * depth + d;
                    if (is_inside(&rows, at) && is_inside(&columns, beside))
                        *to += weight->data[((o * depth + d) * rows.size + a) * columns.size + b] *
                               x->data[((item * x->shape[1] + channel) * rows.in + at) * columns.in + beside];
                }
    }
    return y;
}

static array reference_pool(const array *in, const op_sample *s, bool is_mean)
{
    const array *x = &in[0];
    const bool is_flat = x->rank == 3, ceil = s->variant & ceil_bit;
    const rapt_pool p = pool_of(s);
    line lines[2] = {line_new(1, 1, 1, 0, 1, false)};
    for (int axis = 0; axis < x->rank - 2; axis++)
        lines[is_flat ? 1 : axis] =
            line_new(x->shape[2 + axis], p.size[axis], p.stride[axis] ? p.stride[axis] : p.size[axis], p.padding[axis],
                     p.dilation[axis], ceil);
    const line *rows = &lines[0], *columns = &lines[1];
    array y = array_new(x->rank, is_flat ? (int64_t[]){x->shape[0], x->shape[1], columns->out}
                                         : (int64_t[]){x->shape[0], x->shape[1], rows->out, columns->out});
    for (int64_t i = 0; i < y.count; i++) {
        const int64_t column = i % columns->out, row = i / columns->out % rows->out;
        const double *image = x->data + i / (columns->out * rows->out) * rows->in * columns->in;
        double sum = 0, largest = -INFINITY, inside = 0, padded = 0;
        for (int64_t a = 0; a < rows->size; a++)
            for (int64_t b = 0; b < columns->size; b++) {
                const int64_t at = place(rows, row, a), beside = place(columns, column, b);
                padded += at < rows->in + rows->padding && beside < columns->in + columns->padding;
                if (!is_inside(rows, at) || !is_inside(columns, beside)) continue;
                inside++;
                sum += image[at * columns->in + beside];
                largest = fmax(largest, image[at * columns->in + beside]);
            }
        y.data[i] = is_mean ? sum / (s->variant & padding_out_bit ? inside : padded) : largest;
    }
    return y;
}

static array reference_max_pool(const array *in, const op_sample *s)
{
    return reference_pool(in, s, false);
}

static array reference_avg_pool(const array *in, const op_sample *s)
{
    return reference_pool(in, s, true);
}

#define FAIL .error = RAPT_ERROR_SHAPE
#define BAD .error = RAPT_ERROR_VALUE

static const op_sample sequences[] = {
    {.in = {SHAPE(2, 3, 5), SHAPE(4, 3, 2), SHAPE(4)}},
    {.in = {SHAPE(2, 4, 7), SHAPE(6, 2, 3), SHAPE(6)}, .number = {2, 1, 2}, .axis = 2},
    {.in = {SHAPE(1, 2, 3), SHAPE(2, 2, 3), ABSENT}, .number = {1, 2, 1}},
    {.in = {SHAPE(2, 3, 4), SHAPE(2, 3, 1), SHAPE(2)}},
    {.in = {SHAPE(2, 3, 1), SHAPE(3, 1, 3), ABSENT}, .number = {3, 1, 1}, .axis = 3},
    {.in = {SHAPE(0, 2, 4), SHAPE(3, 2, 2), SHAPE(3)}},
    {.in = {SHAPE(2, 0, 4), SHAPE(3, 0, 2), SHAPE(3)}},
    {.in = {SHAPE(2, 2, 4), SHAPE(0, 2, 2), SHAPE(0)}},
    {.in = {SHAPE(3, 70, 700), SHAPE(20, 70, 9), SHAPE(20)}, .number = {1, 4, 1}, .large = true},
};
static const op_sample bad_sequences[] = {
    {.in = {SHAPE(2, 3, 5), SHAPE(4, 2, 2), SHAPE(4)}, FAIL},
    {.in = {SHAPE(2, 3, 5), SHAPE(4, 3, 2), SHAPE(3)}, FAIL},
    {.in = {SHAPE(3, 5), SHAPE(4, 3, 2), ABSENT}, FAIL},
    {.in = {SHAPE(2, 3, 5), SHAPE(4, 3, 6), ABSENT}, FAIL},
    {.in = {SHAPE(2, 3, 5), SHAPE(4, 3, 3), ABSENT}, .number = {1, 0, 3}, FAIL},
    {.in = {SHAPE(2, 4, 5), SHAPE(3, 2, 2), ABSENT}, .axis = 2, FAIL},
    {.in = {SHAPE(2, 4, 5), SHAPE(4, 4, 2), ABSENT}, .axis = -1, FAIL},
    {.in = {SHAPE(2, 3, 5), SHAPE(4, 3, 2), ABSENT}, .number = {-1}, BAD},
    {.in = {SHAPE(2, 3, 5), SHAPE(4, 3, 2), ABSENT}, .number = {1, -1}, BAD},
    {.in = {SHAPE(2, 3, 5), SHAPE(4, 3, 2), ABSENT}, .number = {1, 0, -2}, BAD},
    {.in = {SHAPE(2, 3, 5), SHAPE(4, 3, 2), ABSENT}, .number = {1, INT64_MAX / 2 + 1}, FAIL},
};
static const op_sample images[] = {
    {.in = {SHAPE(2, 2, 4, 3), SHAPE(3, 2, 2, 2), SHAPE(3)}},
    {.in = {SHAPE(1, 4, 5, 4), SHAPE(2, 2, 3, 2), SHAPE(2)}, .number = {2, 1, 1}, .axes = {1, 0, 2}, .axis = 2},
    {.in = {SHAPE(2, 2, 3, 3), SHAPE(2, 2, 1, 1), ABSENT}},
    {.in = {SHAPE(2, 2, 3, 3), SHAPE(2, 2, 1, 1), SHAPE(2)}, .number = {2}, .axes = {2}},
    {.in = {SHAPE(1, 2, 2, 3), SHAPE(2, 1, 3, 3), SHAPE(2)}, .number = {1, 1, 1}, .axes = {2, 2, 1}, .axis = 2},
    {.in = {SHAPE(0, 2, 3, 3), SHAPE(2, 2, 2, 2), SHAPE(2)}},
    {.in = {SHAPE(2, 4, 5, 7), SHAPE(4, 1, 3, 3), SHAPE(4)}, .number = {2, 1}, .axes = {1, 1}, .axis = 4},
    {.in = {SHAPE(40, 24, 30, 37), SHAPE(24, 1, 3, 3), SHAPE(24)},
     .number = {1, 1},
     .axes = {1, 1},
     .axis = 24,
     .large = true},
    {.in = {SHAPE(2, 20, 40, 37), SHAPE(30, 20, 3, 3), SHAPE(30)}, .number = {1, 1}, .axes = {1, 1}, .large = true},
};
static const op_sample bad_images[] = {
    {.in = {SHAPE(2, 3, 5, 5), SHAPE(4, 2, 2, 2), ABSENT}, FAIL},
    {.in = {SHAPE(2, 3, 5), SHAPE(4, 3, 2, 2), ABSENT}, FAIL},
    {.in = {SHAPE(2, 3, 5, 5), SHAPE(4, 3, 2, 6), ABSENT}, FAIL},
    {.in = {SHAPE(2, 3, 5, 5), SHAPE(4, 3, 0, 2), ABSENT}, BAD},
    {.in = {SHAPE(2, 3, 5, 5), SHAPE(4, 3, 2, 2), ABSENT}, .number = {1, 1}, .axes = {1, -1}, BAD},
    {.in = {SHAPE(1, 1, 1, 1), SHAPE(1, 1, 1, 1), ABSENT}, .number = {1, INT64_MAX / 4}, .axes = {1, INT32_MAX}, FAIL},
};
static const op_sample lines[] = {
    {.in = {SHAPE(2, 3, 6)}, .number = {2}},
    {.in = {SHAPE(2, 2, 7)}, .number = {3, 2, 1}},
    {.in = {SHAPE(1, 2, 7)}, .number = {3, 2, 1}, .variant = ceil_bit | padding_out_bit},
    {.in = {SHAPE(1, 2, 5)}, .number = {2, 2, 0}, .variant = ceil_bit},
    {.in = {SHAPE(1, 2, 3)}, .number = {4, 2, 0}, .variant = ceil_bit},
    {.in = {SHAPE(1, 2, 3)}, .number = {6, 3, 1}, .variant = ceil_bit | padding_out_bit},
    {.in = {SHAPE(0, 2, 5)}, .number = {2}},
    {.in = {SHAPE(1, 1, 66)}, .number = {3, 1, 1}}, /* more windows than are worked on at once */
    {.in = {SHAPE(1, 1, 131)}, .number = {3, 2, 1}},
    {.in = {SHAPE(31, 41, 97)}, .number = {4, 3, 2}, .large = true},
};
static const op_sample bad_lines[] = {
    {.in = {SHAPE(2, 5)}, .number = {2}, FAIL},
    {.in = {SHAPE(2, 3, 5)}, .number = {6}, FAIL},
    {.in = {SHAPE(2, 3, 0)}, .number = {2, 1, 1}, FAIL},
    {.in = {SHAPE(2, 3, 5)}, .number = {0}, BAD},
    {.in = {SHAPE(2, 3, 5)}, .number = {2, -1}, BAD},
    {.in = {SHAPE(2, 3, 5)}, .number = {2, 1, 2}, BAD},
    {.in = {SHAPE(2, 3, 5)}, .number = {7, 2}, .variant = ceil_bit, FAIL},
};
static const op_sample planes[] = {
    {.in = {SHAPE(2, 2, 4, 6)}, .number = {2}, .axes = {3}},
    {.in = {SHAPE(1, 2, 5, 5)}, .number = {3, 2, 1}, .axes = {2, 1, 1}},
    {.in = {SHAPE(1, 2, 5, 6)}, .number = {3, 2, 1}, .axes = {2, 3, 1}, .variant = ceil_bit},
    {.in = {SHAPE(1, 2, 2, 5)}, .number = {5, 3, 1}, .axes = {2, 2}, .variant = ceil_bit},
    {.in = {SHAPE(1, 1, 5, 6)}, .number = {3, 3, 1}, .axes = {3, 2, 1}, .variant = padding_out_bit},
    {.in = {SHAPE(2, 0, 5, 5)}, .number = {2}, .axes = {2}},
    {.in = {SHAPE(7, 23, 40, 17)}, .number = {3, 2, 1}, .axes = {3, 2, 1}, .large = true},
};
static const op_sample bad_planes[] = {
    {.in = {SHAPE(2, 3, 5)}, .number = {2}, .axes = {2}, FAIL},
    {.in = {SHAPE(2, 3, 5, 5)}, .number = {2}, .axes = {6}, FAIL},
    {.in = {SHAPE(2, 3, 5, 5)}, .number = {2}, .axes = {0}, BAD},
    {.in = {SHAPE(2, 3, 5, 5)}, .number = {2}, .axes = {3, 1, 2}, BAD},
};
/* With gaps, as a mean's windows have none. */
static const op_sample gaps[] = {
    {.in = {SHAPE(1, 2, 7, 6)}, .number = {3, 1, 1, 2}, .axes = {2, 2, 0, 3}},
    {.in = {SHAPE(0, 2, 7, 6)}, .number = {3, 1, 1, 2}, .axes = {2, 2, 0, 3}},
    {.in = {SHAPE(1, 2, 4, 3)}, .number = {2, 2, 0, 4}, .axes = {3, 2, 1, 2}, .variant = ceil_bit},
    {.in = {SHAPE(7, 23, 40, 17)}, .number = {3, 2, 1, 3}, .axes = {3, 2, 1, 2}, .large = true},
};
static const op_sample bad_gaps[] = {
    {.in = {SHAPE(2, 3, 5, 2)}, .number = {2}, .axes = {2, 1, 1, 3}, BAD}, /* places −1 and 2 */
    {.in = {SHAPE(2, 3, 5, 5)}, .number = {2, 1, 0, -1}, .axes = {2}, BAD},
};
static const op_sample mean_gaps[] = {{.in = {SHAPE(2, 3, 5, 5)}, .number = {2}, .axes = {2, 1, 0, 2}, BAD}};

static const op_row rows[] = {
    {.name = "conv1d",
     .call = call_conv1d,
     .reference = reference_conv,
     .differentiable = 7,
     .optional = 4,
     SAMPLES(sequences),
     FAILURES(bad_sequences)},
    {.name = "conv2d",
     .call = call_conv2d,
     .reference = reference_conv,
     .differentiable = 7,
     .optional = 4,
     SAMPLES(images),
     FAILURES(bad_images)},
#define POOL_ROW(kind, reference_, samples_, failures_)                                                                \
    {                                                                                                                  \
        .name = #kind, .call = call_##kind, .reference = reference_, .differentiable = 1, .is_combined = true,         \
        SAMPLES(samples_), FAILURES(failures_)                                                                         \
    }
    POOL_ROW(max_pool1d, reference_max_pool, lines, bad_lines),
    POOL_ROW(max_pool2d, reference_max_pool, planes, bad_planes),
    POOL_ROW(max_pool2d, reference_max_pool, gaps, bad_gaps),
    POOL_ROW(avg_pool1d, reference_avg_pool, lines, bad_lines),
    POOL_ROW(avg_pool2d, reference_avg_pool, planes, bad_planes),
    POOL_ROW(avg_pool2d, reference_avg_pool, planes, mean_gaps),
};

const op_family ops_image = {rows, sizeof rows / sizeof *rows};
