/* Every elementary function of float32 and its gradient, at each instruction-set level, over all inputs: the largest
 * error in ulp, and whether a result depends on its place in the array.
 *
 *     numerics_elementary [--step N] [--exponents LOW HIGH] [function ...]
 *
 * Tries each N-th of the 2³² float32 (1 unless told), or of those with 2^LOW ≤ |x| < 2^HIGH, and fails beyond 2 ulp.
 * An ulp is the distance of two neighbours of float32 at the exact result, of denormals that of the least ones, 2⁻¹⁴⁹;
 * where backward has the value alone (tanh, sigmoid), that of slopes is 2⁻²³, the one of 1. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Built once more for each of these processors, the one at hand taking its own: eight numbers at once. Sanitizers have
 * not begun yet when it is chosen. */
#if defined __x86_64__ && defined __GLIBC__ && !defined __clang__ && !defined __SANITIZE_ADDRESS__ &&                  \
    !defined __SANITIZE_THREAD__
#define FOR_EACH_PROCESSOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

#include "elementary_functions.h"
#include "tensor/kernels.h"

/* What a block has must be odd: then the vectors of neighbours end elsewhere, and each has a rest. */
enum { block = (1 << 15) - 1, value = 0, slope = 1, results = 2 };
static const double limit = 2;

/* --- levels --- */

void rapt_fill_kernels_baseline(rapt_kernels *kernels);
void rapt_fill_kernels_v3(rapt_kernels *kernels);
void rapt_fill_kernels_v4(rapt_kernels *kernels);

typedef struct level {
    const char *name;
    void (*fill)(rapt_kernels *kernels);
    rapt_kernels kernels;
} level;

static level levels[] = {
#ifdef RAPT_HAVE_LEVEL_BASELINE
    {.name = "baseline", .fill = rapt_fill_kernels_baseline},
#endif
#ifdef RAPT_HAVE_LEVEL_V3
    {.name = "x86-64-v3", .fill = rapt_fill_kernels_v3},
#endif
#ifdef RAPT_HAVE_LEVEL_V4
    {.name = "x86-64-v4", .fill = rapt_fill_kernels_v4},
#endif
};
enum { most_levels = sizeof levels / sizeof *levels };

/* Makes the table of each level up to the one in use; returns how many there are. */
static int fill_levels(void)
{
    for (int i = 0; i < most_levels; i++) {
        if (i > 0) levels[i].kernels = levels[i - 1].kernels;
        levels[i].fill(&levels[i].kernels);
        levels[i].kernels.level = levels[i].name;
        if (strcmp(levels[i].name, rapt_get_level()) == 0) return i + 1;
    }
    return most_levels;
}

/* --- errors --- */

typedef struct outcome {
    double worst; /* in ulp; infinite where NaN or an infinity is missing or wrong */
    float x, found;
    double exact;
} outcome;

static inline double double_from_bits(uint64_t bits)
{
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static inline float float_from_bits(uint32_t bits)
{
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static inline uint32_t bits_of(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static inline double within_floats(double x)
{
    return x > 0x1p128 ? 0x1p128 : x < -0x1p128 ? -0x1p128 : x;
}

static inline double error_in_ulp(float found, double exact, int64_t lowest)
{
    const double expected = within_floats(exact);
    uint64_t bits;
    memcpy(&bits, &expected, sizeof bits);
    int64_t exponent = (int64_t)(bits >> 52 & 0x7ff) - 1023;
    exponent = exponent < lowest ? lowest : exponent > 127 ? 127 : exponent;
    const double distance = fabs(within_floats((double)found) - expected);
    const double error = distance * double_from_bits((uint64_t)(23 - exponent + 1023) << 52);
    const bool same_kind = (found != found) == (exact != exact) && (!isinf(exact) || (double)found == exact);
    return !same_kind ? (double)INFINITY : exact != exact ? 0 : error;
}

FOR_EACH_PROCESSOR static void compare(const float *x, const float *found, const double *exact, int64_t lowest,
                                       outcome *known)
{
    double worst = 0;
#pragma omp simd reduction(max : worst)
    for (int i = 0; i < block; i++) {
        const double error = error_in_ulp(found[i], exact[i], lowest);
        worst = error > worst ? error : worst;
    }
    if (!(worst > known->worst)) return;
    for (int i = 0; i < block; i++) {
        if (error_in_ulp(found[i], exact[i], lowest) < worst) continue;
        *known = (outcome){worst, x[i], found[i], exact[i]};
        return;
    }
}

/* --- the library's results --- */

static void fail(const char *what)
{
    fprintf(stderr, "numerics_elementary: %s: %s\n", what, rapt_error() ? rapt_error() : "no error");
    exit(2);
}

/* The value and the gradient (of ones) of the function where the tensor is x. */
static void run(const function *f, rapt_tensor *x, rapt_tensor *found[results])
{
    rapt_tensor *input = rapt_require_gradient(x), *ones = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(rapt_count(x)));
    found[value] = f->op(input);
    if (!rapt_gradients(1, &found[value], &ones, 1, &input, &found[slope], 0)) fail(f->name);
    found[value] = rapt_contiguous(found[value]);
    found[slope] = rapt_contiguous(found[slope]);
    if (!found[value] || !found[slope]) fail(f->name);
}

static const float *numbers(rapt_tensor *tensor)
{
    return rapt_data(tensor);
}

static bool same_bits(float a, float b)
{
    return bits_of(a) == bits_of(b) || (isnan(a) && isnan(b));
}

/* Do elements first, first + step, … of x give the same bits alone? */
static bool same_elsewhere(const function *f, rapt_tensor *x, rapt_tensor *const whole[results], int64_t first,
                           int64_t stop, int64_t step)
{
    RAPT_SCOPE;
    rapt_tensor *part[results];
    run(f, rapt_detach(rapt_slice(x, 0, first, stop, step)), part);
    for (int kind = 0; kind < results; kind++) {
        for (int64_t i = 0; i < rapt_count(part[kind]); i++)
            if (!same_bits(numbers(part[kind])[i], numbers(whole[kind])[first + i * step])) return false;
    }
    return true;
}

/* From each of 16 first elements on, in pieces of 1 to 34 elements, and with gaps between them. */
static bool same_anywhere(const function *f, rapt_tensor *x, rapt_tensor *const whole[results], int64_t first)
{
    bool same = true;
    for (int64_t start = first; start < first + 16; start++) {
        for (int64_t count = 1; same && count < 35; count++)
            same = same_elsewhere(f, x, whole, start, start + count, 1);
    }
    for (int64_t step = 2; same && step < 4; step++) same = same_elsewhere(f, x, whole, first, block, step);
    return same;
}

/* --- all inputs --- */

typedef struct findings {
    outcome outcomes[most_levels][results];
    bool depends_on_place;
} findings;

static void try_block(const function *f, int level_count, const float *x, int64_t place, findings *report)
{
    static double exact[results][block];
    f->exact(block, x, exact[value], exact[slope]);
    for (int i = 0; i < level_count; i++) {
        RAPT_SCOPE;
        rapt_kernel = levels[i].kernels;
        rapt_tensor *input = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(block), x), *found[results];
        run(f, rapt_clone(input), found);
        for (int kind = 0; kind < results; kind++)
            compare(x, numbers(found[kind]), exact[kind], kind == slope ? f->lowest : -126, &report->outcomes[i][kind]);
        if (place >= 0 && !same_anywhere(f, input, found, place)) report->depends_on_place = true;
    }
}

/* Each step-th of the floats with exponents from low to high - 1, denormals having -127, NaN and infinities 128. */
typedef struct range {
    uint64_t step;
    int64_t low, high;
} range;

static float input_at(const range *tried, uint64_t i)
{
    const uint64_t magnitudes = (uint64_t)(tried->high - tried->low) << 23, place = i * tried->step;
    const uint64_t sign = place / magnitudes % 2, first = (uint64_t)(tried->low + 127) << 23;
    return float_from_bits((uint32_t)(sign << 31 | (first + place % magnitudes)));
}

/* Block by block, and now and then the same in other places. */
static findings try_function(const function *f, int level_count, const range *tried)
{
    static float x[block];
    const uint64_t places = (uint64_t)(tried->high - tried->low) << 24, count = (places - 1) / tried->step + 1;
    const uint64_t blocks = (count - 1) / block + 1;
    findings report = {.depends_on_place = false};
    for (uint64_t b = 0; b < blocks; b++) {
        for (uint64_t i = 0; i < block; i++) x[i] = input_at(tried, b * block + i);
        const bool moved = b % (blocks / 64 + 1) == 0;
        try_block(f, level_count, x, moved ? (int64_t)(b * 7919 % (block - 64)) : -1, &report);
    }
    return report;
}

/* One line for each level, of columns between tabs; true when all holds. */
static bool print_report(const function *f, int level_count, const findings *report)
{
    bool good = !report->depends_on_place;
    for (int i = 0; i < level_count; i++) {
        printf("%s\t%s", f->name, levels[i].name);
        for (int kind = 0; kind < results; kind++) {
            const outcome *o = &report->outcomes[i][kind];
            printf("\t%.3f\tat %.9g: %a, not %.13a", o->worst, (double)o->x, (double)o->found, o->exact);
            good = good && o->worst <= limit;
        }
        printf("\t%s\n", good ? "" : report->depends_on_place ? "depends on the place" : "FAILED");
    }
    fflush(stdout);
    return good;
}

int main(int argc, char **argv)
{
    range tried = {.step = 1, .low = -127, .high = 129};
    bool wanted[function_count] = {false}, any = false;
    for (int i = 1; i < argc; i++) {
        bool known = false;
        if (strcmp(argv[i], "--step") == 0 && i + 1 < argc) {
            tried.step = strtoull(argv[++i], NULL, 10);
            known = tried.step > 0 && tried.step < UINT64_C(1) << 32;
        } else if (strcmp(argv[i], "--exponents") == 0 && i + 2 < argc) {
            tried.low = strtoll(argv[++i], NULL, 10);
            tried.high = strtoll(argv[++i], NULL, 10);
            known = tried.low >= -127 && tried.low < tried.high && tried.high <= 129;
        }
        for (int k = 0; !known && k < function_count; k++) {
            if (strcmp(argv[i], functions[k].name) == 0) known = wanted[k] = any = true;
        }
        if (!known) {
            fprintf(stderr,
                    "numerics_elementary: bad argument \"%s\": --step N, --exponents LOW HIGH or a function expected\n",
                    argv[i]);
            return 2;
        }
    }
    const int level_count = fill_levels();
    bool good = true;
    for (int k = 0; k < function_count; k++) {
        if (any && !wanted[k]) continue;
        const findings report = try_function(&functions[k], level_count, &tried);
        good &= print_report(&functions[k], level_count, &report);
    }
    return good ? 0 : 1;
}
