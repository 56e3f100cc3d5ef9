/* Which scoring function? All of them retrieve values by noisy keys of another size than the queries, in one table; and
   four questions that readers of Dive into Deep Learning, 11.3, ask, answered by numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <rapt.h>

#include "claim.h"
#include "command_line.h"

enum { ITEMS = 32, PAIRS = 12, QUERY = 6, KEY = 10, TESTS = 20 };

static int64_t steps = 400, seed = 1;

/* A key is A q + noise, or A |q| + noise, with an A (QUERY, KEY) that nobody is told. */
enum relation { LINEAR, EVEN };
static rapt_tensor *relating; /* A */

/* Queries in another order than their keys. The value of a pair is its one-hot name, so that attention gives the
   share of each pair in what a query retrieves. */
struct batch {
    rapt_tensor *queries, *keys, *values; /* (ITEMS, PAIRS, …) */
    rapt_tensor *pairs;                   /* (ITEMS, PAIRS): the index of the right key */
};

static struct batch draw_batch(enum relation relation)
{
    struct batch batch = {.queries = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(ITEMS, PAIRS, QUERY))};
    rapt_tensor *order = rapt_randperm(PAIRS), *noise = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(ITEMS, PAIRS, KEY));
    rapt_tensor *means = rapt_matmul(relation == EVEN ? rapt_abs(batch.queries) : batch.queries, relating);
    batch.keys = rapt_add(means, rapt_mul_scalar(noise, 0.3));
    batch.queries = rapt_index_select(batch.queries, 1, order);
    batch.values = rapt_expand(rapt_eye(RAPT_FLOAT32, PAIRS), RAPT_SHAPE(ITEMS, PAIRS, PAIRS));
    batch.pairs = rapt_expand(order, RAPT_SHAPE(ITEMS, PAIRS));
    return batch;
}

/* What becomes of queries before they are scored. */
enum before {
    AS_THEY_ARE,
    PADDED,    /* with zeros to the size of the keys */
    PROJECTED, /* to that size, by a learned matrix */
    WITH_ONE   /* a 1 appended */
};

struct model {
    rapt_module module;
    rapt_attention *attention;
    rapt_linear *projection; /* NULL unless PROJECTED */
    enum before before;
};

static const rapt_module_class model_class = {.name = "Model"};

/* The model owns the scoring function. */
static struct model *model_new(rapt_scoring *scoring, rapt_normalizer *normalizer, enum before before)
{
    struct model *model = rapt_module_new(sizeof *model, &model_class);
    if (!model) return NULL;
    model->before = before;
    if (before == PROJECTED)
        model->projection = rapt_module_add_child(&model->module, "projection",
                                                  (rapt_module *)rapt_linear_new(QUERY, KEY, RAPT_NO_BIAS));
    model->attention =
        rapt_module_add_child(&model->module, "attention", (rapt_module *)rapt_attention_new(scoring, 0));
    if (model->attention) model->attention->normalizer = normalizer;
    return rapt_module_finish(&model->module);
}

/* What the table says of a trained model. */
struct result {
    int64_t parameters;
    double loss, accuracy, milliseconds; /* of the fastest step */
};

static rapt_tensor *shares_of(struct model *model, const struct batch *batch)
{
    rapt_tensor *queries = batch->queries;
    if (model->before == PROJECTED) queries = rapt_linear_forward(model->projection, queries);
    if (model->before == PADDED) queries = rapt_pad(queries, -1, 0, KEY - QUERY, 0);
    if (model->before == WITH_ONE) queries = rapt_pad(queries, -1, 0, 1, 1);
    return rapt_attention_forward(model->attention, queries, batch->keys, batch->values, NULL);
}

/* −log of the right pair's share, which counts as 10⁻⁴ if it is less. */
static rapt_tensor *loss_of(rapt_tensor *shares, const struct batch *batch)
{
    return rapt_nll_loss(rapt_log(rapt_maximum(shares, rapt_scalar(RAPT_FLOAT32, 1e-4))), batch->pairs, NULL);
}

static void test(struct model *model, enum relation relation, struct result *result)
{
    RAPT_NO_GRADIENT;
    for (int i = 0; i < TESTS; i++) {
        RAPT_SCOPE;
        struct batch batch = draw_batch(relation);
        rapt_tensor *shares = shares_of(model, &batch);
        rapt_tensor *right = rapt_equal(rapt_argmax(shares, -1, false), batch.pairs);
        /* a query that retrieves nothing is wrong */
        right =
            rapt_logical_and(right, rapt_greater(rapt_max(shares, RAPT_AXES(-1), false), rapt_scalar(RAPT_FLOAT32, 0)));
        result->loss += rapt_item(loss_of(shares, &batch)) / TESTS;
        result->accuracy += rapt_item(rapt_sum(right, RAPT_ALL_AXES, false)) / (TESTS * ITEMS * PAIRS);
    }
}

/* Trains with Adam (if `learns`) and tests, with the same data for all. Frees the scoring function. */
static struct result train_and_test(rapt_scoring *scoring, rapt_normalizer *normalizer, enum before before,
                                    enum relation relation, bool learns)
{
    struct model *model = model_new(scoring, normalizer, before);
    struct result result = {.parameters = rapt_module_parameter_count(&model->module)};
    rapt_seed((uint64_t)seed + 1);
    if (learns) {
        rapt_optimizer *adam = rapt_adam_new(&model->module, &(rapt_adam_config){.learning_rate = 0.01});
        result.milliseconds = INFINITY;
        for (int64_t step = 0; step < steps; step++) {
            RAPT_SCOPE;
            double start = rapt_seconds();
            struct batch batch = draw_batch(relation);
            rapt_backward(loss_of(shares_of(model, &batch), &batch));
            rapt_optimizer_step(adam);
            result.milliseconds = fmin(result.milliseconds, 1e3 * (rapt_seconds() - start));
        }
        rapt_optimizer_free(adam);
    }
    rapt_seed((uint64_t)seed + 2);
    test(model, relation, &result);
    rapt_module_free(&model->module);
    return result;
}

struct row {
    const char *name;
    rapt_scoring *plain, *behind; /* a projection; NULL: its gradient is 0 */
    enum before before;           /* without projection */
    bool learns;                  /* without projection */
};

static void compare_all(void)
{
    enum {
        DOT,
        SCALED_DOT,
        PADDED_DOT,
        BILINEAR,
        ADDITIVE,
        COSINE,
        GAUSSIAN,
        RELATIVE,
        KERNELS,
        FUNCTIONS = KERNELS + 4
    };
    const struct row rows[FUNCTIONS] =
        {{"dot product", rapt_dot_product_scoring_new(), rapt_dot_product_scoring_new(), PADDED, false},
         {"scaled dot product", rapt_scaled_dot_product_scoring_new(), rapt_scaled_dot_product_scoring_new(), PADDED,
          false},
         {"padded dot product", rapt_padded_dot_product_scoring_new(), rapt_padded_dot_product_scoring_new(),
          AS_THEY_ARE, false},
         {"bilinear", rapt_bilinear_scoring_new(QUERY, KEY), rapt_bilinear_scoring_new(KEY, KEY), AS_THEY_ARE, true},
         {"additive, 32 hidden", rapt_additive_scoring_new(QUERY, KEY, 32), rapt_additive_scoring_new(KEY, KEY, 32),
          AS_THEY_ARE, true},
         {"cosine", rapt_cosine_scoring_new(0.2, true), rapt_cosine_scoring_new(0.2, true), PADDED, true},
         {"Gaussian", rapt_gaussian_scoring_new(1, true), rapt_gaussian_scoring_new(1, true), PADDED, true},
         {"relative", rapt_relative_scoring_new(KEY, 0, 4), rapt_relative_scoring_new(KEY, 0, 4), PADDED, true},
         {"Gaussian kernel", rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_GAUSSIAN, 1, true),
          rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_GAUSSIAN, 1, true), PADDED, true},
         {"boxcar kernel", rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_BOXCAR, 4, false), NULL, PADDED,
          false},
         {"constant kernel", rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_CONSTANT, 1, false), NULL,
          PADDED, false},
         {"Epanechnikov kernel", rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_EPANECHNIKOV, 8, true),
          rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_EPANECHNIKOV, 8, true), PADDED, true}};
    printf("%d pairs, queries of %d numbers, keys of %d: k = A q + noise; %lld steps;\nthe loss of chance is %.3f\n\n",
           PAIRS, QUERY, KEY, (long long)steps, log(PAIRS));
    printf("%-20s| queries as they are, or padded | behind a projection that is learned\n", "");
    printf("%-20s| parameters   loss   accuracy   | parameters   loss   accuracy  ms/step\n", "scoring function");
    struct result plain[FUNCTIONS], behind[FUNCTIONS];
    for (int i = 0; i < FUNCTIONS; i++) {
        rapt_normalizer *normalizer = i < KERNELS ? rapt_masked_softmax : rapt_masked_sum;
        plain[i] = train_and_test(rows[i].plain, normalizer, rows[i].before, LINEAR, rows[i].learns);
        printf("%-20s|%11lld%8.3f%9.3f   |", rows[i].name, (long long)plain[i].parameters, plain[i].loss,
               plain[i].accuracy);
        if (!rows[i].behind) {
            puts(" its gradient is 0");
            continue;
        }
        behind[i] = train_and_test(rows[i].behind, normalizer, PROJECTED, LINEAR, true);
        printf("%11lld%8.3f%9.3f%11.2f\n", (long long)behind[i].parameters, behind[i].loss, behind[i].accuracy,
               behind[i].milliseconds);
    }
    claim(fabs(behind[DOT].loss - plain[BILINEAR].loss) < 0.1, "a dot product behind a projection is bilinear");
    claim(behind[GAUSSIAN].accuracy > 0.9 && behind[GAUSSIAN].loss < behind[DOT].loss,
          "what a dot product lacks, and a Gaussian has: -|k|^2 / 2, for the keys' length");
    claim(plain[BILINEAR].loss < plain[PADDED_DOT].loss / 2,
          "padding fixes a relation, not this one (loss %.3f); a learned M finds it (%.3f)", plain[PADDED_DOT].loss,
          plain[BILINEAR].loss);
}

static double largest(rapt_tensor *x)
{
    return rapt_item(rapt_max(rapt_abs(x), RAPT_ALL_AXES, false));
}

/* Is the padded dot product a bilinear form? */
static void ask_padding(void)
{
    RAPT_SCOPE;
    puts("\nPad the shorter vector, or learn M?");
    rapt_seed((uint64_t)seed + 3);
    struct batch batch = draw_batch(LINEAR);
    rapt_scoring *padded = rapt_padded_dot_product_scoring_new(), *form = rapt_bilinear_scoring_new(QUERY, KEY);
    /* M = [I 0] / √d */
    rapt_copy(rapt_module_find(&form->module, "M"),
              rapt_mul_scalar(rapt_pad(rapt_eye(RAPT_FLOAT32, QUERY), 1, 0, KEY - QUERY, 0), 1 / sqrt(KEY)));
    double difference =
        largest(rapt_sub(rapt_score(padded, batch.queries, batch.keys), rapt_score(form, batch.queries, batch.keys)));
    claim(difference < 1e-5, "the padded dot product is bilinear with M = [I 0] / sqrt(d) (but for %.0e)", difference);
    struct result learned = train_and_test(form, rapt_masked_softmax, AS_THEY_ARE, LINEAR, true);
    struct result fixed = train_and_test(padded, rapt_masked_softmax, AS_THEY_ARE, LINEAR, false);
    claim(learned.loss < fixed.loss / 2, "learned from there on, M brings the loss from %.3f to %.3f", fixed.loss,
          learned.loss);
}

/* Does a dot product span more than a sum of vectors? */
static void ask_spaces(void)
{
    puts("\nDot product or additive: which spans more?  accuracy where  k = A q   k = A |q|");
    static const char *const names[] = {"bilinear", "additive, without bias as in the book",
                                        "additive, a 1 appended to the queries"};
    double accuracy[3][2], sums[2];
    for (int i = 0; i < 3; i++) {
        for (enum relation relation = LINEAR; relation <= EVEN; relation++) {
            rapt_scoring *scoring =
                i == 0 ? rapt_bilinear_scoring_new(QUERY, KEY) : rapt_additive_scoring_new(QUERY + (i == 2), KEY, 32);
            accuracy[i][relation] =
                train_and_test(scoring, rapt_masked_softmax, i == 2 ? WITH_ONE : AS_THEY_ARE, relation, true).accuracy;
        }
        printf("  %-50s%18.3f%12.3f\n", names[i], accuracy[i][LINEAR], accuracy[i][EVEN]);
    }
    RAPT_SCOPE;
    struct batch batch = draw_batch(LINEAR);
    for (int i = 0; i < 2; i++) {
        rapt_scoring *scoring =
            i == 0 ? rapt_bilinear_scoring_new(QUERY, KEY) : rapt_additive_scoring_new(QUERY, KEY, 32);
        rapt_tensor *keys = i == 0 ? batch.keys : rapt_neg(batch.keys);
        sums[i] = largest(rapt_add(rapt_score(scoring, batch.queries, batch.keys),
                                   rapt_score(scoring, rapt_neg(batch.queries), keys)));
        rapt_module_free(&scoring->module);
    }
    const double chance = 1.0 / PAIRS;
    claim(sums[0] < 1e-5 && sums[1] < 1e-5,
          "neither: q'Mk is odd in q, a(-q, k) = -a(q, k), additive in both, a(-q, -k) = -a(q, k)");
    claim(accuracy[0][EVEN] < 2 * chance && accuracy[1][EVEN] > 6 * chance,
          "bilinear cannot find what belongs to q and -q alike, and additive can;");
    claim(accuracy[1][LINEAR] < 2 * chance && accuracy[0][LINEAR] > 6 * chance,
          "additive cannot find k for q and -k for -q, and bilinear can,");
    claim(accuracy[2][LINEAR] > accuracy[0][LINEAR], "until a 1 among its inputs gives it a bias; then it does better");
}

static void print_shape(const char *name, const rapt_tensor *x)
{
    char text[64];
    printf("  %-54s%s\n", name, rapt_describe(x, text, sizeof text));
}

/* What does broadcasting do in additive attention? */
static void ask_broadcasting(void)
{
    RAPT_SCOPE;
    puts("\nBroadcasting in additive attention, B = 2, Q = 3, K = 5, h = 8:");
    rapt_tensor *queries = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 3, QUERY)),
                *keys = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 5, KEY));
    rapt_scoring *scoring = rapt_additive_scoring_new(QUERY, KEY, 8);
    rapt_tensor *q = rapt_unsqueeze(rapt_affine(queries, rapt_module_find(&scoring->module, "W_q.weight"), NULL), 2);
    rapt_tensor *k = rapt_unsqueeze(rapt_affine(keys, rapt_module_find(&scoring->module, "W_k.weight"), NULL), 1);
    rapt_tensor *features = rapt_tanh(rapt_add(q, k));
    rapt_tensor *scores =
        rapt_squeeze(rapt_affine(features, rapt_module_find(&scoring->module, "w_v.weight"), NULL), -1);
    print_shape("W_q q, unsqueezed: (B, Q, 1, h)", q);
    print_shape("W_k k, unsqueezed: (B, 1, K, h)", k);
    print_shape("features = tanh(their sum): (B, Q, K, h)", features);
    print_shape("scores = features . w_v: (B, Q, K)", scores);
    double difference = largest(rapt_sub(scores, rapt_score(scoring, queries, keys)));
    claim(difference < 1e-5, "it adds each query to each key; the library's scores are these (but for %.0e)",
          difference);
    rapt_module_free(&scoring->module);
}

/* Why -10^6, and not 10^-6? */
static void ask_million(void)
{
    RAPT_SCOPE;
    puts("\nWhy -1e6, and not 1e-6? Weights of the scores 1, 2, 3, 4, the last two padding:");
    const double fills[] = {-1e6, 1e-6, NAN};
    static const char *const names[] = {"overwritten with -1e6", "overwritten with 1e-6",
                                        "this library, NaN in the padding"};
    double weights[3][4];
    rapt_tensor *scores = rapt_reshape(rapt_arange(RAPT_FLOAT64, 1, 5, 1), RAPT_SHAPE(1, 1, 4));
    const rapt_mask *mask = RAPT_MASK(.valid_lengths = rapt_full(RAPT_INT64, RAPT_SHAPE(1), 2));
    rapt_tensor *seen = rapt_mask_seen(mask, scores);
    for (int i = 0; i < 3; i++) {
        rapt_tensor *filled = rapt_where(seen, scores, rapt_scalar(RAPT_FLOAT64, fills[i]));
        rapt_tensor *softmax = i < 2 ? rapt_softmax(filled, -1) : rapt_masked_softmax(filled, mask);
        printf("  %-33s", names[i]);
        for (int64_t k = 0; k < 4; k++) printf("%9.4f", weights[i][k] = rapt_at(softmax, (int64_t[]){0, 0, k}));
        putchar('\n');
    }
    claim(weights[0][2] == 0 && weights[1][2] > 0.05,
          "exp(-1e6) is 0, but exp(1e-6) is 1: padding weighs as a score of 0 would");
    claim(fabs(weights[2][1] - weights[0][1]) < 1e-15 && weights[2][2] == 0,
          "what is not read weighs 0, too, whatever it holds");
}

int main(int argc, char **argv)
{
    const struct command_option options[] =
        {{.name = "--steps",
          .help = "of training, for each model; the claims are about 400 or more",
          .integer = &steps,
          .integer_range = {1, 1000000}},
         {.name = "--seed", .help = "of the random numbers", .integer = &seed, .integer_range = {0, INT64_MAX / 2}},
         {0}};
    const struct command_line line =
        {.program = "scoring",
         .summary = "All scoring functions on one retrieval task, and questions about them answered by numbers.",
         .options = options};
    enum command_line_result result = command_line_parse(&line, argc, argv);
    if (result != COMMAND_LINE_RUN) return result;
    rapt_on_error(rapt_exit_on_error);
    rapt_seed((uint64_t)seed);
    relating = rapt_mul_scalar(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(QUERY, KEY)), 1 / sqrt(QUERY));
    compare_all();
    ask_padding();
    ask_spaces();
    ask_broadcasting();
    ask_million();
    return claim_status("scoring");
}
