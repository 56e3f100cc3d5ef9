/* How fast fused dot-product attention is, beside what the processor can do at most. */
#include <rapt.h>

#include <stdio.h>
#include <stdlib.h>

#include "peak.h"
#include "timing.h"

/* One case: shapes, and a mask. */
typedef struct attention_case {
    const char *name;
    int64_t batch, heads, groups, queries, keys, size;
    bool causal, random_lengths;
    int repetitions;
} attention_case;

typedef struct bench {
    const attention_case *c;
    rapt_attention *attention;
    rapt_tensor *queries, *keys, *values, *gradient;
    rapt_mask mask;
    double pairs; /* of a query and a key that it sees, of all heads */
} bench;

static void forward(void *context)
{
    bench *b = context;
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_attention_forward(b->attention, b->queries, b->keys, b->values, &b->mask);
}

static void forward_and_backward(void *context)
{
    bench *b = context;
    RAPT_SCOPE;
    rapt_tensor *pooled = rapt_attention_forward(b->attention, b->queries, b->keys, b->values, &b->mask);
    rapt_tensor *inputs[] = {b->queries, b->keys, b->values}, *gradients[3];
    rapt_gradients(1, &pooled, &b->gradient, 3, inputs, gradients, 0);
}

/* (B, heads, length, size) as split from (B, length, heads · size). */
static rapt_tensor *split(int64_t batch, int64_t heads, int64_t length, int64_t size)
{
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(batch, length, heads, size));
    return rapt_require_gradient(rapt_permute(x, RAPT_AXES(0, 2, 1, 3)));
}

static void run(const attention_case *c, const char *what, timing_work *work, bench *b, double products)
{
    char name[96];
    snprintf(name, sizeof name, "%s: %s", c->name, what);
    const double before = peak_flops(false);
    peak_memory_reset();
    const double seconds = timing_report(name, c->repetitions, 1, work, b), after = peak_flops(false);
    const double rate = 2 * products * b->pairs * (double)c->size / seconds;
    printf("%-40s %10.1f GFLOP/s, %.0f %% of the peak, %.1f MB\n", "", rate * 1e-9,
           100 * rate / (before > after ? before : after), peak_memory() * 1e-6);
}

static void run_case(const attention_case *c)
{
    RAPT_SCOPE;
    rapt_seed(1);
    bench b = {.c = c, .attention = rapt_dot_product_attention_new(0), .mask = {.causal = c->causal}};
    b.queries = split(c->batch, c->heads, c->queries, c->size);
    b.keys = split(c->batch, c->groups, c->keys, c->size);
    b.values = split(c->batch, c->groups, c->keys, c->size);
    b.gradient = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(c->batch, c->heads, c->queries, c->size));
    b.mask.offset = c->keys - c->queries;
    const double rows = (double)(c->heads * c->queries), keys = (double)c->keys;
    b.pairs = (double)c->batch * rows * (c->causal ? keys - 0.5 * (double)(c->queries - 1) : keys);
    if (c->random_lengths) {
        b.mask.valid_lengths = rapt_randint(1, c->keys + 1, RAPT_SHAPE(c->batch));
        b.pairs = rows * rapt_item(rapt_sum(b.mask.valid_lengths, RAPT_ALL_AXES, false));
    }
    run(c, "forward", forward, &b, 2);
    run(c, "forward and backward", forward_and_backward, &b, 7);
    rapt_module_free(&b.attention->module);
}

static const attention_case cases[] = {
    {"causal, B 4, 12 heads, T 1024", 4, 12, 12, 1024, 1024, 64, true, false, 11},
    {"causal, B 1, 12 heads, T 4096", 1, 12, 12, 4096, 4096, 64, true, false, 5},
    {"B 32, 8 heads, T 128, random lengths", 32, 8, 8, 128, 128, 64, false, true, 51},
    {"B 4, 12 heads, T 1024", 4, 12, 12, 1024, 1024, 64, false, false, 7},
    {"causal, 4 of 16 heads' keys, T 1024", 2, 16, 4, 1024, 1024, 64, true, false, 7},
    {"causal, size 128, T 1024", 2, 12, 12, 1024, 1024, 128, true, false, 7},
    {"one query, 8 heads, 8192 keys", 1, 8, 8, 1, 8192, 64, true, false, 51},
    {"one query, one head, 32768 keys", 1, 1, 1, 1, 32768, 64, true, false, 51},
    {"causal, one head, T 65536", 1, 1, 1, 65536, 65536, 64, true, false, 1},
};

/* Numbers as arguments choose cases; none: all of them. */
int main(int argc, char **argv)
{
    rapt_on_error(rapt_exit_on_error);
    rapt_set_threads(rapt_get_threads()); /* all of them, whatever else the machine does */
    puts(rapt_describe_runtime());
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        bool wanted = argc == 1;
        for (int a = 1; a < argc; a++) wanted = wanted || atoi(argv[a]) == i;
        if (wanted) run_case(&cases[i]);
    }
    return EXIT_SUCCESS;
}
