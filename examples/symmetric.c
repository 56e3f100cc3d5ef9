/* Attention is softmax(Q K' / sqrt(d)) V. Why not (1 / sqrt(d)) softmax(Q K') V, and why no fourth matrix W beside V
   as K is beside Q, softmax(Q K') V W'? Asked at stats.stackexchange.com/questions/541049; answered here by numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt.h>

#include "claim.h"
#include "command_line.h"

enum { TOKENS = 64, SIZES = 5 };
static const int64_t sizes[SIZES] = {4, 16, 64, 256, 1024}; /* d */

/* Where the scale 1 / √d stands. */
enum scale { INSIDE, NOWHERE, OUTSIDE, BOTH, SCALES };
static const char *const formulas[SCALES] = {"softmax(QK'/sqrt d) V", "softmax(QK') V", "softmax(QK') V / sqrt d",
                                             "softmax(QK'/sqrt d) V / sqrt d"};

/* What one formula makes of random queries, keys and values. */
struct attended {
    rapt_tensor *queries, *logits, *weights, *output;
};

static struct attended attend(enum scale scale, rapt_tensor *queries, rapt_tensor *keys, rapt_tensor *values)
{
    struct attended a = {.queries = queries};
    bool inside = scale == INSIDE || scale == BOTH, outside = scale == OUTSIDE || scale == BOTH;
    rapt_scoring *scoring = inside ? rapt_scaled_dot_product_scoring_new() : rapt_dot_product_scoring_new();
    double outer = outside ? 1 / sqrt((double)rapt_size(keys, -1)) : 1;
    a.logits = rapt_score(scoring, queries, keys);
    a.weights = rapt_softmax(a.logits, -1);
    a.output = rapt_mul_scalar(rapt_matmul(a.weights, values), outer);
    rapt_module_free(&scoring->module);
    return a;
}

static rapt_tensor *normal(int64_t rows, int64_t columns)
{
    return rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(rows, columns));
}

static double mean(rapt_tensor *x)
{
    return rapt_item(rapt_mean(x, RAPT_ALL_AXES, false));
}

static double norm(rapt_tensor *x)
{
    return sqrt(rapt_item(rapt_sum(rapt_mul(x, x), RAPT_ALL_AXES, false)));
}

static double largest(rapt_tensor *x)
{
    return rapt_item(rapt_max(rapt_abs(x), RAPT_ALL_AXES, false));
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Is the point in the convex hull of the values (TOKENS, 2)? It is unless they all lie on one side of a line through
   it: unless the directions to them leave more than half a turn free. It is moved a little towards their mean first,
   so that rounding does not take it out. */
static bool is_in_hull(double x, double y, rapt_tensor *values)
{
    double angles[TOKENS + 1], widest = 0;
    x += 1e-9 * (mean(rapt_select(values, 1, 0)) - x), y += 1e-9 * (mean(rapt_select(values, 1, 1)) - y);
    for (int64_t i = 0; i < TOKENS; i++)
        angles[i] = atan2(rapt_at(values, (int64_t[]){i, 1}) - y, rapt_at(values, (int64_t[]){i, 0}) - x);
    qsort(angles, TOKENS, sizeof *angles, compare);
    angles[TOKENS] = angles[0] + 2 * acos(-1);
    for (int i = 0; i < TOKENS; i++) widest = fmax(widest, angles[i + 1] - angles[i]);
    return widest <= acos(-1);
}

static int count_outside(rapt_tensor *outputs, rapt_tensor *values)
{
    int outside = 0;
    for (int64_t i = 0; i < TOKENS; i++)
        outside += !is_in_hull(rapt_at(outputs, (int64_t[]){i, 0}), rapt_at(outputs, (int64_t[]){i, 1}), values);
    return outside;
}

/* Values around (3, 3) in the plane; the weights of one output sum to 1, or to 1 / √d. */
static void show_hull(void)
{
    printf("of %d outputs, those outside of the convex hull of the values; and the mean of\n"
           "their first coordinate, which is 3 for the values\n\n  d%-29s",
           TOKENS, "");
    for (int s = 0; s < SIZES; s++) printf("%10lld", (long long)sizes[s]);
    putchar('\n');
    int outside[SCALES][SIZES];
    double means[SCALES][SIZES];
    for (enum scale scale = INSIDE; scale < SCALES; scale++) {
        printf("  %-30s", formulas[scale]);
        for (int s = 0; s < SIZES; s++) {
            RAPT_SCOPE;
            rapt_tensor *queries = normal(TOKENS, sizes[s]), *keys = normal(TOKENS, sizes[s]);
            rapt_tensor *values = rapt_add_scalar(rapt_mul_scalar(normal(TOKENS, 2), 0.5), 3);
            rapt_tensor *output = attend(scale, queries, keys, values).output;
            outside[scale][s] = count_outside(output, values);
            means[scale][s] = mean(rapt_select(output, 1, 0));
            printf(" %3d, %4.2f", outside[scale][s], means[scale][s]);
        }
        putchar('\n');
    }
    bool inside = true, left = true, shrunk = true;
    for (int s = 0; s < SIZES; s++) {
        inside = inside && outside[INSIDE][s] + outside[NOWHERE][s] == 0;
        left = left && outside[OUTSIDE][s] == TOKENS && outside[BOTH][s] == TOKENS;
        shrunk = shrunk && fabs(means[OUTSIDE][s] * sqrt((double)sizes[s]) - 3) < 0.5;
    }
    claim(inside, "weights that sum to 1 keep every output within the values");
    claim(left && shrunk, "a scale outside takes every output out of them, to 0 as d grows");
}

/* The share of queries whose gradient is less than a tenth of the average. */
static double share_without(rapt_tensor *gradient)
{
    rapt_tensor *norms = rapt_sqrt(rapt_sum(rapt_mul(gradient, gradient), RAPT_AXES(-1), false));
    rapt_tensor *small = rapt_less(norms, rapt_scalar(RAPT_FLOAT64, 0.1 * mean(norms)));
    return mean(rapt_cast(small, RAPT_FLOAT64));
}

/* Of a random function of the outputs, with the scale inside and outside. */
static void show_gradients(void)
{
    puts("\n         deviation of    largest          norm of         norm of    share of queries\n"
         "          the logits     weight        gradients       gradients    with less than a\n"
         "                                   of the logits  of the queries    tenth of its mean\n"
         "     d      in   out    in    out     in     out     in     out         in   out");
    double deviations[2][SIZES], tops[2][SIZES], logits[2][SIZES], without[2][SIZES], queries[2];
    for (int s = 0; s < SIZES; s++) {
        rapt_random_state state = rapt_random_get_state();
        for (int out = 0; out < 2; out++) {
            RAPT_SCOPE;
            rapt_random_set_state(state); /* the same numbers for both */
            rapt_tensor *q = rapt_require_gradient(normal(TOKENS, sizes[s])), *k = normal(TOKENS, sizes[s]),
                        *gradients[2];
            struct attended a = attend(out ? OUTSIDE : INSIDE, q, k, normal(TOKENS, 16));
            rapt_tensor *root = rapt_sum(rapt_mul(a.output, normal(TOKENS, 16)), RAPT_ALL_AXES, false);
            rapt_gradients(1, &root, NULL, 2, (rapt_tensor *[]){a.logits, q}, gradients, 0);
            deviations[out][s] = sqrt(rapt_item(rapt_var(a.logits, RAPT_ALL_AXES, false, 1)));
            tops[out][s] = mean(rapt_max(a.weights, RAPT_AXES(-1), false));
            logits[out][s] = norm(gradients[0]);
            queries[out] = norm(gradients[1]);
            without[out][s] = share_without(gradients[1]);
        }
        printf("%6lld  %6.2f%6.2f%6.3f%7.3f%7.3f%8.4f%7.3f%8.3f%11.2f%6.2f\n", (long long)sizes[s], deviations[0][s],
               deviations[1][s], tops[0][s], tops[1][s], logits[0][s], logits[1][s], queries[0], queries[1],
               without[0][s], without[1][s]);
    }
    const int last = SIZES - 1;
    claim(fabs(deviations[0][last] - 1) < 0.1 && fabs(deviations[1][last] / sqrt((double)sizes[last]) - 1) < 0.1,
          "q.k has variance d, and divided by sqrt(d) variance 1");
    claim(tops[0][last] < 0.3 && tops[1][last] > 0.9,
          "with the scale outside, softmax saturates as d grows: one weight is nearly 1,");
    claim(logits[0][last] > logits[0][0] / 2 && logits[1][last] < logits[1][0] / 5,
          "the gradient of the logits vanishes (%.2f to %.2f; inside, %.2f to %.2f),", logits[1][0], logits[1][last],
          logits[0][0], logits[0][last]);
    claim(without[0][last] < 0.1 && without[1][last] > 0.5, "and most queries get no gradient, a few all of it");
}

/* Learns to retrieve values by noisy keys, from random projections of queries and keys to d numbers and one of the
   values, which can undo a factor: the mean square error at the end, where the mean of the values would give 1. */
static double learn(enum scale scale, int64_t size, int64_t steps)
{
    enum { ITEMS = 8, PAIRS = 16, LATENT = 8 };
    rapt_seed(5); /* the same for all */
    rapt_tensor *projections[] = {rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(size, LATENT)),
                                  rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(size, LATENT)), rapt_eye(RAPT_FLOAT32, LATENT)};
    rapt_optimizer *adam = rapt_adam_new(NULL, &(rapt_adam_config){.learning_rate = 0.01});
    static const char *const names[] = {"W_q", "W_k", "W_v"};
    for (int i = 0; i < 3; i++) {
        if (i < 2) rapt_scale_in_place(projections[i], 1 / sqrt(LATENT));
        rapt_optimizer_add(adam, names[i], rapt_require_gradient(projections[i]));
    }
    double average = 0;
    for (int64_t step = 0; step < steps; step++) {
        RAPT_SCOPE;
        rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(ITEMS, PAIRS, LATENT)),
                    *values = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(ITEMS, PAIRS, LATENT));
        rapt_tensor *noisy =
            rapt_add(x, rapt_mul_scalar(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(ITEMS, PAIRS, LATENT)), 0.1));
        struct attended a = attend(scale, rapt_affine(x, projections[0], NULL),
                                   rapt_affine(noisy, projections[1], NULL), rapt_affine(values, projections[2], NULL));
        rapt_tensor *loss = rapt_mse_loss(a.output, values, RAPT_REDUCE_MEAN);
        rapt_backward(loss);
        rapt_optimizer_step(adam);
        if (step >= steps - 20) average += rapt_item(loss) / 20;
    }
    rapt_optimizer_free(adam);
    return average;
}

static void show_learning(void)
{
    enum { STEPS = 200 };
    printf("\n  loss after %d steps, d %11s", STEPS, "");
    for (int s = 1; s < SIZES; s++) printf("%9lld", (long long)sizes[s]);
    double losses[SCALES][SIZES];
    for (enum scale scale = INSIDE; scale < SCALES; scale++) {
        printf("\n  %-32s", formulas[scale]);
        for (int s = 1; s < SIZES; s++) printf("%9.3f", losses[scale][s] = learn(scale, sizes[s], STEPS));
    }
    putchar('\n');
    const int last = SIZES - 1;
    claim(losses[INSIDE][last] < 1.2 * losses[INSIDE][1], "with the scale inside, it learns as well whatever d is,");
    claim(losses[NOWHERE][last] > 1.2 * losses[INSIDE][last], "without it worse for large d, as softmax saturates,");
    claim(losses[OUTSIDE][last] > 2 * losses[INSIDE][last] && losses[BOTH][last] > 2 * losses[INSIDE][last],
          "and with it outside worst: W_v must first grow by sqrt(d) to undo it");
}

/* V W' with a fourth matrix W, against V and then the W_o of multi-head attention. */
static void show_fourth_matrix(void)
{
    enum { LENGTH = 10, SIZE = 12, HEADS = 3, PART = SIZE / HEADS };
    RAPT_SCOPE;
    puts("\n  a fourth matrix");
    rapt_tensor *queries = normal(TOKENS, 8), *keys = normal(TOKENS, 8),
                *values = rapt_add_scalar(rapt_mul_scalar(normal(TOKENS, 2), 0.5), 3);
    rapt_tensor *weights = attend(INSIDE, queries, keys, values).weights,
                *w = rapt_from(RAPT_FLOAT64, RAPT_SHAPE(2, 2), (const double[]){0, 1, -1, 0});
    rapt_tensor *first = rapt_matmul(weights, rapt_affine(values, w, NULL)),
                *then = rapt_affine(rapt_matmul(weights, values), w, NULL);
    double difference = largest(rapt_sub(first, then));
    claim(difference < 1e-12, "a W of its own: softmax(..) (V W') is (softmax(..) V) W', but for %.0e", difference);
    int outside = count_outside(then, values);
    claim(outside == TOKENS && count_outside(then, rapt_affine(values, w, NULL)) == 0,
          "a quarter turn as W: %d of %d outputs leave the hull of V, none that of V W'", outside, TOKENS);

    /* Σ_h A_h V_h W_hᵀ, where W_h are the columns of W_o that read head h */
    rapt_multi_head_attention *heads =
        rapt_multi_head_attention_new(&(rapt_multi_head_attention_config){.hidden = SIZE, .heads = HEADS});
    rapt_module_cast(&heads->module, RAPT_FLOAT64);
    heads->pooling->keep_weights = true;
    rapt_tensor *x = normal(LENGTH, SIZE), *batch = rapt_unsqueeze(x, 0),
                *sum = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(LENGTH, SIZE));
    rapt_tensor *output = rapt_multi_head_attention_forward(heads, batch, batch, batch, NULL, NULL);
    for (int h = 0; h < HEADS; h++) {
        rapt_tensor *w_v = rapt_slice(heads->in_proj_weight, 0, 2 * SIZE + h * PART, 2 * SIZE + (h + 1) * PART, 1);
        rapt_tensor *w_h = rapt_slice(heads->out_proj->weight, 1, h * PART, (h + 1) * PART, 1);
        rapt_tensor *fourth = rapt_affine(rapt_affine(x, w_v, NULL), w_h, NULL); /* V_h W_hᵀ */
        sum = rapt_add(sum, rapt_matmul(rapt_select(rapt_select(heads->pooling->weights, 0, 0), 0, h), fourth));
    }
    difference = largest(rapt_sub(rapt_squeeze(output, 0), sum));
    claim(difference < 1e-12, "multi-head attention has it: W_o gives each head such a W (but for %.0e)", difference);
    rapt_module_free(&heads->module);

    /* W computed from the tokens as Q, K and V are: (n, v), so that V Wᵀ is (n, n) */
    char text[2][64];
    for (int i = 0; i < 2; i++) {
        int64_t length = LENGTH * (i + 1);
        rapt_tensor *tokens = normal(length, SIZE), *product = rapt_matmul(tokens, rapt_transpose(tokens, 0, 1));
        output = rapt_matmul(attend(INSIDE, tokens, tokens, tokens).weights, product);
        snprintf(text[i], sizeof text[i], "(%lld, %lld)", (long long)rapt_size(output, 0),
                 (long long)rapt_size(output, 1));
    }
    claim(strcmp(text[0], text[1]) != 0, "a W made of the tokens: outputs as long as the text, %s, %s", text[0],
          text[1]);
    rapt_tensor *order = rapt_randperm(LENGTH), *shuffled = rapt_index_select(x, 0, order), *outputs[2];
    for (int i = 0; i < 2; i++) {
        rapt_tensor *tokens = i ? shuffled : x;
        outputs[i] = rapt_matmul(attend(INSIDE, tokens, tokens, tokens).weights,
                                 rapt_matmul(tokens, rapt_transpose(tokens, 0, 1)));
    }
    rapt_tensor *rows = rapt_index_select(outputs[0], 0, order);
    claim(largest(rapt_sub(rows, outputs[1])) > 0.1 &&
              largest(rapt_sub(rapt_index_select(rows, 1, order), outputs[1])) < 1e-12,
          "and their numbers belong to tokens, and change places with them");
}

int main(int argc, char **argv)
{
    int64_t seed = 1;
    const struct command_option options[] =
        {{.name = "--seed", .help = "of the random numbers", .integer = &seed, .integer_range = {0, INT64_MAX}}, {0}};
    const struct command_line line = {.program = "symmetric",
                                      .summary =
                                          "Attention with its scale outside, and with a fourth matrix, by numbers.",
                                      .options = options};
    enum command_line_result result = command_line_parse(&line, argc, argv);
    if (result != COMMAND_LINE_RUN) return result;
    rapt_on_error(rapt_exit_on_error);
    rapt_seed((uint64_t)seed);
    show_hull();
    show_gradients();
    show_learning();
    show_fourth_matrix();
    return claim_status("symmetric");
}
