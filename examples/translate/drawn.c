/* Pictures of a run: where the decoder looked, and how the losses fell. */
#include "drawn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "picture.h"
#include "text.h"

bool translate_sentence(struct model *model, const struct vocabulary *source, const struct vocabulary *target,
                        int64_t num_steps, const char *sentence, int beams, struct translation *t)
{
    RAPT_SCOPE;
    *t = (struct translation){0};
    struct translate_error error;
    int64_t *ids = calloc((size_t)num_steps, sizeof *ids);
    if (!ids) return rapt_fail(RAPT_ERROR_MEMORY, "translate", "no memory for %lld tokens", (long long)num_steps);
    bool good = pairs_encode_source(source, num_steps, sentence, ids, &t->valid_length, &error);
    struct batch batch = good ? batch_from_sentence(ids, num_steps, t->valid_length) : (struct batch){0};
    free(ids);
    if (!good) return rapt_fail(RAPT_ERROR_VALUE, "translate", "%s", error.message);
    rapt_tensor *translated = model_translate(model, &batch, target, beams, beams > 1 ? NULL : &t->maps);
    if (!translated) return false;
    for (int i = 0; i < t->maps.count; i++) rapt_retain(t->maps.map[i].weights);
    memcpy(t->ids, rapt_data(translated), (size_t)num_steps * sizeof *t->ids);
    t->text = vocabulary_decode(target, t->ids, num_steps);
    return t->text || rapt_fail(RAPT_ERROR_MEMORY, "translate", "no memory for a translation");
}

void translation_free(struct translation *t)
{
    free(t->text);
    for (int i = 0; i < t->maps.count; i++) rapt_release(t->maps.map[i].weights);
}

/* The tokens of a sentence, and <eos>. */
struct tokens {
    const char **labels;
    char *copy; /* what the labels point into */
    int64_t count;
};

static struct tokens tokens_of(const char *text, int64_t count)
{
    struct tokens t = {.labels = calloc((size_t)count, sizeof *t.labels), .copy = strdup(text)};
    if (!t.labels || !t.copy) return t;
    for (char *token = strtok(t.copy, " "); token && t.count < count; token = strtok(NULL, " "))
        t.labels[t.count++] = token;
    while (t.count < count) t.labels[t.count++] = "<eos>";
    return t;
}

/* What the decoder was given when it wrote the translation: <bos>, then all but its last token. Frees none of the labels. */
static struct tokens inputs_of(const struct tokens *translation)
{
    struct tokens t = {.labels = calloc((size_t)translation->count, sizeof *t.labels), .count = translation->count};
    for (int64_t i = 0; t.labels && i < t.count; i++) t.labels[i] = i == 0 ? "<bos>" : translation->labels[i - 1];
    return t;
}

static void tokens_free(struct tokens *t)
{
    free(t->labels);
    free(t->copy);
}

/* The part of weights (rows, columns, queries, keys) that has words: the first queries and keys. */
static float *cut(const rapt_tensor *weights, int64_t queries, int64_t keys)
{
    int64_t rows = rapt_size(weights, 0), columns = rapt_size(weights, 1);
    float *values = calloc((size_t)(rows * columns * queries * keys), sizeof *values), *next = values;
    for (int64_t r = 0; values && r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            for (int64_t q = 0; q < queries; q++)
                for (int64_t k = 0; k < keys; k++) *next++ = (float)rapt_at(weights, (int64_t[]){r, c, q, k});
    return values;
}

static const char *const head_titles[] = {"Head 1", "Head 2", "Head 3", "Head 4",
                                          "Head 5", "Head 6", "Head 7", "Head 8"};

/* NAME.svg and NAME.png. */
static bool draw_map(const struct run *run, const struct attention_map *map, const struct tokens *source,
                     const struct tokens *translation, const struct tokens *inputs)
{
    const struct tokens *queries = strcmp(map->query_axis, "source") == 0 ? source : translation;
    const struct tokens *keys = strcmp(map->key_axis, "source") == 0  ? source
                                : strcmp(map->key_axis, "input") == 0 ? inputs
                                                                      : translation;
    int64_t columns = rapt_size(map->weights, 1);
    float *values = cut(map->weights, queries->count, keys->count);
    if (!values) return rapt_fail(RAPT_ERROR_MEMORY, "translate", "no memory for a picture");
    bool has_titles = columns > 1 && columns <= (int64_t)(sizeof head_titles / sizeof *head_titles);
    const struct heatmap heatmap = {.values = values,
                                    .rows = rapt_size(map->weights, 0),
                                    .columns = columns,
                                    .queries = queries->count,
                                    .keys = keys->count,
                                    .titles = has_titles ? head_titles : NULL,
                                    .query_labels = queries->labels,
                                    .key_labels = keys->labels,
                                    .x_label = map->key_axis,
                                    .y_label = map->query_axis};
    static const char *const endings[] = {"svg", "png"};
    bool good = true;
    for (int i = 0; i < 2 && good; i++) {
        char name[64], path[4096], error[600];
        snprintf(name, sizeof name, "%s.%s", map->name, endings[i]);
        good = picture_heatmaps(run_path(run->options, name, path, sizeof path), &heatmap, error, sizeof error);
        if (!good) rapt_fail(RAPT_ERROR_FILE, "translate", "%s", error);
    }
    free(values);
    return good;
}

static bool draw(const struct run *run, const char *sentence, const struct translation *t)
{
    int64_t length = (int64_t)text_count_tokens(t->text) + 1;
    if (length > run->pairs->num_steps) length = run->pairs->num_steps;
    struct tokens source = tokens_of(sentence, t->valid_length), translation = tokens_of(t->text, length);
    struct tokens inputs = inputs_of(&translation);
    bool good = source.count > 0 && translation.count > 0 && inputs.labels;
    if (!good) rapt_fail(RAPT_ERROR_MEMORY, "translate", "no memory for a picture");
    for (int i = 0; good && i < t->maps.count; i++)
        good = draw_map(run, &t->maps.map[i], &source, &translation, &inputs);
    tokens_free(&source);
    tokens_free(&translation);
    tokens_free(&inputs);
    return good;
}

/* Of the first ten test (or, without them, validation) sentences the longest. */
static const char *sentence_to_draw(const struct run *run)
{
    const struct pairs *p = run->pairs;
    if (run->options->is_book) return "i'm home .";
    int64_t first = p->num_train + (p->num_test > 0 ? p->num_validation : 0);
    int64_t count = p->num_train + p->num_validation + p->num_test;
    if (first >= count) first = 0;
    int64_t best = first;
    for (int64_t i = first; i < count && i < first + 10; i++)
        if (p->valid_lengths[i] > p->valid_lengths[best]) best = i;
    return p->source_texts[best];
}

bool draw_attention(struct run *run)
{
    struct translation translation;
    const struct pairs *pairs = run->pairs;
    const char *sentence = sentence_to_draw(run);
    if (!translate_sentence(run->model, pairs->source_vocabulary, pairs->target_vocabulary, pairs->num_steps, sentence,
                            1, &translation))
        return false;
    bool good = draw(run, sentence, &translation);
    translation_free(&translation);
    return good;
}

bool draw_losses(const struct run *run)
{
    int64_t epochs = run->step / run->steps_per_epoch;
    if (epochs == 0) return true; /* stopped before the first value */
    const double *losses = rapt_data(run->curves);
    double *work = calloc((size_t)(3 * epochs), sizeof *work);
    if (!work) return rapt_fail(RAPT_ERROR_MEMORY, "translate", "no memory for a picture");
    double *epoch = work, *training = work + epochs, *validation = training + epochs;
    for (int64_t i = 0; i < epochs; i++) {
        epoch[i] = (double)(i + 1);
        training[i] = losses[2 * i];
        validation[i] = losses[2 * i + 1];
    }
    const struct chart_series series[] = {{"training", epoch, training, epochs, false},
                                          {"validation", epoch, validation, epochs, false}};
    const struct chart chart = {.series = series, .num_series = 2, .x_label = "epoch", .y_label = "loss"};
    char path[4096], error[600];
    bool good = picture_chart(run_path(run->options, "loss.svg", path, sizeof path), &chart, error, sizeof error);
    if (!good) rapt_fail(RAPT_ERROR_FILE, "translate", "%s", error);
    free(work);
    return good;
}
