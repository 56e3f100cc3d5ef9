/* Every elementwise op of the table, and its gradient, gives a number the same bits wherever it stands: in pieces of
 * any length from any place on, with gaps, turned round, in a transposed matrix, and repeated by steps of 0. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "ops.h"

enum { height = 8, width = 12, length = height * width, most_starts = 16, longest_piece = 34 };
enum { cotangent = most_inputs, operands, value = most_inputs, results };

/* An op with what a sample has beside its shapes, and `length` numbers for each operand. */
typedef struct subject {
    const op_row *row;
    const op_sample *sample;
    rapt_dtype dtype;
    int count; /* of inputs */
    rapt_tensor *whole[operands];
} subject;

/* --- numbers --- */

/* splitmix64 (Steele et al. 2014) */
static double uniform(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* With all the digits that the dtype has: what is rounded twice shows in the last. */
static double draw(op_domain domain, uint64_t *state)
{
    const double u = uniform(state), size = exp(8 * uniform(state) - 5), sign = uniform(state) < 0.5 ? -1 : 1;
    switch (domain) {
    case positive:
        return size;
    case probability:
        return u;
    case small:
        return 1.2 * u - 0.6;
    case boolean:
        return u < 0.5;
    default:
        return sign * size;
    }
}

static rapt_tensor *draw_all(op_domain domain, rapt_dtype dtype, uint64_t seed)
{
    double numbers[length];
    for (int i = 0; i < length; i++) numbers[i] = draw(domain, &seed);
    return rapt_cast(rapt_from(RAPT_FLOAT64, RAPT_SHAPE(length), numbers), domain == boolean ? RAPT_BOOL : dtype);
}

static subject subject_of(const op_row *row, const op_sample *sample, rapt_dtype dtype)
{
    subject s = {.row = row, .sample = sample, .dtype = dtype};
    for (; s.count < most_inputs && sample->in[s.count].state != no_input; s.count++)
        if (sample->in[s.count].state == given)
            s.whole[s.count] = draw_all(row->domain[s.count], dtype, (uint64_t)s.count + 1);
    s.whole[cotangent] = draw_all(any_value, dtype, 1000);
    return s;
}

/* --- runs --- */

/* The result, and the gradients of the differentiable inputs unless the last operand is NULL. False where the sample
 * sums its results up, or after an error. */
static bool run(const subject *s, rapt_tensor *const *in, rapt_tensor **found)
{
    rapt_tensor *leaves[most_inputs], *wanted[most_inputs], *gradients[most_inputs];
    int which[most_inputs], count = 0;
    for (int i = 0; i < s->count; i++) {
        leaves[i] = in[i] ? rapt_detach(in[i]) : NULL;
        found[i] = NULL;
        if (!in[i] || !(s->row->differentiable >> i & 1) || !in[cotangent]) continue;
        which[count] = i;
        wanted[count++] = rapt_require_gradient(leaves[i]);
    }
    rapt_tensor *y = found[value] = s->row->call(leaves, s->sample);
    cr_assert(y, "%s: %s", s->row->name, rapt_error());
    if (rapt_count(y) != length && rapt_rank(y) == 0) return false;
    if (count == 0 || !rapt_dtype_is_floating(rapt_get_dtype(y))) return true;
    rapt_tensor *g = rapt_get_dtype(y) == s->dtype ? in[cotangent] : rapt_cast(in[cotangent], rapt_get_dtype(y));
    cr_assert(rapt_gradients(1, &y, &g, count, wanted, gradients, 0), "%s: %s", s->row->name, rapt_error());
    for (int i = 0; i < count; i++) found[which[i]] = gradients[i];
    return true;
}

static bool is_nan(const char *number, rapt_dtype dtype)
{
    float x;
    double y;
    if (dtype == RAPT_FLOAT32) return memcpy(&x, number, sizeof x), isnan(x);
    if (dtype == RAPT_FLOAT64) return memcpy(&y, number, sizeof y), isnan(y);
    return false;
}

/* The first of the numbers that has other bits than its counterpart from number `first` on, or −1. */
static int64_t first_other(rapt_tensor *got, rapt_tensor *expected, int64_t first)
{
    const rapt_dtype dtype = rapt_get_dtype(got);
    const size_t size = rapt_dtype_size(dtype);
    const char *a = rapt_data(rapt_contiguous(got)), *b = rapt_data(rapt_contiguous(expected));
    b += (size_t)first * size;
    for (int64_t i = 0; i < rapt_count(got); i++, a += size, b += size)
        if (memcmp(a, b, size) != 0 && !(is_nan(a, dtype) && is_nan(b, dtype))) return i;
    return -1;
}

static void expect_same(const subject *s, rapt_tensor *const *got, rapt_tensor *const *expected, int64_t first,
                        const char *how, int detail, unsigned which)
{
    for (int k = 0; k < results; k++) {
        if (k != value && (k >= s->count || !expected[k])) continue;
        const int64_t at = first_other(got[k], expected[k], first);
        cr_expect(at < 0, "%s (sample %d) of %s: %s %d has other bits at %d %s %d, operands %#x", s->row->name,
                  (int)(s->sample - s->row->samples), rapt_dtype_name(s->dtype), k == value ? "the result" : "gradient",
                  k == value ? 0 : k, (int)at, how, detail, which);
    }
}

/* The numbers of some of the operands somewhere else, and the others as they are. */
typedef rapt_tensor *arrangement(rapt_tensor *x, int detail);

static void arrange(const subject *s, rapt_tensor *const *from, unsigned which, arrangement *place, int detail,
                    rapt_tensor **to)
{
    for (int k = 0; k < operands; k++) {
        const bool there = k < s->count || k == cotangent;
        to[k] = there && from[k] && which >> k & 1 ? place(from[k], detail) : there ? from[k] : NULL;
    }
}

/* --- places --- */

static rapt_tensor *unset(const rapt_tensor *x, int rank, const int64_t *shape)
{
    const rapt_dtype dtype = rapt_get_dtype(x);
    return rapt_full(dtype, rank, shape, rapt_dtype_is_floating(dtype) ? NAN : 0);
}

static rapt_tensor *with_gaps(rapt_tensor *x, int step)
{
    rapt_tensor *all = unset(x, RAPT_SHAPE(rapt_count(x) * step));
    rapt_tensor *view = rapt_reshape(rapt_slice(all, 0, step - 1, INT64_MAX, step), rapt_rank(x), rapt_shape(x));
    rapt_copy(view, x);
    return view;
}

static rapt_tensor *transposed_place(rapt_tensor *x, int unused)
{
    (void)unused;
    rapt_tensor *view = rapt_transpose(unset(x, RAPT_SHAPE(width, height)), 0, 1);
    rapt_copy(view, x);
    return view;
}

static rapt_tensor *in_rows(rapt_tensor *x, int unused)
{
    (void)unused;
    return rapt_reshape(x, RAPT_SHAPE(height, width));
}

static rapt_tensor *turned(rapt_tensor *x, int unused)
{
    (void)unused;
    return rapt_flip(x, 1, (const int[]){0});
}

/* One number, one row or one column for all */
static rapt_tensor *repeated(rapt_tensor *x, int what)
{
    if (what > 0) x = rapt_slice(x, 0, 0, 1, 1);
    if (what != 1) x = rapt_slice(x, 1, 0, 1, 1);
    return rapt_expand(x, RAPT_SHAPE(height, width));
}

static rapt_tensor *written_out(rapt_tensor *x, int unused)
{
    (void)unused;
    return rapt_clone(x);
}

static void try_pieces(const subject *s, rapt_tensor *const *expected)
{
    for (int64_t start = 1; start <= most_starts; start++)
        for (int64_t stop = start + 1; stop <= start + longest_piece; stop++) {
            RAPT_SCOPE;
            rapt_tensor *in[operands] = {0}, *got[results];
            for (int k = 0; k < operands; k++)
                if (s->whole[k]) in[k] = rapt_slice(s->whole[k], 0, start, stop, 1);
            run(s, in, got);
            expect_same(s, got, expected, start, "in a piece that ends before", (int)stop, 0);
        }
}

static void try_other_places(const subject *s, rapt_tensor *const *expected)
{
    rapt_tensor *rows[operands], *in[operands], *got[results], *turned_round[operands], *right[results];
    arrange(s, s->whole, ~0u, turned, 0, turned_round);
    run(s, turned_round, got);
    for (int k = 0; k < results; k++)
        right[k] = k == value || (k < s->count && expected[k]) ? turned(expected[k], 0) : NULL;
    expect_same(s, got, right, 0, "turned round", 0, ~0u);
    arrange(s, s->whole, ~0u, in_rows, 0, rows);
    for (unsigned which = 1; which < 1u << operands; which++) {
        RAPT_SCOPE;
        if (which >> s->count & ((1u << (most_inputs - s->count)) - 1)) continue; /* of no operand */
        for (int step = 2; step < 4; step++) {
            arrange(s, s->whole, which, with_gaps, step, in);
            run(s, in, got);
            expect_same(s, got, expected, 0, "with gaps, step", step, which);
        }
        arrange(s, rows, which, transposed_place, 0, in);
        run(s, in, got);
        expect_same(s, got, expected, 0, "transposed", 0, which);
    }
}

static void try_repeated(const subject *s)
{
    rapt_tensor *rows[operands], *in[operands], *dense_in[operands], *got[results], *expected[results];
    arrange(s, s->whole, ~0u, in_rows, 0, rows);
    for (unsigned which = 1; which < 1u << operands; which++) {
        if (which >> s->count & ((1u << (most_inputs - s->count)) - 1)) continue;
        for (int what = 0; what < 3; what++) {
            RAPT_SCOPE;
            arrange(s, rows, which, repeated, what, in);
            arrange(s, in, which, written_out, 0, dense_in);
            run(s, in, got);
            run(s, dense_in, expected);
            expect_same(s, got, expected, 0,
                        what == 0   ? "with a column"
                        : what == 1 ? "with a row"
                                    : "with a number",
                        what, which);
        }
    }
}

/* Each sample whose results are not summed up; what it has beside shapes may be a number or bounds. */
Test(places, elementwise_ops_give_the_same_bits_anywhere)
{
    rapt_set_threads(1);
    EACH_OP(row)
    {
        bool tried = !row->element && !row->is_elementwise;
        for (int i = 0; i < row->sample_count && (row->element || row->is_elementwise); i++)
            for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
                RAPT_SCOPE;
                if (!(op_dtypes(row) >> dtype & 1)) {
                    tried = true;
                    continue;
                }
                const subject s = subject_of(row, &row->samples[i], dtype);
                rapt_tensor *expected[results];
                if (!run(&s, s.whole, expected)) continue;
                tried = true;
                try_pieces(&s, expected);
                try_other_places(&s, expected);
                try_repeated(&s);
            }
        cr_expect(tried, "%s has no sample that gives all its results", row->name);
    }
}
