/* The op table: every op with sample inputs and what it should compute. The generic tests walk it. */
#ifndef RAPT_TESTS_OPS_H
#define RAPT_TESTS_OPS_H

#include "array.h"

enum { most_inputs = 7 };

/* What the elements of an input may be. Values are at least 0.02 from the kinks at multiples of 0.1 ± 0.05 and from
 * each other, so that differences see a smooth function. */
typedef enum op_domain {
    any_value,   /* about −3 to 3, not 0; even inputs end in 3 hundredths, odd ones in 8 */
    positive,    /* from 0.4 up */
    nonzero,     /* likewise, of either sign */
    probability, /* inside 0 to 1 */
    small,       /* inside −0.6 to 0.6 */
    boolean,
    index64, /* 0 … sample.limit − 1 */
    index32,
    length64, /* 0 … sample.limit */
} op_domain;

typedef struct op_shape {
    enum { no_input, given, absent } state; /* absent: an optional input that is NULL */
    int rank;
    int64_t shape[5];
} op_shape;

#define SHAPE(...)                                                                                                     \
    {                                                                                                                  \
        given, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                                                     \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
#define SCALAR                                                                                                         \
    {                                                                                                                  \
        given, 0,                                                                                                      \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }
#define ABSENT                                                                                                         \
    {                                                                                                                  \
        absent, 0,                                                                                                     \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }

/* Shapes of the inputs and what else the op takes, as it needs it. */
typedef struct op_sample {
    op_shape in[most_inputs];
    int axis, axis_count, axes[5];
    bool keep;
    int64_t number[5]; /* a shape, bounds, sizes, classes, … */
    int number_count;
    double real[2];
    int64_t limit; /* of indices */
    int variant;
    rapt_error_code error; /* of a sample that must fail */
    bool large;            /* enough work to be cut into pieces: for the thread test, not for gradcheck */
} op_sample;

typedef rapt_tensor *op_call(rapt_tensor *const *inputs, const op_sample *sample);

typedef struct op_row {
    const char *name;  /* of the function, without rapt_ */
    const char *error; /* what errors call the op; NULL: as the function is named */
    op_call *call;
    double (*element)(const double *x, const op_sample *sample);      /* reference of an elementwise op, or */
    array (*reference)(const array *inputs, const op_sample *sample); /* of any other */
    op_domain domain[most_inputs];
    unsigned differentiable; /* bit i: input i */
    unsigned optional;       /* bit i: input i may be NULL */
    unsigned dtypes;         /* bits of those that inputs without a fixed dtype may have; 0: floating ones */
    rapt_dtype (*result)(rapt_dtype dtype, const op_sample *sample); /* dtype of the result; NULL: the inputs' */
    bool is_elementwise;      /* though a reference tells of it: losses of pairs where they are not summed up */
    bool is_view;             /* nothing to be cut into pieces: no large sample needed */
    bool is_combined;         /* the call uses other ops too, which may be the ones that errors name */
    const op_sample *samples; /* that work, */
    int sample_count;
    const op_sample *failures; /* and that must give sample.error */
    int failure_count;
} op_row;

#define SAMPLES(array_name) .samples = array_name, .sample_count = (int)(sizeof array_name / sizeof *array_name)
#define FAILURES(array_name) .failures = array_name, .failure_count = (int)(sizeof array_name / sizeof *array_name)

enum {
    floating_dtypes = 1u << RAPT_FLOAT32 | 1u << RAPT_FLOAT64,
    number_dtypes = floating_dtypes | 1u << RAPT_INT64 | 1u << RAPT_INT32 | 1u << RAPT_UINT8,
    all_dtypes = number_dtypes | 1u << RAPT_BOOL,
    bool_dtype = 1u << RAPT_BOOL,
    every_input = (1u << most_inputs) - 1,
};

/* What rapt_dtype results are. */
rapt_dtype result_bool(rapt_dtype dtype, const op_sample *sample);
rapt_dtype result_int64(rapt_dtype dtype, const op_sample *sample);

/* One family of rows. */
typedef struct op_family {
    const op_row *rows;
    int count;
} op_family;
extern const op_family ops_arithmetic, ops_unary, ops_compare, ops_reduce, ops_matrix, ops_view, ops_join, ops_index,
    ops_normalize, ops_loss, ops_sequence, ops_packing, ops_scan, ops_einsum, ops_image;

/* The table: row i, NULL after the last. */
const op_row *op_at(int i);
#define EACH_OP(row)                                                                                                   \
    for (int row##_at = 0; row##_at >= 0; row##_at = -1)                                                               \
        for (const op_row *row; (row = op_at(row##_at)); row##_at++)

/* The dtypes that a row allows, and the widest of them, which the tests take that need only one. */
unsigned op_dtypes(const op_row *row);
rapt_dtype op_dtype(const op_row *row);

/* How the elements of an input lie in memory. */
typedef enum op_layout { dense, transposed, stepped, offset, expanded, layout_count } op_layout;

/* A tensor of that dtype and layout with the array's numbers; expanded: with those of its first row in all rows. */
rapt_tensor *op_lay_out(const array *a, rapt_dtype dtype, op_layout layout);

/* Inputs made for one sample. `arrays` hold the same numbers, which float32 holds exactly. */
typedef struct op_case {
    const op_row *row;
    const op_sample *sample;
    int count;
    rapt_tensor *inputs[most_inputs];
    array arrays[most_inputs];
    char name[192]; /* "add of [2, 3], [3]" */
} op_case;

/* Tensors of the innermost scope. With `gradient`, the differentiable ones are leaves. Freed by op_case_free. */
op_case op_case_new(const op_row *row, const op_sample *sample, rapt_dtype dtype, op_layout layout, bool gradient);
/* The same with other numbers for each draw; op_case_new is draw 0. */
op_case op_case_draw(const op_row *row, const op_sample *sample, rapt_dtype dtype, op_layout layout, bool gradient,
                     int draw);
void op_case_free(op_case *c);

rapt_tensor *op_case_call(const op_case *c);
bool op_case_differentiable(const op_case *c, int input);

/* What the op should give, by the row's reference, wrapped as integers of the dtype wrap. */
array op_case_reference(const op_case *c, rapt_dtype result);
rapt_dtype op_case_result(const op_case *c, rapt_dtype dtype);

/* d <random cotangent, op(inputs)> / d inputs into gradients (NULL for those that require none). The cotangent depends
 * on the shape only. False after an error. */
bool op_case_gradients(const op_case *c, rapt_tensor **gradients);

/* The largest magnitude of the elements; 0.1 at least: results of cancellation are no better than this allows. */
double array_largest(const array *a);

/* The largest |got − expected| / (|expected| + slack); infinite where shapes differ or one alone is NaN. */
double array_error(const array *got, const array *expected, double slack);

/* The place where two arrays differ: −1 where nowhere, −2 where their shapes do. Allowed is relative · (the number's
 * size + slack · the size of the largest); 0 demands equal ones. */
int64_t array_differs(const array *got, const array *expected, double relative, double slack);

/* How far the op may be from its reference, as array_differs takes it; the result is of floating inputs. */
double op_tolerance(const op_row *row, rapt_dtype dtype);
double op_slack(const op_row *row);

/* What errors call the op. */
const char *op_error_name(const op_row *row);

/* All input on which ops of the table must fail with that code: their bad samples, wrong and mixed dtypes, indices that
 * are no integers, NULL; NULL alone; and in the debugging mode inputs whose scope has ended, one at a time. */
typedef void op_visit(const op_case *c, rapt_error_code code, const char *what);
void op_each_bad_input(op_visit *visit);
void op_each_null(op_visit *visit);
void op_each_gone(op_visit *visit);

/* How an op of two tensors is called, and its formula on the elements x[0] and x[1]. */
#define BINARY(name, formula)                                                                                          \
    static rapt_tensor *call_##name(rapt_tensor *const *in, const op_sample *s)                                        \
    {                                                                                                                  \
        (void)s;                                                                                                       \
        return rapt_##name(in[0], in[1]);                                                                              \
    }                                                                                                                  \
    static double value_##name(const double *x, const op_sample *s)                                                    \
    {                                                                                                                  \
        (void)s;                                                                                                       \
        return formula;                                                                                                \
    }

#endif
