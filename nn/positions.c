/* Positions that are added to what stands there: sinusoidal and learned. */
#include <rapt/positions.h>

#include <stdio.h>

#include "nn/entry.h"
#include "nn/options.h"
#include "position_table.h"
#include "tensor/core.h"
#include "tensor/random.h"

/* x of shape (…, T, size) expected */
static bool check_input(const char *op, const rapt_tensor *x, int64_t size)
{
    char text[128];
    if (x->rank >= 2 && x->shape[x->rank - 1] == size) return true;
    return rapt_fail(RAPT_ERROR_SHAPE, op, "input of shape (..., length, %lld) expected, not %s", (long long)size,
                     rapt_describe(x, text, sizeof text));
}

static bool check_call(const char *op, const void *layer, const rapt_tensor *x)
{
    return (layer && x) || rapt_fail(RAPT_ERROR_NULL, op, "the %s is NULL", layer ? "input" : "layer");
}

/* drop(x + rows) */
static rapt_tensor *add_rows(const rapt_module *module, rapt_tensor *x, rapt_tensor *rows, double dropout)
{
    rapt_tensor *sum = rapt_add(x, rows);
    return module->training && dropout != 0 ? rapt_drop(sum, dropout) : sum;
}

/* --- sinusoidal --- */

static rapt_position_angles sinusoidal_angles(const char *op, int64_t size)
{
    return (rapt_position_angles){.op = op, .base = 10000, .size = size};
}

rapt_tensor *rapt_sinusoidal(rapt_dtype dtype, int64_t offset, int64_t length, int64_t size)
{
    const rapt_position_angles angles = sinusoidal_angles("sinusoidal", size);
    return rapt_position_table(&angles, dtype, offset, length);
}

static rapt_tensor *sinusoidal_forward(rapt_module *module, rapt_tensor *x)
{
    return rapt_sinusoidal_positions_forward((rapt_sinusoidal_positions *)module, x, 0);
}

static void sinusoidal_destroy(rapt_module *module)
{
    rapt_release(((rapt_sinusoidal_positions *)module)->table);
}

static void sinusoidal_describe(const rapt_module *module, char *text, size_t size)
{
    const rapt_sinusoidal_positions *p = (const rapt_sinusoidal_positions *)module;
    snprintf(text, size, "%lld, dropout %g", (long long)p->size, p->dropout);
}

static const rapt_module_class sinusoidal_kind = {.name = "SinusoidalPositions",
                                                  .forward = sinusoidal_forward,
                                                  .destroy = sinusoidal_destroy,
                                                  .describe = sinusoidal_describe};

rapt_sinusoidal_positions *rapt_sinusoidal_positions_new(int64_t size, double dropout)
{
    const char *op = sinusoidal_kind.name;
    if (size < 1) rapt_fail(RAPT_ERROR_VALUE, op, "size %lld; 1 or more expected", (long long)size);
    if (size < 1 || !rapt_check_probability(op, "dropout", dropout)) return NULL;
    rapt_sinusoidal_positions *positions = rapt_module_new(sizeof *positions, &sinusoidal_kind);
    if (!positions) return NULL;
    positions->size = size;
    positions->dropout = dropout;
    return rapt_module_finish(&positions->module);
}

rapt_tensor *rapt_sinusoidal_positions_forward(rapt_sinusoidal_positions *positions, rapt_tensor *x, int64_t offset)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)positions);
    const char *op = sinusoidal_kind.name;
    if (!check_call(op, positions, x) || !check_input(op, x, positions->size)) return NULL;
    RAPT_SCOPE;
    const rapt_position_angles angles = sinusoidal_angles(op, positions->size);
    rapt_tensor *rows = rapt_position_rows(&angles, x->dtype, offset, x->shape[x->rank - 2], &positions->table);
    return rapt_keep(add_rows(&positions->module, x, rows, positions->dropout));
}

rapt_tensor *rapt_sinusoidal_positions_forward_at(rapt_sinusoidal_positions *positions, rapt_tensor *x,
                                                  rapt_tensor *places)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)positions);
    const char *op = sinusoidal_kind.name;
    if (!check_call(op, positions, x) || !check_input(op, x, positions->size) || !rapt_check_places(op, places, x))
        return NULL;
    RAPT_SCOPE;
    const rapt_position_angles angles = sinusoidal_angles(op, positions->size);
    rapt_tensor *rows = rapt_position_rows_at(&angles, x->dtype, places, &positions->table);
    return rapt_keep(add_rows(&positions->module, x, rows, positions->dropout));
}

/* --- learned --- */

static rapt_tensor *learned_forward(rapt_module *module, rapt_tensor *x)
{
    return rapt_learned_positions_forward((rapt_learned_positions *)module, x, 0);
}

static void learned_describe(const rapt_module *module, char *text, size_t size)
{
    const rapt_learned_positions *p = (const rapt_learned_positions *)module;
    snprintf(text, size, "%lld x %lld, dropout %g", (long long)rapt_size(p->weight, 0),
             (long long)rapt_size(p->weight, 1), p->dropout);
}

static const rapt_module_class learned_kind = {.name = "LearnedPositions",
                                               .forward = learned_forward,
                                               .describe = learned_describe};

rapt_learned_positions *rapt_learned_positions_new(int64_t count, int64_t size, double dropout)
{
    const char *op = learned_kind.name;
    if (!rapt_check_size(op, "count", count) || !rapt_check_size(op, "size", size) ||
        !rapt_check_probability(op, "dropout", dropout))
        return NULL;
    RAPT_SCOPE;
    rapt_learned_positions *positions = rapt_module_new(sizeof *positions, &learned_kind);
    if (!positions) return NULL;
    positions->dropout = dropout;
    positions->weight =
        rapt_module_add_parameter(&positions->module, "weight", rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(count, size)));
    return rapt_module_finish(&positions->module);
}

rapt_tensor *rapt_learned_positions_forward(rapt_learned_positions *positions, rapt_tensor *x, int64_t offset)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)positions);
    const char *op = learned_kind.name;
    if (!check_call(op, positions, x) || !check_input(op, x, positions->weight->shape[1])) return NULL;
    const int64_t length = x->shape[x->rank - 2], count = positions->weight->shape[0];
    if (offset < 0 || offset > count - length) {
        rapt_fail(RAPT_ERROR_VALUE, op, "positions from %lld on for a length of %lld; 0 to %lld are learned",
                  (long long)offset, (long long)length, (long long)count - 1);
        return NULL;
    }
    RAPT_SCOPE;
    rapt_tensor *rows = rapt_slice(positions->weight, 0, offset, offset + length, 1);
    return rapt_keep(add_rows(&positions->module, x, rows, positions->dropout));
}

rapt_tensor *rapt_learned_positions_forward_at(rapt_learned_positions *positions, rapt_tensor *x, rapt_tensor *places)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)positions);
    const char *op = learned_kind.name;
    if (!check_call(op, positions, x) || !check_input(op, x, positions->weight->shape[1]) ||
        !rapt_check_places(op, places, x))
        return NULL;
    RAPT_SCOPE;
    return rapt_keep(add_rows(&positions->module, x, rapt_embed(positions->weight, places), positions->dropout));
}
