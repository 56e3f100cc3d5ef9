/* Generation token by token: the loop for greedy and sampled sequences. */
#include <rapt/generate.h>

#include "nn/generate.h"
#include "tensor/packing.h"
#include "tensor/random.h"

static const char op[] = "generate";

static bool check_given(const rapt_token_model *model, const rapt_tensor *prompt)
{
    char text[128];
    if (!model || !model->next || !prompt)
        return rapt_fail(RAPT_ERROR_NULL, op, "%s is NULL",
                         !model   ? "the model"
                         : prompt ? "the model's function next"
                                  : "the prompt");
    return rapt_is_integer(prompt) || rapt_fail(RAPT_ERROR_DTYPE, op, "a prompt of int64 or int32 expected, not %s",
                                                rapt_describe(prompt, text, sizeof text));
}

static bool check_prompt(const rapt_token_model *model, const rapt_tensor *prompt)
{
    char text[128];
    if (!check_given(model, prompt)) return false;
    return (rapt_rank(prompt) == 2 && rapt_size(prompt, 1) >= 1) ||
           rapt_fail(RAPT_ERROR_SHAPE, op, "a prompt (B, T) with a T of 1 or more expected, not %s%s",
                     rapt_describe(prompt, text, sizeof text), rapt_batch_cure(prompt, 2));
}

static bool check_packed_prompts(const rapt_token_model *model, const rapt_tensor *prompts, const rapt_tensor *starts,
                                 int64_t *batch)
{
    char text[128];
    rapt_raw_packing p;
    if (!check_given(model, prompts)) return false;
    if (!model->begin_packed)
        return rapt_fail(RAPT_ERROR_UNSUPPORTED, op,
                         "the model's function begin_packed is NULL; it takes prompts of one "
                         "length only");
    if (!rapt_read_packing(op, starts, &p)) return false;
    if (rapt_rank(prompts) != 1 || rapt_count(prompts) != p.rows)
        return rapt_fail(RAPT_ERROR_SHAPE, op, "prompts (%lld) expected by the starts, not %s", (long long)p.rows,
                         rapt_describe(prompts, text, sizeof text));
    *batch = p.sequences;
    const int64_t empty = rapt_find_empty_sequence(&p);
    return empty < 0 ||
           rapt_fail(RAPT_ERROR_VALUE, op, "prompt %lld is empty; 1 token or more expected", (long long)empty);
}

/* Sequences under way. Row r of the model's batch writes sequence items[r]. */
typedef struct writing {
    const rapt_token_model *model;
    const rapt_generation *how;
    int64_t rows, vocabulary;
    int64_t *items, *last, *kept; /* last: each row's newest token; kept: the rows that go on */
    int64_t batch;
    rapt_tensor *steps; /* the tokens of all so far, (capacity, B) */
} writing;

/* Notes the tokens of step `step`, and takes the finished sequences out. False after an error. */
static bool write_down(writing *w, int64_t step, const int64_t *picks)
{
    int64_t left = 0, *tokens = (int64_t *)rapt_data_for_writing(w->steps) + step * w->batch;
    for (int64_t row = 0; row < w->rows; row++) {
        tokens[w->items[row]] = picks[row];
        if (w->how->stops && picks[row] == w->how->end_token) continue;
        w->items[left] = w->items[row];
        w->last[left] = picks[row];
        w->kept[left++] = row;
    }
    const bool goes_on = left > 0 && step + 1 < w->how->length;
    if (left < w->rows && goes_on && !rapt_select_rows(w->model, left, w->kept)) return false;
    w->rows = left;
    return true;
}

/* Returns the number of steps, −1 after an error. */
static int64_t write_sequences(writing *w, const rapt_prompt *prompt)
{
    int64_t step = 0;
    for (; step < w->how->length && w->rows > 0; step++) {
        if (!rapt_make_room(w->how, &w->steps, step, w->batch)) return -1;
        RAPT_SCOPE;
        rapt_tensor *tokens = step == 0 ? NULL : rapt_from(RAPT_INT64, RAPT_SHAPE(w->rows, 1), w->last);
        rapt_tensor *logits = step == 0 ? rapt_first_logits(w->model, prompt, w->how, &w->vocabulary)
                                        : rapt_next_logits(w->model, tokens, w->how, &w->vocabulary);
        rapt_tensor *picks = rapt_sample(logits, w->how);
        if (!picks || !write_down(w, step, rapt_data(picks))) return -1;
    }
    return step;
}

rapt_tensor *rapt_new_padding(const rapt_generation *how, int64_t rows, int64_t columns)
{
    const rapt_tensor *padding = rapt_from(RAPT_INT64, 0, NULL, &how->padding);
    rapt_tensor *tokens = rapt_empty(RAPT_INT64, RAPT_SHAPE(rows, columns));
    return padding && tokens && rapt_copy(tokens, padding) ? tokens : NULL;
}

bool rapt_make_room(const rapt_generation *how, rapt_tensor **steps, int64_t step, int64_t width)
{
    enum { least_capacity = 64 };
    const int64_t capacity = *steps ? rapt_size(*steps, 0) : 0;
    if (*steps && step < capacity) return true;
    const int64_t wanted = capacity > 0 ? 2 * capacity : least_capacity;
    rapt_tensor *larger = rapt_new_padding(how, wanted < how->length ? wanted : how->length, width);
    if (!larger || (*steps && !rapt_copy(rapt_slice(larger, 0, 0, capacity, 1), *steps))) return false;
    *steps = larger;
    return true;
}

static rapt_tensor *generate(const rapt_token_model *model, const rapt_prompt *prompt, const rapt_generation *how)
{
    const int64_t batch = prompt->batch;
    rapt_tensor *rows = rapt_empty(RAPT_INT64, RAPT_SHAPE(3, batch));
    if (!rows) return NULL;
    int64_t *items = rapt_data_for_writing(rows);
    writing w = {.model = model,
                 .how = how,
                 .rows = batch,
                 .items = items,
                 .last = items + batch,
                 .kept = items + 2 * batch,
                 .batch = batch};
    for (int64_t b = 0; b < batch; b++) items[b] = b;
    const int64_t steps = write_sequences(&w, prompt);
    if (steps < 0) return NULL;
    if (steps == 0) return rapt_new_padding(how, batch, 0);
    return rapt_contiguous(rapt_transpose(rapt_slice(w.steps, 0, 0, steps, 1), 0, 1));
}

static rapt_tensor *run(const rapt_token_model *model, rapt_prompt prompt, const rapt_generation *how)
{
    prompt.tokens = rapt_contiguous(rapt_cast(prompt.tokens, RAPT_INT64));
    if (!prompt.tokens) return NULL;
    return how->beams > 1 ? rapt_beam_search(model, &prompt, how) : generate(model, &prompt, how);
}

rapt_tensor *rapt_generate(const rapt_token_model *model, rapt_tensor *prompt, const rapt_generation *how)
{
    RAPT_UNDO_DRAWS;
    if (!check_prompt(model, prompt) || !rapt_generation_check(op, how)) return NULL;
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    return rapt_keep(run(model, (rapt_prompt){.tokens = prompt, .batch = rapt_size(prompt, 0)}, how));
}

rapt_tensor *rapt_generate_packed(const rapt_token_model *model, rapt_tensor *prompts, rapt_tensor *starts,
                                  const rapt_generation *how)
{
    RAPT_UNDO_DRAWS;
    int64_t batch = 0;
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    if (!check_packed_prompts(model, prompts, starts, &batch) || !rapt_generation_check(op, how)) return NULL;
    return rapt_keep(run(model, (rapt_prompt){prompts, starts, batch}, how));
}
