/* Tables of the sines and cosines of positions, made once and kept for the next call. */
#include "position_table.h"

#include <math.h>
#include <string.h>

#include "nn/options.h"
#include "tensor/core.h"

/* Positions that a table may hold; those past it are computed for each call, so that a wild offset costs little memory,
 * whatever the size. */
static int64_t most_kept(const rapt_position_angles *a)
{
    enum { most_rows = 1 << 17, most_elements = 1 << 24 };
    return a->size <= most_elements / most_rows ? most_rows : most_elements / a->size;
}

static bool check(const rapt_position_angles *a, rapt_dtype dtype, int64_t offset, int64_t length)
{
    int64_t end;
    if (!rapt_dtype_is_floating(dtype))
        return rapt_fail(RAPT_ERROR_DTYPE, a->op, "positions in %s; float32 or float64 expected",
                         rapt_dtype_name(dtype));
    if (a->size < 1 || length < 0)
        return rapt_fail(RAPT_ERROR_VALUE, a->op,
                         "%lld positions of size %lld; 0 or more of a size of 1 or more expected", (long long)length,
                         (long long)a->size);
    if (__builtin_add_overflow(offset, length, &end))
        return rapt_fail(RAPT_ERROR_VALUE, a->op,
                         "%lld positions from position %lld on are more than 64 bits can count", (long long)length,
                         (long long)offset);
    if (!(a->base > 0) || isinf(a->base))
        return rapt_fail(RAPT_ERROR_VALUE, a->op, "base %g; a positive number expected", a->base);
    return rapt_check_rotary_scaling(a->op, &a->scaling);
}

/* What the angles of a pair with this wavelength, in positions for one radian, are multiplied with. */
static double scale_of(const rapt_rotary_scaling *scaling, double wavelength)
{
    if (scaling->factor == 0) return 1;
    if (scaling->context == 0) return 1 / scaling->factor;
    const double turns = (double)scaling->context / (6.28318530717958647692 * wavelength); /* 2π */
    const double kept = (turns - scaling->low_turns) / (scaling->high_turns - scaling->low_turns);
    return kept <= 0 ? 1 / scaling->factor : kept >= 1 ? 1 : (1 - kept) / scaling->factor + kept;
}

/* places: of the rows; NULL: offset + i */
static rapt_tensor *make_table(const rapt_position_angles *a, rapt_dtype dtype, const int64_t *places, int64_t offset,
                               int64_t length)
{
    if (!check(a, dtype, offset, length)) return NULL;
    RAPT_SCOPE;
    rapt_tensor *table = rapt_new(a->op, RAPT_FLOAT64, RAPT_SHAPE(length, a->size));
    if (!table) return NULL;
    double *rows = (double *)(void *)table->data;
    const int64_t step = a->apart ? 1 : 2, sine = a->apart ? a->size / 2 : 0, cosine = a->apart ? 0 : 1;
    for (int64_t j = 0; length > 0 && j < (a->size + 1) / 2; j++) {
        const double wavelength = pow(a->base, 2 * (double)j / (double)a->size);
        const double scale = scale_of(&a->scaling, wavelength);
        for (int64_t i = 0; i < length; i++) {
            const double angle = (double)(places ? places[i] : offset + i) / wavelength * scale;
            double *row = rows + i * a->size + step * j;
            row[sine] = sin(angle);
            if (step * j + cosine < a->size) row[cosine] = cos(angle);
        }
    }
    return rapt_keep(rapt_cast(table, dtype));
}

rapt_tensor *rapt_position_table(const rapt_position_angles *a, rapt_dtype dtype, int64_t offset, int64_t length)
{
    return make_table(a, dtype, NULL, offset, length);
}

/* What a table's angles are of, which its last rows hold. */
typedef struct table_key {
    double base;
    rapt_rotary_scaling scaling; /* has no padding, so that bytes can be compared */
} table_key;

static table_key key_of(const rapt_position_angles *a)
{
    return (table_key){a->base, a->scaling};
}

/* So many rows hold it. */
static int64_t key_rows(const rapt_position_angles *a, rapt_dtype dtype)
{
    const int64_t size = a->size * (int64_t)rapt_dtype_size(dtype);
    return ((int64_t)sizeof(table_key) + size - 1) / size;
}

static char *key_in(const rapt_tensor *table, int64_t rows)
{
    return rapt_data_at(table, rows * table->shape[1]);
}

/* How many rows of angles a table has that holds for these; 0 where it holds for others. */
static int64_t rows_of(const rapt_position_angles *a, rapt_dtype dtype, const rapt_tensor *table)
{
    if (!table || table->dtype != dtype || table->shape[1] != a->size) return 0;
    const table_key key = key_of(a);
    const int64_t rows = table->shape[0] - key_rows(a, dtype);
    return memcmp(key_in(table, rows), &key, sizeof key) == 0 ? rows : 0;
}

static rapt_tensor *table_with_key(const rapt_position_angles *a, rapt_dtype dtype, int64_t rows)
{
    const table_key key = key_of(a);
    rapt_tensor *table = rapt_position_table(a, dtype, 0, rows + key_rows(a, dtype));
    if (table) memcpy(key_in(table, rows), &key, sizeof key);
    return table;
}

rapt_tensor *rapt_position_rows(const rapt_position_angles *a, rapt_dtype dtype, int64_t offset, int64_t length,
                                rapt_tensor **table)
{
    if (!check(a, dtype, offset, length)) return NULL;
    const int64_t end = offset + length, most = most_kept(a);
    if (offset < 0 || end > most) return rapt_position_table(a, dtype, offset, length);
    RAPT_SCOPE;
    rapt_tensor *held = rapt_field_get(table);
    const int64_t rows = rows_of(a, dtype, held);
    if (!held || rows < end) {
        /* Doubled, so that a sequence that grows step by step fills few tables. */
        const int64_t wanted = 2 * rows > end ? 2 * rows : end;
        held = table_with_key(a, dtype, wanted < most ? wanted : most);
        if (!held) return NULL;
        rapt_field_set(table, held);
    }
    return rapt_keep(rapt_slice(held, 0, offset, end, 1));
}

rapt_tensor *rapt_position_rows_at(const rapt_position_angles *a, rapt_dtype dtype, rapt_tensor *places,
                                   rapt_tensor **table)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    places = rapt_contiguous(rapt_cast(places, RAPT_INT64));
    if (!places) return NULL;
    const int64_t *place = (const int64_t *)(const void *)places->data;
    int64_t first = 0, last = places->count > 0 ? place[0] : 0;
    for (int64_t i = 0; i < places->count; i++) {
        if (place[i] < first) first = place[i];
        if (place[i] > last) last = place[i];
    }
    if (first == 0 && last < most_kept(a))
        return rapt_keep(rapt_embed(rapt_position_rows(a, dtype, 0, last + 1, table), places));
    int64_t shape[RAPT_MAX_RANK]; /* those far away are computed one by one; places have an axis less than x */
    for (int axis = 0; axis < places->rank; axis++) shape[axis] = places->shape[axis];
    shape[places->rank] = a->size;
    return rapt_keep(rapt_reshape(make_table(a, dtype, place, 0, places->count), places->rank + 1, shape));
}

bool rapt_check_places(const char *op, const rapt_tensor *places, const rapt_tensor *x)
{
    char a[128], b[128];
    if (!places) return rapt_fail_null(op, "places");
    bool fits = rapt_is_integer(places) && places->rank < x->rank;
    for (int i = 1; fits && i <= places->rank; i++) {
        const int64_t size = places->shape[places->rank - i];
        fits = size == 1 || size == x->shape[x->rank - 1 - i];
    }
    return fits ||
           rapt_fail(RAPT_ERROR_SHAPE, op, "places %s; integers that broadcast to %s without its last axis expected",
                     rapt_describe(places, a, sizeof a), rapt_describe(x, b, sizeof b));
}
