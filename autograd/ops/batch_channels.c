/* How batch normalisation goes through the numbers of its channels. */
#include "batch_channels.h"

#include <rapt/ops.h>

#include "tensor/parallel.h"
#include "tensor/scratch.h"

typedef rapt_channels channels;
typedef rapt_channels_work work;
typedef rapt_channels_steps steps;

rapt_channels rapt_channels_of(const rapt_tensor *x)
{
    enum { short_line = 16 };
    const int64_t items = x->shape[0], count = x->shape[1];
    const int64_t n = x->count > 0 ? x->count / (items * count) : 0;
    if (n == 1 && items > 1) return (channels){.count = count, .lines = items, .n = n, .side_by_side = true};
    if (n < short_line && items > 1)
        return (channels){.count = count, .lines = 1, .n = items * n, .stride = items * n, .come_first = true};
    return (channels){.count = count, .lines = items, .n = n, .stride = n, .line_stride = count * n};
}

static int64_t first_of(const work *w, int64_t channel, int64_t line)
{
    return channel * w->channels.stride + line * w->channels.line_stride;
}

double rapt_channels_fold(const work *w, const rapt_fold *fold, const rapt_tensor *tensor, int64_t channel,
                          double center)
{
    const rapt_dtype dtype = tensor->dtype;
    double sum = 0;
    for (int64_t line = 0; line < w->channels.lines; line++)
        fold->rows[dtype](1, 0, w->channels.n, rapt_element_bytes[dtype],
                          rapt_data_at(tensor, first_of(w, channel, line)), &sum, &center);
    return sum;
}

bool rapt_channels_fold_side_by_side(const work *w, const char *op, const rapt_fold *fold, const rapt_tensor *tensor,
                                     const rapt_accumulator *centers, rapt_accumulator *sums)
{
    rapt_reduction_shape shape;
    rapt_tensor *rows =
        rapt_reshape((rapt_tensor *)(uintptr_t)tensor, RAPT_SHAPE(w->channels.lines, w->channels.count));
    return rows && rapt_check_axes(op, rows, RAPT_AXES(0), &shape) &&
           rapt_reduce(op, fold, &rapt_kernel.reduce.sum, rows, &shape, centers, sums);
}

/* Of so many elements, as many at once as stay in the first-level cache. Numbers are one for all or one for `each`;
 * those of one kind stand `apart` bytes behind those of the other one. */
static void run_steps(const work *w, const steps *s, int64_t first, int64_t count, char *numbers, int64_t apart,
                      bool each)
{
    enum { at_once = 2048 };
    const int64_t size = rapt_element_bytes[w->x->dtype];
    for (int64_t i = 0; i < count; i += at_once) {
        char *const out = rapt_data_at(w->y, first + i), *so_far = rapt_data_at(w->x, first + i);
        for (int k = 0; k < s->count; k++) {
            const bool dense = each || s->operands[k] == rapt_of_g;
            char *const operand = s->operands[k] == rapt_of_g
                                      ? rapt_data_at(w->g, first + i)
                                      : numbers + s->operands[k] * apart + (each ? i * size : 0);
            s->loops[k][w->x->dtype](rapt_smaller_of(count - i, at_once), (char *const[]){out, so_far, operand},
                                     (const int64_t[]){size, size, dense ? size : 0}, NULL);
            so_far = out;
        }
    }
}

static void write_numbers(const work *w, const steps *s, int64_t channel, char *numbers, int64_t apart)
{
    double found[rapt_most_numbers];
    s->find(w, channel, found);
    for (int k = 0; k < s->numbers; k++) rapt_write_element(w->x->dtype, found[k], numbers + k * apart);
}

void rapt_channels_run(const work *w, const steps *s, int64_t channel)
{
    double numbers[rapt_most_numbers];
    write_numbers(w, s, channel, (char *)numbers, sizeof *numbers);
    for (int64_t line = 0; line < w->channels.lines; line++)
        run_steps(w, s, first_of(w, channel, line), w->channels.n, (char *)numbers, sizeof *numbers, false);
}

static void run_rows(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    for (int64_t i = first; i < last; i++)
        run_steps(w, w->side, i * w->width, rapt_smaller_of(w->width, w->x->count - i * w->width), w->numbers,
                  w->width * rapt_element_bytes[w->x->dtype], true);
}

bool rapt_channels_run_side_by_side(work *w, const char *op, const steps *s)
{
    enum { row_elements = 512 };
    const int64_t channels_a_row = w->channels.count, size = rapt_element_bytes[w->x->dtype];
    w->side = s;
    w->width = channels_a_row * rapt_divide_up(row_elements, channels_a_row);
    w->numbers = rapt_scratch_list(op, w->width * s->numbers, (size_t)size);
    if (!w->numbers) return false;
    for (int64_t i = 0; i < w->width; i++)
        write_numbers(w, s, i % channels_a_row, w->numbers + i * size, w->width * size);
    rapt_parallel_evenly(rapt_divide_up(w->x->count, w->width), rapt_grain(4 * w->width), run_rows, w);
    return true;
}
