/* The functions over tiles of the library's own score modifications, for one element type. T is the type, TANH its
 * function, and OF_TYPE(name) the name for it. Each is written with what any modification gets. */
#include <math.h>

#include "double_math.h"
#include "loop.h"

static inline T *scores_of(const rapt_score_tile *tile, int64_t row)
{
    return (T *)tile->scores + row * tile->stride;
}

static inline T *gradient_of(const rapt_score_tile *tile, int64_t row)
{
    return (T *)tile->gradient + row * tile->stride;
}

/* j − i of the first column */
static inline int64_t first_position(const rapt_score_tile *tile, int64_t row)
{
    return tile->first_key - tile->queries[row];
}

static inline T number_of_head(const rapt_score_tile *tile)
{
    return *(const T *)tile->captured[0];
}

static double sum_of(int64_t count, const T *elements)
{
    T sum = 0;
    _Pragma("omp simd reduction(+ : sum)") for (int64_t c = 0; c < count; c++) sum += elements[c];
    return (double)sum;
}

static void add_to_row(int64_t count, T number, T *restrict row)
{
    RAPT_SIMD for (int64_t c = 0; c < count; c++) row[c] += number;
}

/* --- soft cap: s' = cap · tanh(s / cap), ds = ds' (1 − (s' / cap)²) --- */

static void soft_cap(const rapt_score_tile *tile)
{
    const T cap = (T) * (const double *)tile->options, inverse = (T)(1 / *(const double *)tile->options);
    for (int64_t i = 0; i < tile->rows; i++) {
        T *restrict row = scores_of(tile, i);
        RAPT_SIMD for (int64_t c = 0; c < tile->columns; c++) row[c] = cap * TANH(row[c] * inverse);
    }
}

static void differentiate_soft_cap(const rapt_score_tile *tile)
{
    const T inverse = (T)(1 / *(const double *)tile->options);
    for (int64_t i = 0; i < tile->rows; i++) {
        T *restrict gradient = gradient_of(tile, i);
        const T *restrict capped = (const T *)tile->new_scores + i * tile->stride;
        RAPT_SIMD for (int64_t c = 0; c < tile->columns; c++)
        {
            const T t = capped[c] * inverse;
            gradient[c] *= 1 - t * t;
        }
    }
}

/* --- temperature: s' = s / τ, ds = ds' / τ, dτ = −Σ ds' s / τ² --- */

static void head_temperature(const rapt_score_tile *tile)
{
    const T inverse = 1 / number_of_head(tile);
    for (int64_t i = 0; i < tile->rows; i++) {
        T *restrict row = scores_of(tile, i);
        RAPT_SIMD for (int64_t c = 0; c < tile->columns; c++) row[c] *= inverse;
    }
}

static void differentiate_head_temperature(const rapt_score_tile *tile)
{
    const T inverse = 1 / number_of_head(tile);
    for (int64_t i = 0; i < tile->rows; i++) {
        T *restrict gradient = gradient_of(tile, i), sum = 0;
        const T *restrict old = (const T *)tile->old_scores + i * tile->stride;
        _Pragma("omp simd reduction(+ : sum)") for (int64_t c = 0; c < tile->columns; c++)
        {
            gradient[c] *= inverse;
            sum += gradient[c] == 0 ? 0 : gradient[c] * old[c]; /* the score may be −∞ by another modification */
        }
        if (tile->captured_gradients[0]) *tile->captured_gradients[0] -= (double)(sum * inverse);
    }
}

/* --- ALiBi: s' = s − slope · |j − i| --- */

static void alibi(const rapt_score_tile *tile)
{
    const T slope = number_of_head(tile);
    for (int64_t i = 0; i < tile->rows; i++) {
        T *restrict row = scores_of(tile, i);
        const T first = (T)first_position(tile, i);
        RAPT_SIMD for (int32_t c = 0; c < (int32_t)tile->columns; c++)
        {
            const T position = first + (T)c;
            row[c] -= slope * (position < 0 ? -position : position);
        }
    }
}

/* --- Gaussian window: s' = s − ½ (j − i)² / w², dw = Σ ds' (j − i)² / w³ --- */

static void gaussian_window(const rapt_score_tile *tile)
{
    const T inverse = 1 / number_of_head(tile);
    for (int64_t i = 0; i < tile->rows; i++) {
        T *restrict row = scores_of(tile, i);
        const T first = (T)first_position(tile, i);
        RAPT_SIMD for (int32_t c = 0; c < (int32_t)tile->columns; c++)
        {
            const T u = (first + (T)c) * inverse;
            row[c] -= (T)0.5 * u * u;
        }
    }
}

static void differentiate_gaussian_window(const rapt_score_tile *tile)
{
    const T inverse = 1 / number_of_head(tile);
    for (int64_t i = 0; i < tile->rows && tile->captured_gradients[0]; i++) {
        const T *restrict gradient = gradient_of(tile, i), first = (T)first_position(tile, i);
        T sum = 0;
        _Pragma("omp simd reduction(+ : sum)") for (int32_t c = 0; c < (int32_t)tile->columns; c++)
        {
            const T u = (first + (T)c) * inverse;
            sum += gradient[c] * u * u;
        }
        *tile->captured_gradients[0] += (double)(sum * inverse);
    }
}

/* --- a learned number for each relative position, clamped: element reach + (j − i) of a table --- */

/* Columns [0, first) are below −reach, [last, columns) above reach. */
typedef struct clamped {
    int64_t reach, first, last, place; /* place: in the table, of column 0 if it were not clamped */
} clamped;

static clamped clamp_row(const rapt_score_tile *tile, int64_t row)
{
    const int64_t reach = *(const int64_t *)tile->options, position = first_position(tile, row);
    const int64_t first = smaller_of(larger_of(-reach - position, 0), tile->columns);
    const int64_t last = larger_of(smaller_of(reach + 1 - position, tile->columns), first);
    return (clamped){reach, first, last, reach + position};
}

static void learned_bias(const rapt_score_tile *tile)
{
    const T *restrict table = tile->captured[0];
    for (int64_t i = 0; i < tile->rows; i++) {
        T *restrict row = scores_of(tile, i);
        const clamped at = clamp_row(tile, i);
        add_to_row(at.first, table[0], row);
        RAPT_SIMD for (int64_t c = at.first; c < at.last; c++) row[c] += table[at.place + c];
        add_to_row(tile->columns - at.last, table[2 * at.reach], row + at.last);
    }
}

static void differentiate_learned_bias(const rapt_score_tile *tile)
{
    double *restrict table = tile->captured_gradients[0];
    for (int64_t i = 0; i < tile->rows && table; i++) {
        const T *restrict gradient = gradient_of(tile, i);
        const clamped at = clamp_row(tile, i);
        table[0] += sum_of(at.first, gradient);
        RAPT_SIMD for (int64_t c = at.first; c < at.last; c++) table[at.place + c] += (double)gradient[c];
        table[2 * at.reach] += sum_of(tile->columns - at.last, gradient + at.last);
    }
}

/* --- T5's buckets: runs of neighbouring keys that share a number --- */

typedef struct bucket_runs {
    const int64_t *least; /* distance of each bucket of a side */
    int64_t side, columns, position;
    bool bidirectional;
    int64_t next; /* the run to come: those of keys before the query from the farthest on, then the others */
    int64_t bucket, from, to; /* the columns [from, to), perhaps none, are in that bucket */
} bucket_runs;

static bucket_runs begin_runs(const rapt_score_tile *tile, int64_t row)
{
    const rapt_bucket_options *o = tile->options;
    return (bucket_runs){.least = tile->captured[1],
                         .side = o->side,
                         .columns = tile->columns,
                         .position = first_position(tile, row),
                         .bidirectional = o->bidirectional};
}

/* From left to right; false when the row is through. */
static bool next_run(bucket_runs *r)
{
    const int64_t any = INT64_MAX / 2, place = r->next++, after = place - r->side;
    if (r->to >= r->columns) return false;
    int64_t last; /* its last position */
    if (after < 0)
        last = place + 1 < r->side || r->bidirectional ? -r->least[r->side - 1 - place] : any;
    else
        last = after + 1 < r->side ? r->least[after + 1] - 1 : any;
    r->bucket = after < 0 ? r->side - 1 - place : place;
    r->from = r->to;
    r->to = larger_of(smaller_of(last + 1 - r->position, r->columns), r->from);
    return true;
}

static void bucketed_bias(const rapt_score_tile *tile)
{
    const T *table = tile->captured[0];
    for (int64_t i = 0; i < tile->rows; i++)
        for (bucket_runs r = begin_runs(tile, i); next_run(&r);)
            add_to_row(r.to - r.from, table[r.bucket], scores_of(tile, i) + r.from);
}

static void differentiate_bucketed_bias(const rapt_score_tile *tile)
{
    double *table = tile->captured_gradients[0];
    for (int64_t i = 0; i < tile->rows && table; i++)
        for (bucket_runs r = begin_runs(tile, i); next_run(&r);)
            table[r.bucket] += sum_of(r.to - r.from, gradient_of(tile, i) + r.from);
}

/* --- prefix: −∞ where j > i and j ≥ prefix --- */

static void prefix(const rapt_score_tile *tile)
{
    const int64_t prefix_length = *(const int64_t *)tile->captured[0];
    for (int64_t i = 0; i < tile->rows; i++) {
        const int64_t seen = larger_of(prefix_length, tile->queries[i] + 1) - tile->first_key;
        T *row = scores_of(tile, i);
        for (int64_t c = larger_of(seen, 0); c < tile->columns; c++) row[c] = -(T)INFINITY;
    }
}

void RAPT_AT_LEVEL(OF_TYPE(rapt_fill_modification))(rapt_kernels *kernels)
{
    kernels->modification[DTYPE] = (rapt_modification_kernels){
        .soft_cap = {soft_cap, differentiate_soft_cap},
        .head_temperature = {head_temperature, differentiate_head_temperature},
        .alibi = {alibi, NULL},
        .bucketed_bias = {bucketed_bias, differentiate_bucketed_bias},
        .learned_bias = {learned_bias, differentiate_learned_bias},
        .gaussian_window = {gaussian_window, differentiate_gaussian_window},
        .prefix = {prefix, NULL},
    };
}
