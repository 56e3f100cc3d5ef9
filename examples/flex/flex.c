/* Six attentions of the literature, all of them fused, forward and backward. Each learns a task in which it has a
 * point, beside the same attention without it: keys are of some kinds, a query asks for one of them, and a rule says
 * what it should weigh. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt.h>

#include "attentions.h"
#include "claim.h"
#include "command_line.h"
#include "files.h"
#include "picture.h"

enum { KINDS = 4, SIZE = 8, SHOWN = 18 };

static const char *const picture_names[] = {"weights.svg", "weights.png", NULL};

/* How much query i of an item should weigh key j. is_asked: the key is of the kind that the query asks for. */
typedef double rule(int64_t item, int64_t i, int64_t j, bool is_asked);

static double all(int64_t item, int64_t i, int64_t j, bool is_asked)
{
    (void)item, (void)i, (void)j;
    return is_asked;
}

static double mostly(int64_t item, int64_t i, int64_t j, bool is_asked)
{
    (void)item, (void)i, (void)j;
    return is_asked ? 1 : exp(-2 * CAP);
}

static double late_most(int64_t item, int64_t i, int64_t j, bool is_asked)
{
    (void)item;
    return is_asked && j <= i ? exp2(-0.5 * (double)(i - j)) : 0;
}

static double before_or_in_prefix(int64_t item, int64_t i, int64_t j, bool is_asked)
{
    return is_asked && (j <= i || j < prefix_of(item));
}

static double in_window(int64_t item, int64_t i, int64_t j, bool is_asked)
{
    (void)item;
    return is_asked && j <= i && j > i - WINDOW;
}

static double by_filter(int64_t item, int64_t i, int64_t j, bool is_asked)
{
    static const double filter[POSITIONS] = {0, 0.2, 0, 0.5, 0, 0, 0.3, 0, 0};
    (void)item, (void)is_asked;
    return llabs(j - i) <= REACH ? filter[REACH + j - i] : 0;
}

typedef struct task {
    const char *name, *claim;
    void (*use)(rapt_attention *attention, rapt_mask *mask);
    rapt_mask mask; /* with the point and without */
    rule *weigh;
    bool sums;    /* values times these weights, which are divided by their sum otherwise */
    bool is_zero; /* of no key; otherwise a query that finds none does not count */
    bool varies;  /* keys are of different lengths */
} task;

enum { TASKS = 6 };
static const task tasks[TASKS] = {
    {"soft cap", "however long a key is, no more than its share of the weight goes to it", use_soft_cap,
     .weigh = mostly, .varies = true},
    {"T5's buckets", "a score of two vectors does not know how late a key is, a bucket does", use_t5,
     .mask = {.causal = true}, .weigh = late_most},
    {"prefix", "only what is read both ways finds what comes later in the prefix", use_prefix, .mask = {.causal = true},
     .weigh = before_or_in_prefix},
    {"window, sink", "a window may have nothing that is asked for, and a sink lets it give nothing", use_sink,
     .mask = {.causal = true, .window_left = WINDOW}, .weigh = in_window, .is_zero = true},
    {"relative bias", "attention learns a convolution, whatever the keys are", use_relative_bias, .weigh = by_filter},
    {"sigmoid", "weights that need not sum to 1 add up what softmax can only average", use_sigmoid, .weigh = all,
     .sums = true, .is_zero = true},
};

/* Queries, keys and values (BATCH, length, SIZE), what should come of them, and 1 for the queries that count. */
typedef struct sample {
    rapt_tensor *queries, *keys, *values, *target, *counts;
} sample;

/* What the rule gives the keys of a query; does the query count? */
static bool weigh(const task *t, int64_t item, int64_t i, int64_t length, int64_t asked, const int64_t *kinds,
                  float *weights)
{
    double sum = 0;
    for (int64_t j = 0; j < length; j++) sum += t->weigh(item, i, j, kinds[j] == asked);
    const double divisor = t->sums || sum == 0 ? 1 : sum;
    for (int64_t j = 0; j < length; j++) weights[j] = (float)(t->weigh(item, i, j, kinds[j] == asked) / divisor);
    return sum > 0 || t->is_zero;
}

/* vectors (KINDS, SIZE): those of the kinds. */
static sample draw(const task *t, rapt_tensor *vectors, int64_t length)
{
    rapt_tensor *asked = rapt_randint(0, KINDS, RAPT_SHAPE(BATCH * length)),
                *kinds = rapt_randint(0, KINDS, RAPT_SHAPE(BATCH * length)),
                *lengths = rapt_exp(rapt_mul_scalar(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(BATCH, length, 1)), t->varies)),
                *weights = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(BATCH, length, length)),
                *counts = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(BATCH, length, 1));
    const int64_t *query = rapt_data(asked), *key = rapt_data(kinds);
    float *weight = rapt_data_for_writing(weights), *count = rapt_data_for_writing(counts);
    for (int64_t row = 0; row < BATCH * length; row++) {
        const int64_t item = row / length;
        count[row] = weigh(t, item, row % length, length, query[row], key + item * length, weight + row * length);
    }
    sample s = {.counts = counts};
    s.queries = rapt_reshape(rapt_index_select(vectors, 0, asked), RAPT_SHAPE(BATCH, length, SIZE));
    s.keys = rapt_mul(rapt_reshape(rapt_index_select(vectors, 0, kinds), RAPT_SHAPE(BATCH, length, SIZE)), lengths);
    s.values = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(BATCH, length, SIZE));
    s.target = rapt_mul(rapt_matmul(weights, s.values), counts);
    return s;
}

/* The share of the target that attention misses, by squares. */
static rapt_tensor *error_of(rapt_attention *attention, const rapt_mask *mask, sample s)
{
    rapt_tensor *pooled = rapt_attention_forward(attention, s.queries, s.keys, s.values, mask);
    rapt_tensor *missed = rapt_sub(rapt_mul(pooled, s.counts), s.target);
    return rapt_div(rapt_sum(rapt_mul(missed, missed), RAPT_ALL_AXES, false),
                    rapt_sum(rapt_mul(s.target, s.target), RAPT_ALL_AXES, false));
}

/* What it comes to: errors of new samples, one as long as those it learned from and one eight times as long; and the
 * weights of the first queries of an item. */
typedef struct outcome {
    double error, error_of_longer;
    float weights[SHOWN][SHOWN];
} outcome;

static void learn(const task *t, bool has_point, int64_t seed, int64_t steps, outcome *o)
{
    RAPT_SCOPE;
    rapt_seed((uint64_t)seed);
    rapt_tensor *vectors = rapt_mul_scalar(rapt_slice(rapt_eye(RAPT_FLOAT32, SIZE), 0, 0, KINDS, 1), 2);
    rapt_attention *attention = rapt_attention_new(rapt_bilinear_scoring_new(SIZE, SIZE), 0); /* scores qᵀMk */
    rapt_mask mask = t->mask;
    if (has_point) t->use(attention, &mask);
    rapt_optimizer *adam = rapt_adam_new(&attention->module, &(rapt_adam_config){.learning_rate = 0.05});
    for (int64_t step = 0; step < steps; step++) {
        RAPT_SCOPE;
        rapt_backward(error_of(attention, &mask, draw(t, vectors, LENGTH)));
        rapt_optimizer_step(adam);
    }
    RAPT_NO_GRADIENT;
    o->error_of_longer = rapt_item(error_of(attention, &mask, draw(t, vectors, 8 * LENGTH)));
    attention->keep_weights = true;
    o->error = rapt_item(error_of(attention, &mask, draw(t, vectors, LENGTH)));
    const float *weights = rapt_data(attention->weights);
    for (int64_t i = 0; i < SHOWN; i++)
        for (int64_t j = 0; j < SHOWN; j++) o->weights[i][j] = weights[i * LENGTH + j];
    rapt_optimizer_free(adam);
    rapt_module_free(&attention->module);
}

static void give_up(const char *error)
{
    fprintf(stderr, "flex: %s\n", error);
    exit(EXIT_FAILURE);
}

static void draw_weights(const char *directory, const float *weights)
{
    const char *titles[TASKS];
    for (int t = 0; t < TASKS; t++) titles[t] = tasks[t].name;
    const struct heatmap heatmap = {.values = weights,
                                    .rows = 1,
                                    .columns = TASKS,
                                    .queries = SHOWN,
                                    .keys = SHOWN,
                                    .titles = titles,
                                    .x_label = "keys",
                                    .y_label = "queries"};
    char path[4096], error[512];
    putchar('\n');
    if (!picture_print_heatmaps(stdout, &heatmap, error, sizeof error)) give_up(error);
    for (int i = 0; directory && picture_names[i]; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, picture_names[i]);
        if (!picture_heatmaps(path, &heatmap, error, sizeof error)) give_up(error);
    }
}

int main(int argc, char **argv)
{
    int64_t seed = 1, steps = 300;
    const char *directory = NULL;
    const struct command_option options[] =
        {{.name = "--steps",
          .help = "that each of them learns; the claims are about 300 or more",
          .integer = &steps,
          .integer_range = {1, 100000}},
         {.name = "--out",
          .metavar = "DIR",
          .help = "folder for the picture, made if it is not there; without it only the terminal has it",
          .string = &directory},
         command_line_seed(&seed),
         {0}};
    const struct command_line line = {.program = "flex",
                                      .summary =
                                          "Six attentions of the literature, each on a task where it has a point.",
                                      .options = options};
    const enum command_line_result result = command_line_parse(&line, argc, argv);
    if (result != COMMAND_LINE_RUN) return result;
    if (directory && !picture_has_files) give_up("--out: this build draws no files: it has no cairo");
    if (directory && !folder_can_be_saved("flex", directory, picture_names)) return EXIT_FAILURE;
    rapt_on_error(rapt_exit_on_error);
    static outcome without, with;
    static float weights[TASKS][SHOWN][SHOWN];
    double worst = 0;
    printf("share of the target that is missed   without   with it   of %d keys\n", 8 * LENGTH);
    for (int t = 0; t < TASKS; t++) {
        learn(&tasks[t], false, seed, steps, &without);
        learn(&tasks[t], true, seed, steps, &with);
        printf("%-34s%10.4f%10.4f%14.4f\n", tasks[t].name, without.error, with.error, with.error_of_longer);
        claim(with.error < 0.05 && with.error < without.error / 5, "%s", tasks[t].claim);
        worst = fmax(worst, with.error_of_longer);
        memcpy(weights[t], with.weights, sizeof with.weights);
    }
    claim(worst < 0.1, "what they learned of %d keys holds for %d", LENGTH, 8 * LENGTH);
    draw_weights(directory, weights[0][0]);
    return claim_status("flex");
}
