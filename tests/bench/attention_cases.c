/* What the measurements of attention share. */
#include "attention_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peak.h"
#include "timing.h"

enum { largest_batch = 128, longest_run = 10000 };

/* A case made ready. */
typedef struct trial {
    const attention_case *sizes;
    rapt_attention *attention;
    rapt_tensor *inputs[3], *gradient;
    rapt_mask mask;
    double pairs; /* of a query and a key that it sees, of all heads */
} trial;

static rapt_tensor *draw(const attention_case *c, int64_t heads, int64_t length)
{
    if (heads == 0) return rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(c->batch, length, c->size));
    if (c->layout == DENSE) return rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(c->batch, heads, length, c->size));
    return rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(c->batch, length, heads, c->size));
}

static rapt_tensor *swap_heads(rapt_tensor *x)
{
    return rapt_permute(x, RAPT_AXES(0, 2, 1, 3));
}

static rapt_tensor *attend(const trial *t)
{
    rapt_tensor *heads[3];
    for (int i = 0; i < 3; i++) heads[i] = t->sizes->layout == SPLIT ? swap_heads(t->inputs[i]) : t->inputs[i];
    return rapt_attention_forward(t->attention, heads[0], heads[1], heads[2], &t->mask);
}

/* A gradient for the output, in memory as the output is: dense, or as heads that were split. */
static rapt_tensor *draw_gradient(const trial *t)
{
    RAPT_NO_GRADIENT;
    RAPT_SCOPE;
    rapt_tensor *pooled = attend(t), *like = rapt_is_contiguous(pooled) ? pooled : swap_heads(pooled);
    rapt_tensor *drawn = rapt_randn(RAPT_FLOAT32, rapt_rank(like), rapt_shape(like));
    return rapt_keep(like == pooled ? drawn : swap_heads(drawn));
}

static trial prepare(const attention_kind *kind, const attention_case *c)
{
    trial t = {.sizes = c, .attention = kind->make(c->size), .mask = {.causal = c->causal}};
    t.mask.offset = c->keys - c->queries;
    t.inputs[0] = rapt_require_gradient(draw(c, c->heads, c->queries));
    for (int i = 1; i < 3; i++) t.inputs[i] = rapt_require_gradient(draw(c, c->groups, c->keys));
    const double rows = (double)((c->heads ? c->heads : 1) * c->queries), keys = (double)c->keys;
    t.pairs = (double)c->batch * rows * (c->causal ? keys - 0.5 * (double)(c->queries - 1) : keys);
    if (c->has_lengths) {
        int64_t lengths[largest_batch];
        t.pairs = 0;
        for (int64_t b = 0; b < c->batch; b++) {
            lengths[b] = 1 + (7919 * b + 13) % c->keys;
            t.pairs += rows * (double)lengths[b];
        }
        t.mask.valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(c->batch), lengths);
    }
    t.gradient = draw_gradient(&t);
    return t;
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
    trial *t = context;
    for (int i = 0; i < 3; i++) rapt_clear_gradient(t->inputs[i]);
    rapt_module_clear_gradients(&t->attention->module);
    rapt_tensor *pooled = attend(t);
    rapt_backward_from(1, &pooled, &t->gradient, 0);
}

/* The median of as many runs as take that long, in seconds. */
static double median_of(timing_work *work, trial *t, double seconds)
{
    static double times[longest_run];
    int count = 0;
    for (double start = timing_now(); timing_now() - start < 0.2 * seconds;) work(t);
    for (double start = timing_now(); count < longest_run && (count < 1 || timing_now() - start < seconds); count++) {
        const double before = timing_now();
        work(t);
        times[count] = timing_now() - before;
    }
    return timing_median(count, times);
}

static void report(const attention_kind *kind, trial *t, bool backward, double seconds)
{
    timing_work *work = backward ? forward_and_backward : forward;
    peak_memory_reset();
    work(t);
    const double memory = peak_memory(), before = peak_flops(false), median = median_of(work, t, seconds),
                 after = peak_flops(false), rate = kind->cost(t->sizes->size, backward) * t->pairs / median;
    printf("%-22s %-8s %10.3f ms %8.1f GFLOP/s %4.0f %% of the peak %8.1f MB\n", t->sizes->name,
           backward ? "fwd_bwd" : "fwd", 1e3 * median, 1e-9 * rate, 100 * rate / (before > after ? before : after),
           1e-6 * memory);
    fflush(stdout);
}

int attention_cases_main(int count, char **arguments, const attention_kind *kind, const attention_case *cases,
                         int num_cases)
{
    const char *only = NULL, *phase = NULL;
    double seconds = 1;
    for (int i = 1; i + 1 < count; i += 2) {
        if (strcmp(arguments[i], "--case") == 0) only = arguments[i + 1];
        if (strcmp(arguments[i], "--phase") == 0) phase = arguments[i + 1];
        if (strcmp(arguments[i], "--seconds") == 0) seconds = strtod(arguments[i + 1], NULL);
    }
    rapt_on_error(rapt_exit_on_error);
    rapt_seed(1);
    rapt_set_threads(rapt_get_threads()); /* all of them, however crowded the machine is */
    if (!phase) printf("%s\n%s\n", rapt_describe_runtime(), kind->note);
    for (int i = 0; i < num_cases; i++) {
        if (only && strcmp(only, cases[i].name) != 0) continue;
        RAPT_SCOPE;
        trial t = prepare(kind, &cases[i]);
        bool backward = phase && strcmp(phase, "fwd_bwd") == 0;
        if (phase) printf("%.6f\n", 1e3 * median_of(backward ? forward_and_backward : forward, &t, seconds));
        for (int b = 0; !phase && b < 2; b++) report(kind, &t, b == 1, seconds);
        rapt_module_free(&t.attention->module);
    }
    return EXIT_SUCCESS;
}
