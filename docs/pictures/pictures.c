/* Draws what the guides show and no example does: pictures DIRECTORY writes its files there. */
#include <stdio.h>
#include <stdlib.h>

#include <rapt.h>

#include "picture.h"

enum { PLACES = 16, MASKS = 8, BATCH = 32, HALF = 12, WORDS = 24, STEPS = 200, LAYERS = 2, HEADS = 2, XOR_STEPS = 350 };

/* The one of heatmap and chart that is not NULL. */
static void draw(const char *directory, const char *name, const struct heatmap *heatmap, const struct chart *chart)
{
    char path[4096], error[512];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    if (heatmap ? picture_heatmaps(path, heatmap, error, sizeof error)
                : picture_chart(path, chart, error, sizeof error))
        return;
    fprintf(stderr, "pictures: %s\n", error);
    exit(EXIT_FAILURE);
}

/* The losses of the first loop. */
static void draw_loss(const char *directory)
{
    rapt_seed(1);
    rapt_tensor *x = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(4, 2), (float[]){0, 0, 0, 1, 1, 0, 1, 1});
    rapt_tensor *target = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(4, 1), (float[]){0, 1, 1, 0});
    rapt_linear *hidden = rapt_linear_new(2, 16, RAPT_BIAS), *output = rapt_linear_new(16, 1, RAPT_BIAS);
    rapt_sequential *model = RAPT_SEQUENTIAL(&hidden->module, rapt_activation_new("Tanh", rapt_tanh), &output->module);
    rapt_optimizer *adam = rapt_adam_new(&model->module, &(rapt_adam_config){.learning_rate = 1e-2});
    static double steps[XOR_STEPS], losses[XOR_STEPS];
    for (int step = 0; step < XOR_STEPS; step++) {
        RAPT_SCOPE;
        rapt_tensor *loss = rapt_mse_loss(rapt_sequential_forward(model, x), target, RAPT_REDUCE_MEAN);
        rapt_backward(loss);
        rapt_optimizer_step(adam);
        steps[step] = step + 1, losses[step] = rapt_item(loss);
    }
    const struct chart_series series = {NULL, steps, losses, XOR_STEPS, false};
    draw(directory, "first_loss.png", NULL, &(struct chart){&series, 1, NULL, "step", "loss", false, true});
    rapt_optimizer_free(adam);
    rapt_module_free(&model->module);
}

/* Every fourth key is for all queries, the others for their neighbours. */
static void see_landmarks(const rapt_mask_tile *tile, uint8_t *seen)
{
    for (int64_t row = 0; row < tile->rows; row++)
        for (int64_t column = 0; column < tile->columns; column++) {
            const int64_t key = tile->first_key + column;
            seen[row * tile->columns + column] = key % 4 == 0 || llabs(key - tile->queries[row]) <= 1;
        }
}

static void draw_masks(const char *directory)
{
    rapt_tensor *lengths = rapt_scalar(RAPT_INT64, 10), *prefix = rapt_scalar(RAPT_INT64, 5);
    lengths = rapt_reshape(lengths, RAPT_SHAPE(1)), prefix = rapt_reshape(prefix, RAPT_SHAPE(1));
    rapt_tensor *documents =
        rapt_from(RAPT_INT64, RAPT_SHAPE(PLACES), (int64_t[PLACES]){0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2});
    const struct {
        const char *title;
        rapt_mask mask;
    } shown[MASKS] = {
        {"valid_lengths", {.valid_lengths = lengths}},
        {"causal", {.causal = true}},
        {"causal, window_left", {.causal = true, .window_left = 4}},
        {"causal, prefix_lengths", {.causal = true, .prefix_lengths = prefix}},
        {"window", {.window = 3}},
        {"block, blocks_before", {.block = 4, .blocks_before = 1}},
        {"causal, documents", {.causal = true, .documents = documents}},
        {"rule", {.rule = {.see = see_landmarks}}},
    };
    static float values[MASKS][PLACES * PLACES];
    const char *titles[MASKS];
    rapt_tensor *scores = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(1, PLACES, PLACES));
    for (int m = 0; m < MASKS; m++) {
        titles[m] = shown[m].title;
        const bool *seen = rapt_data(rapt_contiguous(rapt_mask_seen(&shown[m].mask, scores)));
        for (int i = 0; i < PLACES * PLACES; i++) values[m][i] = seen[i];
    }
    for (int half = 0; half < 2; half++) {
        struct heatmap heatmap = {.values = values[half * MASKS / 2],
                                  .rows = 1,
                                  .columns = MASKS / 2,
                                  .queries = PLACES,
                                  .keys = PLACES,
                                  .titles = titles + half * MASKS / 2,
                                  .x_label = "keys",
                                  .y_label = "queries"};
        draw(directory, half ? "masks_more.png" : "masks.png", &heatmap, NULL);
    }
}

/* Words at random, twice: (BATCH, 2 HALF). */
static rapt_tensor *draw_text(void)
{
    rapt_tensor *half = rapt_randint(0, WORDS, RAPT_SHAPE(BATCH, HALF));
    return rapt_concat(2, (rapt_tensor *[]){half, half}, 1);
}

static void draw_heads(const char *directory)
{
    rapt_seed(1);
    rapt_gpt *gpt = rapt_gpt_new(&(rapt_gpt_config){.vocabulary = WORDS,
                                                    .context = 2 * HALF,
                                                    .hidden = 64,
                                                    .layers = LAYERS,
                                                    .heads = HEADS,
                                                    .bias = true,
                                                    .positions = RAPT_POSITIONS_LEARNED});
    rapt_optimizer *adam = rapt_adamw_new(&gpt->module, &(rapt_adam_config){.learning_rate = 3e-3});
    for (int step = 0; step < STEPS; step++) {
        RAPT_SCOPE;
        rapt_tensor *text = draw_text();
        rapt_backward(
            rapt_gpt_loss(gpt, rapt_slice(text, 1, 0, 2 * HALF - 1, 1), rapt_slice(text, 1, 1, 2 * HALF, 1), NULL));
        rapt_optimizer_step_clipped(adam, 1, NULL);
    }
    {
        RAPT_NO_GRADIENT;
        rapt_attention_keep_weights(&gpt->module, true);
        rapt_gpt_forward(gpt, draw_text(), NULL);
    }
    static float values[LAYERS][HEADS * 4 * HALF * HALF];
    for (int layer = 0; layer < LAYERS; layer++) {
        rapt_tensor *weights = gpt->blocks->layers[layer]->self_attn->pooling->weights; /* (BATCH, HEADS, Q, K) */
        const float *first = rapt_data(rapt_contiguous(rapt_select(weights, 0, 0)));
        for (int i = 0; i < HEADS * 4 * HALF * HALF; i++) values[layer][i] = first[i];
    }
    const char *const titles[] = {"first layer, head 1", "first layer, head 2", "second layer, head 1",
                                  "second layer, head 2"};
    draw(directory, "heads.png",
         &(struct heatmap){.values = values[0],
                           .rows = 1,
                           .columns = LAYERS * HEADS,
                           .queries = 2 * HALF,
                           .keys = 2 * HALF,
                           .titles = titles,
                           .x_label = "keys",
                           .y_label = "queries"},
         NULL);
    rapt_optimizer_free(adam);
    rapt_module_free(&gpt->module);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("usage: pictures DIRECTORY\n", stderr);
        return 2;
    }
    rapt_on_error(rapt_exit_on_error);
    draw_loss(argv[1]);
    draw_masks(argv[1]);
    draw_heads(argv[1]);
}
