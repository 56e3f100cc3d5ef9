/* Numbers that are not ordinary (NaN, infinities, zeros, the largest, a subnormal one): every op and its derivatives
 * against what PyTorch gives, from the fixture that parity/special.py writes. What differs on purpose stands in a
 * table. */
#include "expect.h"
#include "special_functions.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#include <rapt.h>

/* Where rapt gives something else than PyTorch, and why. x: the numbers that the element comes from, the largest of the
 * dtype as ±1e99. */
typedef struct difference {
    const char *functions, *results; /* "y g0": values and gradients to the first input */
    bool (*is_here)(const double *x, double mine, double theirs);
    const char *why;
} difference;

static bool has_largest(const double *x)
{
    return fabs(x[0]) == 1e99 || fabs(x[1]) == 1e99 || fabs(x[2]) == 1e99;
}

static bool no_overflow(const double *x, double mine, double theirs)
{
    return has_largest(x) && isfinite(mine) && !isfinite(theirs);
}

static bool no_zero(const double *x, double mine, double theirs)
{
    return has_largest(x) && isfinite(mine) && theirs == 0;
}

static bool sum_overflows(const double *x, double mine, double theirs)
{
    (void)theirs;
    return has_largest(x) && isinf(mine);
}

static bool lost_digits(const double *x, double mine, double theirs)
{
    return has_largest(x) && isfinite(mine) && isfinite(theirs);
}

static bool has_infinite(const double *x, double mine, double theirs)
{
    (void)mine, (void)theirs;
    return isinf(x[0]) || isinf(x[1]) || isinf(x[2]);
}

static bool below_all(const double *x, double mine, double theirs)
{
    (void)theirs;
    return x[0] == -(double)INFINITY && mine == 0;
}

static bool first_is_infinite(const double *x, double mine, double theirs)
{
    (void)theirs;
    return isinf(x[0]) && isinf(mine);
}

static bool first_is_below_all(const double *x, double mine, double theirs)
{
    (void)theirs;
    return x[0] == -(double)INFINITY && !isnan(mine);
}

static bool negative_zero(const double *x, double mine, double theirs)
{
    return x[0] == 0 && signbit(x[0]) && fabs(mine) == fabs(theirs);
}

static bool first_is_zero(const double *x, double mine, double theirs)
{
    (void)mine, (void)theirs;
    return x[0] == 0;
}

static bool second_is_zero(const double *x, double mine, double theirs)
{
    (void)theirs;
    return x[1] == 0 && mine == 0;
}

static bool either_is_zero(const double *x, double mine, double theirs)
{
    (void)mine, (void)theirs;
    return x[0] == 0 || x[1] == 0;
}

static bool theirs_is_nan(const double *x, double mine, double theirs)
{
    (void)x, (void)mine;
    return isnan(theirs);
}

static bool not_ordinary(const double *x, double mine, double theirs)
{
    (void)mine, (void)theirs;
    return has_largest(x) || !isfinite(x[0]) || !isfinite(x[1]) || !isfinite(x[2]);
}

static bool zero_for_nan(const double *x, double mine, double theirs)
{
    (void)x;
    return mine == 0 && isnan(theirs);
}

static bool first_is_nan(const double *x, double mine, double theirs)
{
    (void)theirs;
    return isnan(x[0]) && isnan(mine);
}

#ifdef _WIN32
static bool of_largest(const double *x, double mine, double theirs)
{
    (void)mine, (void)theirs;
    return has_largest(x);
}
#endif

static const difference differences[] = {
    {"sum mean var std norm_2 norm_3 norm_-1 layer_normalize rms_normalize cross_entropy_smoothed bce_with_logits "
     "kl_div gelu "
     "gelu_tanh pow silu mish",
     "y g0 g1 h00 h11", no_overflow, "PyTorch overflows on the way to a number"},
    {"rms_normalize bce_with_logits std norm_2 norm_3", "y g0", no_zero,
     "1 / a square that overflows, or all digits lost in PyTorch"},
    {"var std", "y g0", sum_overflows,
     "the result overflows, or the sum of float64 numbers does; other infinities and NaN in PyTorch"},
    {"var logsumexp", "g0 h00", lost_digits,
     "sums and means of the largest are rounded; PyTorch's shares do not sum to 1"},
    {"logsumexp", "g0 h00", below_all, "the gradient where all is -inf is 0, NaN in PyTorch"},
    {"logsumexp", "h00", has_infinite, "no second derivative there, NaN in PyTorch"},
    {"bce_with_logits", "y", first_is_infinite, "-inf and a target above 0 lose inf, NaN in PyTorch"},
    {"kl_div", "y g1 h10 h11", second_is_zero, "a target of 0 counts for nothing, whatever the input"},
    {"kl_div", "y g1 h11", theirs_is_nan, "infinite targets, and overflow that PyTorch subtracts from itself"},
    {"cumprod", "g0", not_ordinary, "PyTorch divides by the elements"},
    {"prod cumprod norm_0.5 norm_3 norm_-1", "h00", not_ordinary, "PyTorch multiplies or divides otherwise"},
    {"norm_0.5 norm_2 norm_-1", "g0 h00", zero_for_nan, "at 0 the gradient is 0 and stays it"},
    {"norm_inf norm_-inf", "g0", first_is_nan,
     "a norm that is NaN has gradient NaN; in PyTorch the elements that are NaN alone"},
    {"log1p", "y", no_overflow, "infinite in PyTorch's float64"},
    {"elu", "y", negative_zero, "0 in PyTorch"},
    {"elu", "h00", first_is_zero, "the second derivative from below, as the first one is"},
    {"gelu", "y", first_is_infinite, "NaN in PyTorch's float32 alone"},
    {"huber_loss", "y", negative_zero, "0 times -0"},
    {"pow_scalar_0.5", "y g0", first_is_below_all, "C's pow of -inf is inf, PyTorch takes the root of it"},
    {"pow_scalar_0.5", "y g0", negative_zero, "likewise of -0"},
    {"pow_scalar_2.5", "h00", first_is_below_all, "likewise"},
    {"pow", "h00 h01 h10 h11", either_is_zero, "second derivatives where the first is one-sided or constant"},
#ifdef _WIN32
    {"sin cos", "y g0 h00", of_largest, "MinGW's sine and cosine of such doubles have no digits"},
#endif
};

enum { difference_count = sizeof differences / sizeof *differences, most_names = 16 };
static bool seen[difference_count];

static bool is_listed(const char *names, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = strstr(names, name); at; at = strstr(at + 1, name))
        if ((at == names || at[-1] == ' ') && (at[length] == ' ' || at[length] == 0)) return true;
    return false;
}

static bool differs_on_purpose(const function *f, const char *result, const double *x, double mine, double theirs)
{
    for (int i = 0; i < difference_count; i++) {
        const difference *d = &differences[i];
        if (!is_listed(d->functions, f->name) || !is_listed(d->results, result) || !d->is_here(x, mine, theirs))
            continue;
        seen[i] = true;
        return true;
    }
    return false;
}

/* Is a, what rapt gives, as good as b? Digits are the business of other tests; the sign of a zero is checked in
 * values. */
static bool agree(double a, double b, rapt_dtype dtype, bool signs)
{
    const double relative = dtype == RAPT_FLOAT32 ? 1e-4 : 1e-9, absolute = dtype == RAPT_FLOAT32 ? 4e-6 : 1e-14;
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    if (a == b) return !signs || a != 0 || !signbit(a) == !signbit(b);
    return fabs(a - b) <= relative * fmax(fabs(a), fabs(b)) + absolute && isfinite(a - b);
}

/* What the element of a result comes from: count numbers, the largest as ±1e99. */
static void origin(const rapt_tensor *const *inputs, input_kind of, int64_t element, int64_t count, double *x)
{
    const double largest = rapt_get_dtype(inputs[0]) == RAPT_FLOAT32 ? (double)FLT_MAX : DBL_MAX;
    const int64_t number = of == rows ? element / (count / rapt_size(inputs[0], 0)) : element;
    for (int i = 0; i < (of == one ? 1 : of == two ? 2 : 3); i++) {
        x[i] = of == rows ? rapt_at(inputs[0], (int64_t[]){number, i}) : rapt_at(inputs[i], &number);
        if (fabs(x[i]) == largest) x[i] = copysign(1e99, x[i]);
    }
}

typedef struct run {
    const function *f;
    rapt_dtype dtype;
    const rapt_archive *fixture;
    rapt_tensor *inputs[2];
} run;

static rapt_tensor *find(const run *r, const char *result)
{
    char name[128];
    snprintf(name, sizeof name, "%s/%s/%s", r->f->name, rapt_dtype_name(r->dtype), result);
    return rapt_archive_find(r->fixture, name);
}

/* A gradient that is not there is 0. */
static void compare(const run *r, const char *result, rapt_tensor *got)
{
    rapt_tensor *wanted = find(r, result);
    if (!wanted && !got) return;
    if (!got) got = rapt_zeros_like(wanted);
    if (!wanted) wanted = rapt_zeros_like(got);
    cr_assert(rapt_same_shape(got, wanted), "%s of %s: another shape", result, r->f->name);
    const rapt_tensor *a = rapt_contiguous(rapt_cast(rapt_detach(got), RAPT_FLOAT64)),
                      *b = rapt_contiguous(rapt_cast(wanted, RAPT_FLOAT64));
    const double *mine = rapt_data(a), *theirs = rapt_data(b);
    for (int64_t i = 0; i < rapt_count(a); i++) {
        double x[3] = {0, 0, 0};
        if (agree(mine[i], theirs[i], r->dtype, r->f->of != rows && strcmp(result, "y") == 0)) continue;
        origin((const rapt_tensor *const *)r->inputs, r->f->of, i, rapt_count(a), x);
        cr_expect(differs_on_purpose(r->f, result, x, mine[i], theirs[i]),
                  "%s of %s(%g, %g, %g), %s, element %d: %g, PyTorch %g", result, r->f->name, x[0], x[1], x[2],
                  rapt_dtype_name(r->dtype), (int)(i % 3), mine[i], theirs[i]);
    }
}

/* 1, 2, 3, 1, 2, … */
static rapt_tensor *seeds(rapt_tensor *like)
{
    rapt_tensor *numbers = rapt_empty(RAPT_FLOAT64, rapt_rank(like), rapt_shape(like));
    double *to = rapt_data_for_writing(numbers);
    for (int64_t i = 0; i < rapt_count(numbers); i++) to[i] = (double)(1 + i % 3);
    return rapt_cast(numbers, rapt_get_dtype(like));
}

/* The gradients of a result to the floating inputs, compared, into g. */
static void differentiate(const run *r, const char *prefix, rapt_tensor *of, rapt_tensor **g)
{
    const int count = r->f->of == two ? 2 : 1;
    g[0] = g[1] = NULL;
    if (of && rapt_requires_gradient(of)) {
        rapt_tensor *from = seeds(of);
        cr_assert(rapt_gradients(1, &of, &from, count, (rapt_tensor *const *)r->inputs, g, RAPT_CREATE_GRAPH), "%s: %s",
                  r->f->name, rapt_error());
    }
    for (int i = 0; i < count; i++) {
        char name[8];
        snprintf(name, sizeof name, "%s%d", prefix, i);
        compare(r, name, g[i]);
    }
}

static rapt_tensor *input(const run *r, const char *name)
{
    char full[64];
    snprintf(full, sizeof full, "%s/inputs/%s", rapt_dtype_name(r->dtype), name);
    rapt_tensor *tensor = rapt_archive_find(r->fixture, full);
    cr_assert(tensor, "the fixture has no %s", full);
    return rapt_dtype_is_floating(rapt_get_dtype(tensor)) ? rapt_require_gradient(rapt_clone(tensor)) : tensor;
}

static void check(const rapt_archive *fixture, const function *f, rapt_dtype dtype)
{
    static const char *const names[][2] = {[one] = {"x", "x"}, [two] = {"a", "b"}, [rows] = {"rows", "targets"}};
    RAPT_SCOPE;
    run r = {.f = f, .dtype = dtype, .fixture = fixture};
    for (int i = 0; i < 2; i++) r.inputs[i] = input(&r, names[f->of][i]);
    rapt_tensor *y = f->call(r.inputs[0], r.inputs[1]), *g[2], *h[2];
    cr_assert(y, "%s: %s", f->name, rapt_error());
    cr_assert(find(&r, "y"), "the fixture has no %s", f->name);
    compare(&r, "y", y);
    if (!rapt_requires_gradient(y) || !find(&r, "g0")) return;
    differentiate(&r, "g", y, g);
    if (dtype == RAPT_FLOAT64) {
        differentiate(&r, "h0", g[0], h);
        differentiate(&r, "h1", g[1], h);
    }
}

Test(special_values, are_pytorchs_or_differ_on_purpose)
{
    rapt_archive *fixture = rapt_load_safetensors(RAPT_SOURCE_ROOT "/tests/parity/special.safetensors");
    cr_assert(fixture, "%s", rapt_error());
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        check(fixture, &functions[i], RAPT_FLOAT32);
        check(fixture, &functions[i], RAPT_FLOAT64);
    }
    for (int i = 0; i < difference_count; i++)
        cr_expect(seen[i], "%s no longer differs: %s", differences[i].functions, differences[i].why);
    rapt_archive_free(fixture);
    expect_no_error();
}
