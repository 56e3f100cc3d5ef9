/* The catalogue of ops: the cases that are made of each sample of their rows. */
#include <math.h>
#include <string.h>

#include "catalogue.h"

/* Numbers drawn for each sample. */
enum { draws = 2 };

/* The result against the row's reference. */
static void check_values(const subject *s, rapt_dtype dtype, entry *e)
{
    RAPT_SCOPE;
    const op_row *row = s->c.row;
    const rapt_dtype result = op_case_result(&s->c, dtype);
    rapt_tensor *y = subject_call(s);
    if (!y || rapt_get_dtype(y) != result) {
        entry_fail(e, "%s: %s", s->c.name, y ? "a result of another dtype" : rapt_error());
        rapt_clear_error();
        return;
    }
    array got = array_read(y), expected = op_case_reference(&s->c, result);
    const double tolerance = op_tolerance(row, dtype),
                 error = array_error(&got, &expected, op_slack(row) * array_largest(&expected));
    if (!(error <= tolerance))
        entry_fail(e, "%s, %s: off by %.3g of its size, %.3g allowed", s->c.name, rapt_dtype_name(dtype), error,
                   tolerance);
    if (dtype == RAPT_FLOAT64) entry_note(e, of_values, error);
    array_free(&got);
    array_free(&expected);
}

/* Of the some ten thousand numbers of a large sample a few lie within a step of a kink of these, or are closer to each
 * other than a step: differences say nothing then. */
static bool has_kinks(const op_row *row, const op_sample *sample)
{
    static const char *const names[] =
        {"abs",     "affine_activation", "ceil", "clamp",      "elu",     "entmax15",       "floor",     "huber_loss",
         "l1_loss", "leaky_relu",        "max",  "max_pool1d", "maximum", "maximum_scalar", "min",       "max_pool2d",
         "minimum", "minimum_scalar",    "relu", "round",      "sign",    "sort",           "sparsemax", "topk"};
    for (size_t i = 0; i < sizeof names / sizeof *names && sample->large; i++)
        if (strcmp(names[i], row->name) == 0) return true;
    return false;
}

/* A row of equal elements is divided by √ε, a small number, after all its digits are lost. */
static bool is_beyond_float32(const op_row *row, int way)
{
    return way == expanded && strcmp(row->name, "layer_normalize") == 0;
}

/* One case in one dtype; in float32 it is compared with the same in float64. */
static void check_case(const op_row *row, const op_sample *sample, rapt_dtype dtype, int way, int draw, entry *e)
{
    RAPT_SCOPE;
    subject s = subject_of_op(row, sample, dtype, way, draw);
    check_values(&s, dtype, e);
    e->tried++;
    if (s.count && dtype == RAPT_FLOAT64 && !has_kinks(row, sample)) check_derivatives(&s, !sample->large, e);
    if (s.count && dtype == RAPT_FLOAT32 && !is_beyond_float32(row, way)) {
        subject twice = subject_of_op(row, sample, RAPT_FLOAT64, way, draw);
        check_float32(&s, &twice, e);
        subject_free(&twice);
    }
    subject_free(&s);
}

static void check_sample(const op_row *row, const op_sample *sample, bool brief, entry *e)
{
    for (int way = dense; way < way_count; way++) {
        if (!sample_has_way(sample, way) || (sample->large && way != dense)) continue;
        for (int draw = 0; draw < (sample->large ? 1 : draws); draw++)
            for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_BOOL; dtype++) {
                if (!(op_dtypes(row) >> dtype & 1)) continue;
                e->cases++;
                if (!brief || (!sample->large && draw == 0)) check_case(row, sample, dtype, way, draw, e);
            }
    }
}

entry catalogue_op(const char *name, bool brief)
{
    entry e = entry_new(name);
    EACH_OP(row)
    for (int i = 0; strcmp(row->name, name) == 0 && i < row->sample_count; i++)
        check_sample(row, &row->samples[i], brief, &e);
    return e;
}
