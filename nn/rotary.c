/* Rotary positions: pairs of a vector's elements turned by angles that grow with its position. */
#include <rapt/positions.h>

#include <stdio.h>

#include "nn/entry.h"
#include "position_table.h"
#include "tensor/debug.h"
#include "tensor/map.h"

static bool check(const char *op, const rapt_tensor *x)
{
    char text[128];
    if (!rapt_is_floating(x) || x->rank < 2 || x->shape[x->rank - 1] % 2 != 0)
        return rapt_fail(rapt_is_floating(x) ? RAPT_ERROR_SHAPE : RAPT_ERROR_DTYPE, op,
                         "floating input of shape (..., length, an even size) expected, not %s",
                         rapt_describe(x, text, sizeof text));
    return true;
}

/* Each pair (a, b) of x becomes (a cos − b sin, a sin + b cos), with angles from the table; the gradient turns back. */
static rapt_tensor *forward(rapt_call *call)
{
    const rapt_tensor *x = rapt_call_input(call, 0), *table = rapt_call_input(call, 1);
    const int last = x->rank - 1;
    if (x->strides[last] != 1 && !(x = rapt_as_contiguous(x))) return NULL;
    rapt_tensor *turned = rapt_new("rotate", x->dtype, x->rank, x->shape);
    /* a row of the table for each row of x: the table without its last axis, which the loop walks itself */
    const rapt_tensor *rows = rapt_new_view(table, table->data, table->rank - 1, table->shape, table->strides);
    if (!turned || !rows) return NULL;
    rapt_map_along(last, rapt_kernel.rotate.rotate[x->dtype], rapt_call_options(call), 2 * x->shape[last], 3,
                   (const rapt_tensor *[]){turned, x, rows});
    rapt_call_save(call, rapt_call_input(call, 1));
    return turned;
}

static bool vjp(rapt_call *call);

static const rapt_op rotate = {.name = "rotate",
                               .forward = forward,
                               .vjp = vjp,
                               .options_size = sizeof(rapt_rotate_options)};

static bool vjp(rapt_call *call)
{
    rapt_rotate_options options = *(const rapt_rotate_options *)rapt_call_options(call);
    options.back = !options.back;
    return rapt_call_give(call, 0,
                          RAPT_APPLY(&rotate, &options, rapt_call_gradient(call, 0), rapt_call_saved(call, 0)));
}

static rapt_tensor *turn(rapt_tensor *x, rapt_tensor *table, bool halves)
{
    const rapt_rotate_options options = {.pairs = x->shape[x->rank - 1] / 2, .halves = halves};
    return RAPT_APPLY(&rotate, &options, x, table);
}

static rapt_position_angles angles_of(const char *op, const rapt_tensor *x, double base, rapt_rotary_scaling scaling)
{
    return (
        rapt_position_angles){.op = op, .base = base, .scaling = scaling, .size = x->shape[x->rank - 1], .apart = true};
}

rapt_tensor *rapt_rotate(rapt_tensor *x, int64_t offset, double base, bool halves)
{
    if (!x) rapt_fail_null("rotate", "x");
    if (!x || !check("rotate", x)) return NULL;
    RAPT_SCOPE;
    const rapt_position_angles angles = angles_of("rotate", x, base, (rapt_rotary_scaling){0});
    rapt_tensor *table = rapt_position_table(&angles, x->dtype, offset, x->shape[x->rank - 2]);
    return rapt_keep(turn(x, table, halves));
}

static rapt_tensor *forward_from_0(rapt_module *module, rapt_tensor *x)
{
    return rapt_rotary_forward((rapt_rotary *)module, x, 0);
}

static void destroy(rapt_module *module)
{
    rapt_release(((rapt_rotary *)module)->table);
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    const rapt_rotary *rotary = (const rapt_rotary *)module;
    const int used = snprintf(text, size, "base %g, %s", rotary->base, rotary->halves ? "halves" : "neighbours");
    if (rotary->scaling.factor != 0 && used > 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, ", scaled by 1/%g", rotary->scaling.factor);
}

static const rapt_module_class kind = {.name = "Rotary",
                                       .forward = forward_from_0,
                                       .destroy = destroy,
                                       .describe = describe};

rapt_rotary *rapt_rotary_new(void)
{
    rapt_rotary *rotary = rapt_module_new(sizeof *rotary, &kind);
    if (!rotary) return NULL;
    rotary->base = 10000;
    return rapt_module_finish(&rotary->module);
}

static bool check_call(const char *op, const rapt_rotary *rotary, const rapt_tensor *x)
{
    if (!rotary || !x) return rapt_fail(RAPT_ERROR_NULL, op, "the %s is NULL", rotary ? "input" : "layer");
    return !rapt_was_freed(op, rotary) && check(op, x);
}

rapt_tensor *rapt_rotary_forward(rapt_rotary *rotary, rapt_tensor *x, int64_t offset)
{
    const char *op = kind.name;
    if (!check_call(op, rotary, x)) return NULL;
    RAPT_ENTER(&rotary->module);
    RAPT_SCOPE;
    const rapt_position_angles angles = angles_of(op, x, rotary->base, rotary->scaling);
    rapt_tensor *rows = rapt_position_rows(&angles, x->dtype, offset, x->shape[x->rank - 2], &rotary->table);
    return rapt_keep(turn(x, rows, rotary->halves));
}

rapt_tensor *rapt_rotary_forward_at(rapt_rotary *rotary, rapt_tensor *x, rapt_tensor *places)
{
    const char *op = kind.name;
    if (!check_call(op, rotary, x) || !rapt_check_places(op, places, x)) return NULL;
    RAPT_ENTER(&rotary->module);
    RAPT_SCOPE;
    const rapt_position_angles angles = angles_of(op, x, rotary->base, rotary->scaling);
    rapt_tensor *rows = rapt_position_rows_at(&angles, x->dtype, places, &rotary->table);
    return rapt_keep(turn(x, rows, rotary->halves));
}
