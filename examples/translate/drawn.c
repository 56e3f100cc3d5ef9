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

/* What the decoder was given when it wrote the translation: <bos>, then all but its last token. Frees none of the
 * labels. */
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

/* "WORD 1", "WORD 2", …; one allocation, freed by the caller. */
static const char **number_titles(const char *word, int64_t count)
{
    enum { room = 32 };
    const char **titles = malloc((size_t)count * (sizeof *titles + room));
    for (int64_t i = 0; titles && i < count; i++) {
        char *text = (char *)(titles + count) + i * room;
        snprintf(text, room, "%s %lld", word, (long long)i + 1);
        titles[i] = text;
    }
    return titles;
}

/* NAME.svg and NAME.png in the folder of the run, and a line that says so. */
static bool draw_files(const struct run *run, const char *name, const char *what, const struct heatmap *heatmap,
                       const struct chart *chart)
{
    static const char *const endings[] = {"svg", "png"};
    char file[64], path[4096], error[600];
    for (int i = 0; i < 2; i++) {
        snprintf(file, sizeof file, "%s.%s", name, endings[i]);
        run_path(run->options, file, path, sizeof path);
        if (!(heatmap ? picture_heatmaps(path, heatmap, error, sizeof error)
                      : picture_chart(path, chart, error, sizeof error)))
            return rapt_fail(RAPT_ERROR_FILE, "translate", "%s", error);
    }
    printf("drawn: %s: %s and %s.svg\n", what, path, name);
    return true;
}

/* The map, or the beginning of one that is too large, in its files, or on the terminal. */
static bool show_map(const struct run *run, const struct attention_map *map, const struct heatmap *heatmap,
                     bool in_files, bool is_whole)
{
    char what[96], error[600];
    const bool has_room = heatmap->queries > 0 && heatmap->keys > 0;
    snprintf(what, sizeof what, "%sattention of the %s to the %s", is_whole || !has_room ? "" : "beginning of the ",
             map->query_axis, map->key_axis);
    if (!has_room) return printf("not drawn: %s: so many layers or heads have no room in a picture\n", what), true;
    if (in_files) return draw_files(run, map->name, what, heatmap, NULL);
    return picture_print_heatmaps(stdout, heatmap, error, sizeof error) ||
           rapt_fail(RAPT_ERROR_FILE, "translate", "%s", error);
}

/* The words of a sentence, of its translation, and of what the decoder was given. */
struct words {
    struct tokens source, translation, inputs;
};

/* False after an error; in either case words_free has to follow. */
static bool words_of(const struct run *run, const char *sentence, const struct translation *t, struct words *w)
{
    int64_t length = (int64_t)text_count_tokens(t->text) + 1;
    if (length > run->pairs->num_steps) length = run->pairs->num_steps;
    w->source = tokens_of(sentence, t->valid_length);
    w->translation = tokens_of(t->text, length);
    w->inputs = inputs_of(&w->translation);
    return (w->source.count > 0 && w->translation.count > 0 && w->inputs.labels) ||
           rapt_fail(RAPT_ERROR_MEMORY, "translate", "no memory for a picture");
}

static void words_free(struct words *w)
{
    tokens_free(&w->source);
    tokens_free(&w->translation);
    tokens_free(&w->inputs);
}

/* The labels of a map's axis. */
static const struct tokens *words_on(const char *axis, const struct words *w)
{
    return strcmp(axis, "source") == 0 ? &w->source : strcmp(axis, "input") == 0 ? &w->inputs : &w->translation;
}

/* True: there were more. */
static bool keep_first(struct tokens *tokens, int64_t count)
{
    const bool cuts = tokens->count > count;
    if (cuts) tokens->count = count;
    return cuts;
}

static bool draw_map(const struct run *run, const struct attention_map *map, const struct words *words, bool in_files)
{
    struct tokens queries = *words_on(map->query_axis, words), keys = *words_on(map->key_axis, words);
    int64_t rows = rapt_size(map->weights, 0), columns = rapt_size(map->weights, 1);
    const bool cuts_queries = in_files && keep_first(&queries, picture_room(rows)),
               cuts_keys = in_files && keep_first(&keys, picture_room(columns));
    bool is_grid = rows > 1 || columns > 1; /* of layers and heads */
    float *values = cut(map->weights, queries.count, keys.count);
    const char **layers = number_titles("Layer", rows), **heads = number_titles("Head", columns);
    const struct heatmap heatmap = {.values = values,
                                    .rows = rows,
                                    .columns = columns,
                                    .queries = queries.count,
                                    .keys = keys.count,
                                    .titles = is_grid ? heads : NULL,
                                    .row_titles = is_grid ? layers : NULL,
                                    .query_labels = queries.labels,
                                    .key_labels = keys.labels,
                                    .x_label = map->key_axis,
                                    .y_label = map->query_axis};
    bool good = values && layers && heads;
    if (!good) rapt_fail(RAPT_ERROR_MEMORY, "translate", "no memory for a picture");
    good = good && show_map(run, map, &heatmap, in_files, !cuts_queries && !cuts_keys);
    free(values);
    free(layers);
    free(heads);
    return good;
}

static bool draw(struct run *run, const char *sentence, const struct translation *t)
{
    struct words words;
    bool good = words_of(run, sentence, t, &words);
    printf("attention in \"%s\" -> \"%s\":\n", sentence, t->text);
    const struct attention_map *maps = t->maps.map;
    for (int i = 0; good && i < t->maps.count; i++) /* where the translation looks, on the terminal, too */
        if (strcmp(maps[i].name, "attention") == 0) good = draw_map(run, &maps[i], &words, false);
    for (int i = 0; good && picture_has_files && i < t->maps.count; i++) good = draw_map(run, &maps[i], &words, true);
    words_free(&words);
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

static bool put_on_page(struct run *run, const char *sentence, const struct translation *t)
{
    struct words words;
    struct web_page_map maps[most_maps];
    float *weights[most_maps] = {0};
    bool good = words_of(run, sentence, t, &words);
    for (int i = 0; good && i < t->maps.count; i++) {
        const struct attention_map *map = &t->maps.map[i];
        const struct tokens *queries = words_on(map->query_axis, &words), *keys = words_on(map->key_axis, &words);
        weights[i] = cut(map->weights, queries->count, keys->count);
        good = weights[i] || rapt_fail(RAPT_ERROR_MEMORY, "translate", "no memory for a picture");
        maps[i] = (struct web_page_map){.query_axis = map->query_axis,
                                        .key_axis = map->key_axis,
                                        .query_labels = queries->labels,
                                        .key_labels = keys->labels,
                                        .layers = rapt_size(map->weights, 0),
                                        .heads = rapt_size(map->weights, 1),
                                        .queries = queries->count,
                                        .keys = keys->count,
                                        .weights = weights[i]};
    }
    if (good) web_page_attention(&run->page, run->step, sentence, t->text, t->maps.count, maps);
    for (int i = 0; i < t->maps.count; i++) free(weights[i]);
    words_free(&words);
    return good;
}

/* What is done with the sentence of the pictures and its translation. */
static bool with_translation(struct run *run, bool (*function)(struct run *, const char *, const struct translation *))
{
    struct translation translation;
    const struct pairs *pairs = run->pairs;
    const char *sentence = sentence_to_draw(run);
    bool good = translate_sentence(run->model, pairs->source_vocabulary, pairs->target_vocabulary, pairs->num_steps,
                                   sentence, 1, &translation) &&
                function(run, sentence, &translation);
    translation_free(&translation);
    return good;
}

bool draw_attention(struct run *run)
{
    return with_translation(run, draw);
}

bool draw_attention_on_page(struct run *run)
{
    return with_translation(run, put_on_page);
}

bool draw_losses(const struct run *run)
{
    int64_t epochs = run->step / run->steps_per_epoch;
    if (epochs == 0 || !picture_has_files) return true; /* stopped before the first value */
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
    const struct chart chart = {.series = series,
                                .num_series = run->validation ? 2 : 1,
                                .x_label = "epoch",
                                .y_label = "loss",
                                .logarithmic_y = true};
    bool good = draw_files(run, "loss", "losses of each epoch", NULL, &chart);
    free(work);
    return good;
}
