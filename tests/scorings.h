/* Every scoring function of the library beside its definition, written as a plain loop over doubles. */
#ifndef RAPT_TESTS_SCORINGS_H
#define RAPT_TESTS_SCORINGS_H

#include "modules.h"

enum { most_parameters = 9, scoring_hidden = 3, scoring_reach = 2 };

/* One score to be defined: query i and key j of the sizes given, and the parameters in the order in which the module
 * has them. */
typedef struct scored_pair {
    const double *query, *key;
    int64_t query_size, key_size, i, j; /* j counted from the place of query 0 */
    const double *parameters[most_parameters];
} scored_pair;

typedef struct scoring_case {
    const char *name;
    rapt_scoring *(*make)(int64_t query_size, int64_t key_size);
    double (*define)(const scored_pair *pair);
    bool one_size;  /* query_size must be key_size */
    bool is_kernel; /* never negative: may be normalised by its sum */
    bool is_flat;   /* its gradient is 0 */
    int parameters;
} scoring_case;

static inline double defined_dot(const scored_pair *p)
{
    double sum = 0;
    for (int64_t c = 0; c < p->query_size && c < p->key_size; c++) sum += p->query[c] * p->key[c];
    return sum;
}

static inline double defined_scaled_dot(const scored_pair *p)
{
    return defined_dot(p) / sqrt(fmax((double)p->query_size, (double)p->key_size));
}

static inline double defined_bilinear(const scored_pair *p)
{
    double sum = 0;
    for (int64_t a = 0; a < p->query_size; a++)
        for (int64_t b = 0; b < p->key_size; b++)
            sum += p->query[a] * p->parameters[0][a * p->key_size + b] * p->key[b];
    return sum;
}

static inline double defined_additive(const scored_pair *p)
{
    const double *for_key = p->parameters[0], *for_query = p->parameters[1], *last = p->parameters[2];
    double sum = 0;
    for (int64_t h = 0; h < scoring_hidden; h++) {
        double inside = 0;
        for (int64_t c = 0; c < p->query_size; c++) inside += for_query[h * p->query_size + c] * p->query[c];
        for (int64_t c = 0; c < p->key_size; c++) inside += for_key[h * p->key_size + c] * p->key[c];
        sum += last[h] * tanh(inside);
    }
    return sum;
}

static inline double defined_length(const double *x, int64_t size)
{
    double sum = 0;
    for (int64_t c = 0; c < size; c++) sum += x[c] * x[c];
    return sqrt(sum);
}

static inline double defined_cosine(const scored_pair *p)
{
    double lengths = defined_length(p->query, p->query_size) * defined_length(p->key, p->key_size);
    return lengths > 0 ? defined_dot(p) / lengths / (p->parameters[0] ? *p->parameters[0] : 0.5) : 0;
}

/* ‖q − k‖ / width; the width is the parameter, or the one given */
static inline double defined_distance(const scored_pair *p, double width)
{
    double sum = 0;
    for (int64_t c = 0; c < p->query_size; c++) sum += pow(p->query[c] - p->key[c], 2);
    return sqrt(sum) / (p->parameters[0] ? *p->parameters[0] : width);
}

static inline double defined_log_gaussian(const scored_pair *p)
{
    return -0.5 * pow(defined_distance(p, 1.5), 2);
}

static inline double defined_gaussian(const scored_pair *p)
{
    return exp(defined_log_gaussian(p));
}

static inline double defined_boxcar(const scored_pair *p)
{
    return defined_distance(p, 2) < 1;
}

static inline double defined_constant(const scored_pair *p)
{
    (void)p;
    return 1;
}

static inline double defined_epanechnikov(const scored_pair *p)
{
    return fmax(0, 1 - defined_distance(p, 2.5));
}

/* (qᵀk + qᵀr) / √d, r for j − i */
static inline double defined_relative(const scored_pair *p)
{
    int64_t position = p->j - p->i;
    int64_t row = scoring_reach + (position < -scoring_reach  ? -scoring_reach
                                   : position > scoring_reach ? scoring_reach
                                                              : position);
    double sum = defined_dot(p);
    for (int64_t c = 0; c < p->query_size; c++) sum += p->query[c] * p->parameters[0][row * p->query_size + c];
    return sum / sqrt((double)p->query_size);
}

#define MAKE_SCORING(name, call)                                                                                       \
    static inline rapt_scoring *make_##name(int64_t query_size, int64_t key_size)                                      \
    {                                                                                                                  \
        (void)query_size, (void)key_size;                                                                              \
        return call;                                                                                                   \
    }
MAKE_SCORING(dot, rapt_dot_product_scoring_new())
MAKE_SCORING(scaled_dot, rapt_scaled_dot_product_scoring_new())
MAKE_SCORING(padded_dot, rapt_padded_dot_product_scoring_new())
MAKE_SCORING(bilinear, rapt_bilinear_scoring_new(query_size, key_size))
MAKE_SCORING(additive, rapt_additive_scoring_new(query_size, key_size, scoring_hidden))
MAKE_SCORING(cosine, rapt_cosine_scoring_new(0.5, false))
MAKE_SCORING(learned_cosine, rapt_cosine_scoring_new(0.7, true))
MAKE_SCORING(log_gaussian, rapt_gaussian_scoring_new(1.5, false))
MAKE_SCORING(learned_log_gaussian, rapt_gaussian_scoring_new(0.8, true))
MAKE_SCORING(gaussian, rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_GAUSSIAN, 1.5, false))
MAKE_SCORING(boxcar, rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_BOXCAR, 2, false))
MAKE_SCORING(constant, rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_CONSTANT, 1, false))
MAKE_SCORING(epanechnikov, rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_EPANECHNIKOV, 2.5, false))
MAKE_SCORING(learned_gaussian, rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_GAUSSIAN, 2, true))
MAKE_SCORING(learned_epanechnikov, rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_EPANECHNIKOV, 4, true))
MAKE_SCORING(relative, rapt_relative_scoring_new(query_size, 0, scoring_reach))
#undef MAKE_SCORING

static const scoring_case scoring_cases[] = {
    /* one_size, is_kernel, is_flat, parameters */
    {"dot", make_dot, defined_dot, true, false, false, 0},
    {"scaled dot", make_scaled_dot, defined_scaled_dot, true, false, false, 0},
    {"padded dot", make_padded_dot, defined_scaled_dot, false, false, false, 0},
    {"bilinear", make_bilinear, defined_bilinear, false, false, false, 1},
    {"additive", make_additive, defined_additive, false, false, false, 3},
    {"cosine", make_cosine, defined_cosine, true, false, false, 0},
    {"cosine, learned", make_learned_cosine, defined_cosine, true, false, false, 1},
    {"log Gaussian", make_log_gaussian, defined_log_gaussian, true, false, false, 0},
    {"log Gaussian, learned", make_learned_log_gaussian, defined_log_gaussian, true, false, false, 1},
    {"Gaussian", make_gaussian, defined_gaussian, true, true, false, 0},
    {"boxcar", make_boxcar, defined_boxcar, true, true, true, 0},
    {"constant", make_constant, defined_constant, true, true, true, 0},
    {"Epanechnikov", make_epanechnikov, defined_epanechnikov, true, true, false, 0},
    {"Gaussian, learned", make_learned_gaussian, defined_gaussian, true, true, false, 1},
    {"Epanechnikov, learned", make_learned_epanechnikov, defined_epanechnikov, true, true, false, 1},
    {"relative", make_relative, defined_relative, true, false, false, 1},
};

enum { scoring_case_count = sizeof scoring_cases / sizeof *scoring_cases };

/* The parameters in the module's order. */
typedef struct parameter_list {
    rapt_tensor *tensors[most_parameters];
    int count;
} parameter_list;

static bool add_to_list(const char *name, rapt_tensor *tensor, void *context)
{
    parameter_list *list = context;
    cr_assert_lt(list->count, most_parameters, "%s is one too many", name);
    list->tensors[list->count++] = tensor;
    return true;
}

static inline parameter_list parameters_of(const void *module)
{
    parameter_list list = {.count = 0};
    cr_assert(rapt_module_visit(module, RAPT_PARAMETERS, add_to_list, &list));
    return list;
}

/* A scoring function of the case in that dtype. */
static inline rapt_scoring *scoring_of(const scoring_case *c, int64_t query_size, int64_t key_size, rapt_dtype dtype)
{
    rapt_scoring *scoring = c->make(query_size, key_size);
    cr_assert(scoring && rapt_module_cast(&scoring->module, dtype), "%s: %s", c->name, rapt_error());
    return scoring;
}

#endif
