/* Fused additive attention with its projections: how long the cases of tests/bench/compare take, forward and backward. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt.h>

#include "peak.h"
#include "timing.h"

enum { size = 256, hidden = 256, largest_batch = 128, longest_run = 10000 };

typedef struct example {
    const char *name;
    int64_t batch, queries, keys;
    rapt_attention *attention;
    rapt_tensor *inputs[3], *lengths, *gradient;
    double elements; /* tanh of all pairs that are seen */
} example;

static example examples[] = {
    {.name = "additive_256", .batch = 8, .queries = 256, .keys = 256},
    {.name = "additive_512", .batch = 4, .queries = 512, .keys = 512},
    {.name = "additive_32", .batch = 64, .queries = 32, .keys = 32},
    {.name = "additive_step", .batch = 128, .queries = 1, .keys = 10},
};

static void prepare(example *e)
{
    e->attention = rapt_additive_attention_new(size, size, hidden, 0);
    e->inputs[0] = rapt_require_gradient(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(e->batch, e->queries, size)));
    for (int i = 1; i < 3; i++)
        e->inputs[i] = rapt_require_gradient(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(e->batch, e->keys, size)));
    int64_t lengths[largest_batch];
    e->elements = 0;
    for (int64_t b = 0; b < e->batch; b++) {
        lengths[b] = 1 + (7919 * b + 13) % e->keys;
        e->elements += (double)(e->queries * lengths[b] * hidden);
    }
    e->lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(e->batch), lengths);
    e->gradient = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(e->batch, e->queries, size));
}

static rapt_tensor *attend(const example *e)
{
    return rapt_attention_forward(e->attention, e->inputs[0], e->inputs[1], e->inputs[2],
                                  RAPT_MASK(.valid_lengths = e->lengths));
}

static void forward(void *context)
{
    RAPT_NO_GRADIENT;
    RAPT_SCOPE;
    attend(context);
}

static void forward_and_backward(void *context)
{
    RAPT_SCOPE;
    example *e = context;
    for (int i = 0; i < 3; i++) rapt_clear_gradient(e->inputs[i]);
    rapt_module_clear_gradients(&e->attention->module);
    rapt_tensor *out = attend(e);
    rapt_backward_from(1, &out, &e->gradient, 0);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of as many runs as take that long. */
static double median_of(timing_work *work, example *e, double seconds)
{
    static double times[longest_run];
    int count = 0;
    for (int i = 0; i < 3; i++) work(e);
    for (double start = timing_now(); count < longest_run && (count < 3 || timing_now() - start < seconds); count++) {
        const double before = timing_now();
        work(e);
        times[count] = timing_now() - before;
    }
    qsort(times, (size_t)count, sizeof *times, compare);
    return times[count / 2];
}

static void report(example *e, const char *phase, timing_work *work, double seconds)
{
    peak_memory_reset();
    work(e);
    const double memory = peak_memory(), before = peak_flops(false), median = median_of(work, e, seconds),
                 after = peak_flops(false), rate = e->elements / median;
    /* An element is a multiply-add inside the tanh and one by the weight, at the least; projections and values come on top. */
    printf("%-14s %-8s %9.3f ms %7.1f G elements/s %6.1f %% of the peak %8.1f MB\n", e->name, phase, 1e3 * median,
           1e-9 * rate, 100 * rate * 4 / (before > after ? before : after), 1e-6 * memory);
    fflush(stdout);
}

/* Without arguments a table; with "--case NAME --phase fwd|fwd_bwd --seconds X" that median alone, for the script. */
int main(int count, char **arguments)
{
    const char *only = NULL, *phase = NULL;
    double seconds = 1;
    for (int i = 1; i + 1 < count; i += 2) {
        if (strcmp(arguments[i], "--case") == 0) only = arguments[i + 1];
        if (strcmp(arguments[i], "--phase") == 0) phase = arguments[i + 1];
        if (strcmp(arguments[i], "--seconds") == 0) seconds = strtod(arguments[i + 1], NULL);
    }
    RAPT_SCOPE;
    rapt_on_error(rapt_exit_on_error);
    rapt_seed(1);
    if (!only) puts(rapt_describe_runtime());
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        example *e = &examples[i];
        if (only && strcmp(only, e->name) != 0) continue;
        RAPT_SCOPE;
        prepare(e);
        if (only && phase) {
            printf("%.6f\n", 1e3 * median_of(strcmp(phase, "fwd") == 0 ? forward : forward_and_backward, e, seconds));
        } else {
            report(e, "fwd", forward, seconds);
            report(e, "fwd_bwd", forward_and_backward, seconds);
        }
        rapt_module_free(&e->attention->module);
    }
    return EXIT_SUCCESS;
}
