/* Padding, the opposite of slicing; and flip, the reversal of axes. */
#include <rapt/ops.h>

#include <math.h>
#include <string.h>

#include "elementwise.h"
#include "part.h"
#include "tensor/map.h"

typedef struct place_options {
    int axis;
    int64_t start, step, size;
    double value;
} place_options;

static void fill_part(const rapt_tensor *part, double value)
{
    double element; /* room for any dtype */
    rapt_write_element(part->dtype, value, &element);
    rapt_map(rapt_kernel.elementwise.fill[part->dtype], &element, 1, 1, (const rapt_tensor *[]){part});
}

/* out[start + i · step] = x[i] along the axis, the value elsewhere; backward is the slice of those places */
static rapt_tensor *pad_forward(rapt_call *call)
{
    const rapt_tensor *x = rapt_call_input(call, 0);
    const place_options *o = rapt_call_options(call);
    int axis = rapt_check_axis("pad", o->axis, x->rank, 0);
    if (axis < 0) return NULL;
    int64_t shape[RAPT_MAX_RANK], size = x->shape[axis];
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    shape[axis] = o->size;
    rapt_tensor *whole = rapt_new("pad", x->dtype, x->rank, shape);
    if (!whole) return NULL;
    if (o->step == 1) {
        const rapt_tensor before = rapt_part(whole, axis, 0, o->start, 1);
        const rapt_tensor after = rapt_part(whole, axis, o->start + size, o->size - o->start - size, 1);
        fill_part(&before, o->value);
        fill_part(&after, o->value);
    } else {
        fill_part(whole, o->value);
    }
    const rapt_tensor inside = rapt_part(whole, axis, o->start, size, size > 1 ? o->step : 1);
    rapt_write_part(&inside, x);
    return whole;
}

static bool pad_vjp(rapt_call *call)
{
    const place_options *o = rapt_call_options(call);
    int rank;
    const int64_t *shape = rapt_call_input_shape(call, 0, &rank);
    int64_t size = shape[o->axis < 0 ? o->axis + rank : o->axis];
    int64_t stop = size > 0 ? o->start + (size - 1) * o->step + 1 : o->start;
    return rapt_call_give(call, 0, rapt_slice(rapt_call_gradient(call, 0), o->axis, o->start, stop, o->step));
}

static const rapt_op pad = {.name = "pad",
                            .forward = pad_forward,
                            .vjp = pad_vjp,
                            .options_size = sizeof(place_options)};

rapt_tensor *rapt_place(rapt_tensor *x, int axis, int64_t start, int64_t step, int64_t size, double value)
{
    const place_options options = {axis, start, step, size, value};
    if (isfinite(value) || !x || !rapt_is_floating(x)) return RAPT_APPLY(&pad, &options, x);
    return RAPT_APPLY(&pad, &options, x, rapt_scalar(x->dtype, value)); /* an input for the hunt to see */
}

rapt_tensor *rapt_pad(rapt_tensor *x, int axis, int64_t before, int64_t after, double value)
{
    int checked = x ? rapt_check_axis("pad", axis, x->rank, 0) : 0;
    if (checked < 0 || (x && !rapt_check_number("pad", x, value))) return NULL;
    int64_t size = x ? x->shape[checked] : 0;
    if (before < 0 || after < 0) {
        rapt_fail(RAPT_ERROR_VALUE, "pad", "%lld places before and %lld after; 0 or more expected", (long long)before,
                  (long long)after);
        return NULL;
    }
    if (__builtin_add_overflow(size, before, &size) || __builtin_add_overflow(size, after, &size)) {
        rapt_fail(RAPT_ERROR_MEMORY, "pad", "axis %d would have more places than 64 bits can count", axis);
        return NULL;
    }
    return rapt_place(x, axis, before, 1, size, value);
}

/* d flip(x) = flip(dx) */
static rapt_tensor *flip_forward(rapt_call *call)
{
    const rapt_tensor *x = rapt_call_input(call, 0);
    unsigned flipped = *(const unsigned *)rapt_call_options(call);
    rapt_tensor *output = rapt_new("flip", x->dtype, x->rank, x->shape);
    if (!output) return NULL;
    rapt_tensor reversed = rapt_header_of(x);
    reversed.contiguous = false;
    for (int axis = 0; axis < x->rank; axis++) {
        if (!(flipped >> axis & 1) || x->count == 0) continue;
        reversed.data = rapt_data_at(&reversed, (x->shape[axis] - 1) * x->strides[axis]);
        reversed.strides[axis] = -x->strides[axis];
    }
    rapt_write_part(output, &reversed);
    return output;
}

static bool flip_vjp(rapt_call *call)
{
    unsigned flipped = *(const unsigned *)rapt_call_options(call);
    int axes[RAPT_MAX_RANK], count = 0;
    for (int axis = 0; axis < RAPT_MAX_RANK; axis++)
        if (flipped >> axis & 1) axes[count++] = axis;
    rapt_tensor *g = rapt_call_gradient(call, 0);
    return rapt_call_give(call, 0, count ? rapt_flip(g, count, axes) : g);
}

static const rapt_op flip = {.name = "flip",
                             .forward = flip_forward,
                             .vjp = flip_vjp,
                             .options_size = sizeof(unsigned)};

rapt_tensor *rapt_flip(rapt_tensor *x, int axis_count, const int *axes)
{
    unsigned flipped = x && axis_count == 0 ? (1U << x->rank) - 1 : 0;
    if (axis_count > 0 && !axes) {
        rapt_fail_null("flip", "axes");
        return NULL;
    }
    if (axis_count < 0) {
        rapt_fail(RAPT_ERROR_SHAPE, "flip", "%d axes named; 0 (all) or more expected", axis_count);
        return NULL;
    }
    for (int i = 0; x && i < axis_count; i++) {
        int axis = rapt_check_axis("flip", axes[i], x->rank, 0);
        if (axis < 0) return NULL;
        if (flipped >> axis & 1) {
            rapt_fail(RAPT_ERROR_SHAPE, "flip", "axis %d is named twice", axis);
            return NULL;
        }
        flipped |= 1U << axis;
    }
    return RAPT_APPLY(&flip, &flipped, x);
}
