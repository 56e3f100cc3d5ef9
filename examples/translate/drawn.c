/* Pictures of a run: where the decoder looked, and how the losses fell. */
#include "drawn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "picture.h"
#include "text.h"

bool translate_sentence(struct model *model, const struct vocabulary *source, const struct vocabulary *target,
                        int64_t num_steps, const char *sentence, struct translation *t)
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
    rapt_tensor *translated = model_translate(model, &batch, target->begin, &t->weights);
    if (!translated) return false;
    memcpy(t->ids, rapt_data(translated), (size_t)num_steps * sizeof *t->ids);
    t->text = vocabulary_decode(target, t->ids, num_steps);
    rapt_retain(t->weights);
    return t->text || rapt_fail(RAPT_ERROR_MEMORY, "translate", "no memory for a translation");
}

void translation_free(struct translation *t)
{
    free(t->text);
    rapt_release(t->weights);
}

/* The tokens of a preprocessed sentence and <eos>: pointers into a copy, both freed with *copy and the result. */
static const char **token_list(const char *text, int64_t count, char **copy)
{
    const char **tokens = calloc((size_t)count, sizeof *tokens);
    *copy = strdup(text);
    if (!tokens || !*copy) return tokens;
    int64_t used = 0;
    for (char *token = strtok(*copy, " "); token && used < count; token = strtok(NULL, " ")) tokens[used++] = token;
    while (used < count) tokens[used++] = "<eos>";
    return tokens;
}

/* The part of the weights that has words: the first `queries` rows and `keys` columns. */
static float *cut(const rapt_tensor *weights, int64_t queries, int64_t keys)
{
    float *values = calloc((size_t)(queries * keys), sizeof *values);
    for (int64_t q = 0; values && q < queries; q++)
        for (int64_t k = 0; k < keys; k++) values[q * keys + k] = (float)rapt_at(weights, (int64_t[]){0, q, k});
    return values;
}

static bool draw(const struct run *run, const char *source, const struct translation *t)
{
    int64_t keys = t->valid_length, queries = (int64_t)text_count_tokens(t->text) + 1;
    if (queries > run->pairs->num_steps) queries = run->pairs->num_steps;
    char *source_copy = NULL, *target_copy = NULL, path[4096], error[600];
    const char **key_labels = token_list(source, keys, &source_copy);
    const char **query_labels = token_list(t->text, queries, &target_copy);
    float *values = cut(t->weights, queries, keys);
    bool good = key_labels && query_labels && source_copy && target_copy && values;
    if (!good) rapt_fail(RAPT_ERROR_MEMORY, "translate", "no memory for a picture");
    struct heatmap heatmap = {.values = values,
                              .rows = 1,
                              .columns = 1,
                              .queries = queries,
                              .keys = keys,
                              .query_labels = query_labels,
                              .key_labels = key_labels,
                              .x_label = "source",
                              .y_label = "translation"};
    static const char *const names[] = {"attention.svg", "attention.png"};
    for (int i = 0; i < 2 && good; i++) {
        good = picture_heatmaps(run_path(run->options, names[i], path, sizeof path), &heatmap, error, sizeof error);
        if (!good) rapt_fail(RAPT_ERROR_FILE, "translate", "%s", error);
    }
    free(key_labels);
    free(query_labels);
    free(source_copy);
    free(target_copy);
    free(values);
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
                            &translation))
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
    const struct chart_series series[] = {{"training", epoch, training, epochs},
                                          {"validation", epoch, validation, epochs}};
    const struct chart chart = {.series = series, .num_series = 2, .x_label = "epoch", .y_label = "loss"};
    char path[4096], error[600];
    bool good = picture_chart(run_path(run->options, "loss.svg", path, sizeof path), &chart, error, sizeof error);
    if (!good) rapt_fail(RAPT_ERROR_FILE, "translate", "%s", error);
    free(work);
    return good;
}
