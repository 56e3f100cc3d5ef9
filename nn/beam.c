/* Beam search: of each item the few likeliest beginnings are carried on side by side. */
#include <math.h>

#include "nn/generate.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

static const char op[] = "generate";

/* A beam with one token more. */
typedef struct candidate {
    double score; /* log p */
    int64_t beam, token;
} candidate;

/* The search for one item of the batch. Where it ends best so far: at a step, with that step's beam. */
typedef struct item {
    bool is_done, is_bad;
    double best;                  /* log p / length^penalty; −∞: nothing has finished */
    int64_t best_step, best_beam; /* of the beam that the end token follows, */
    bool best_ends;               /* or, at the last step, of one that it does not */
} item;

typedef struct search {
    const rapt_token_model *model;
    const rapt_generation *how;
    int64_t batch, beams, vocabulary, step;
    int64_t width;  /* beams that each item comes into this step with: 1 at first */
    int64_t active; /* how many items are searched still, */
    int64_t *items; /* and which */
    item *states;
    double *scores;                          /* (B, beams), falling; −∞: no such beam */
    candidate *candidates;                   /* (B, 2 · beams) */
    rapt_tensor *token_steps, *parent_steps; /* (capacity, B · beams) of all steps so far, */
    int64_t *tokens, *parents;               /* and what is in them */
    int64_t *rows, *last;                    /* (B · beams): what the model's batch is made of next */
    const double *log_p;                     /* (active · width, vocabulary) */
    int64_t *places;                         /* (active, 2 · beams) */
} search;

static double compare_score(const search *s, double score, int64_t length)
{
    return score / pow((double)length, s->how->length_penalty);
}

/* Puts a candidate where it belongs in a falling list of at most `most`; false when it is too small for it. */
static bool insert(candidate *list, int64_t *count, int64_t most, candidate new)
{
    if (*count == most && !(new.score > list[most - 1].score)) return false;
    int64_t at = *count < most ? (*count)++ : most - 1;
    for (; at > 0 && new.score > list[at - 1].score; at--) list[at] = list[at - 1];
    list[at] = new;
    return true;
}

/* The 2 · beams likeliest continuations, enough to have `beams` that do not end. Returns their number, −1 for bad
 * logits. */
static int64_t find_candidates(const search *s, int64_t position, const double *scores, candidate *list)
{
    const int64_t most = 2 * s->beams, few = most < s->vocabulary ? most : s->vocabulary;
    int64_t count = 0;
    for (int64_t beam = 0; beam < s->width; beam++) {
        if (scores[beam] == -INFINITY) break;
        const double *log_p = s->log_p + (position * s->width + beam) * s->vocabulary;
        for (int64_t i = 0; i < s->vocabulary; i++)
            if (isnan(log_p[i])) return -1;
        int64_t *places = s->places + position * most;
        rapt_rank_few(log_p, s->vocabulary, few, places);
        for (int64_t rank = 0; rank < few; rank++) {
            const candidate new = {scores[beam] + log_p[places[rank]], beam, places[rank]};
            if (new.score == -INFINITY || !insert(list, &count, most, new)) break;
        }
    }
    return count;
}

static void finish(const search *s, item *state, double score, int64_t step, int64_t beam, bool ends)
{
    double compared = compare_score(s, score, step + 1);
    if (!(compared > state->best)) return;
    *state = (item){.best = compared, .best_step = step, .best_beam = beam, .best_ends = ends};
}

/* Can no beam of this item still beat what has finished? Log p can only fall; the length can be any up to the
 * longest. */
static bool is_decided(const search *s, const item *state, double likeliest)
{
    int64_t length = s->how->length_penalty > 0 ? s->how->length : s->step + 2;
    return likeliest == -INFINITY || state->best >= compare_score(s, likeliest, length);
}

/* One step of the item at a position of the active ones. */
static void advance(const search *s, int64_t position)
{
    const int64_t index = s->items[position], beams = s->beams, first = (s->step * s->batch + index) * beams;
    item *state = &s->states[index];
    double *scores = s->scores + index * beams;
    candidate *list = s->candidates + index * 2 * beams;
    const int64_t count = find_candidates(s, position, scores, list);
    int64_t live = 0;
    state->is_bad = count < 0;
    for (int64_t i = 0; i < count && live < beams; i++) {
        if (s->how->stops && list[i].token == s->how->end_token) {
            finish(s, state, list[i].score, s->step, list[i].beam, true);
            continue;
        }
        scores[live] = list[i].score;
        s->tokens[first + live] = list[i].token;
        s->parents[first + live++] = list[i].beam;
    }
    for (int64_t beam = live; beam < beams; beam++) {
        scores[beam] = -INFINITY;
        s->tokens[first + beam] = live > 0 ? s->tokens[first] : 0;
        s->parents[first + beam] = 0;
    }
    if (s->step + 1 == s->how->length && live > 0) finish(s, state, scores[0], s->step, 0, false);
    state->is_done = s->step + 1 == s->how->length || is_decided(s, state, scores[0]);
}

static void advance_items(void *context, int64_t first, int64_t last)
{
    for (int64_t position = first; position < last; position++) advance(context, position);
}

/* Goes on with the items that are not done: their beams become the model's batch. */
static bool choose_rows(search *s)
{
    int64_t left = 0, count = 0;
    for (int64_t position = 0; position < s->active; position++) {
        const int64_t index = s->items[position], first = (s->step * s->batch + index) * s->beams;
        if (s->states[index].is_bad)
            return rapt_fail(RAPT_ERROR_VALUE, op,
                             "the logits of item %lld are no distribution: NaN, +∞, or −∞ throughout",
                             (long long)index);
        if (s->states[index].is_done) continue;
        s->items[left++] = index;
        for (int64_t beam = 0; beam < s->beams; beam++, count++) {
            s->rows[count] = position * s->width + s->parents[first + beam];
            s->last[count] = s->tokens[first + beam];
        }
    }
    s->active = left;
    s->width = s->beams;
    return left == 0 || rapt_select_rows(s->model, count, s->rows);
}

/* The logits of the next token, and of the prompt's before the first. */
static rapt_tensor *find_logits(search *s, const rapt_prompt *prompt)
{
    if (s->step == 0) return rapt_first_logits(s->model, prompt, s->how, &s->vocabulary);
    rapt_tensor *tokens = rapt_from(RAPT_INT64, RAPT_SHAPE(s->active * s->width, 1), s->last);
    return rapt_next_logits(s->model, tokens, s->how, &s->vocabulary);
}

static bool make_room(search *s)
{
    if (!rapt_make_room(s->how, &s->token_steps, s->step, s->batch * s->beams) ||
        !rapt_make_room(s->how, &s->parent_steps, s->step, s->batch * s->beams))
        return false;
    s->tokens = rapt_data_for_writing(s->token_steps);
    s->parents = rapt_data_for_writing(s->parent_steps);
    return true;
}

static bool run(search *s, const rapt_prompt *prompt)
{
    for (; s->step < s->how->length && s->active > 0; s->step++) {
        if (!make_room(s)) return false;
        RAPT_SCOPE;
        rapt_tensor *logits = find_logits(s, prompt);
        rapt_tensor *log_p = logits ? rapt_log_softmax(rapt_cast(logits, RAPT_FLOAT64), -1) : NULL;
        rapt_tensor *places = log_p ? rapt_empty(RAPT_INT64, RAPT_SHAPE(s->active, 2 * s->beams)) : NULL;
        if (!places) return false;
        s->log_p = rapt_data(log_p);
        s->places = rapt_data_for_writing(places);
        rapt_parallel(s->active, rapt_grain(4 * s->width * s->vocabulary), advance_items, s);
        if (!choose_rows(s)) return false;
    }
    return true;
}

/* The best sequence of each item: back from where it ends, by the parents. */
static rapt_tensor *read_sequences(const search *s)
{
    int64_t longest = 0;
    for (int64_t b = 0; b < s->batch; b++)
        if (s->states[b].best_step >= longest) longest = s->states[b].best_step + 1;
    if (s->how->length == 0) longest = 0;
    rapt_tensor *result = rapt_new_padding(s->how, s->batch, longest);
    int64_t *sequence = result ? rapt_data_for_writing(result) : NULL;
    for (int64_t b = 0; b < s->batch && sequence; b++, sequence += longest) {
        const item *state = &s->states[b];
        int64_t step = state->best_step, beam = state->best_beam;
        if (state->best_ends) sequence[step--] = s->how->end_token;
        for (; step >= 0 && longest > 0; step--) {
            int64_t at = (step * s->batch + b) * s->beams + beam;
            sequence[step] = s->tokens[at];
            beam = s->parents[at];
        }
    }
    return result;
}

rapt_tensor *rapt_beam_search(const rapt_token_model *model, const rapt_prompt *prompt, const rapt_generation *how)
{
    const int64_t batch = prompt->batch, beams = how->beams;
    search s = {.model = model,
                .how = how,
                .batch = batch,
                .beams = beams,
                .width = 1,
                .active = batch,
                .items = rapt_scratch_list(op, batch, sizeof *s.items),
                .states = rapt_scratch_list(op, batch, sizeof *s.states),
                .scores = rapt_scratch_list(op, batch * beams, sizeof *s.scores),
                .candidates = rapt_scratch_list(op, batch * beams, 2 * sizeof *s.candidates),
                .rows = rapt_scratch_list(op, batch * beams, sizeof *s.rows),
                .last = rapt_scratch_list(op, batch * beams, sizeof *s.last)};
    if (!s.items || !s.states || !s.scores || !s.candidates || !s.rows || !s.last) return NULL;
    for (int64_t b = 0; b < batch; b++) {
        s.items[b] = b;
        s.states[b] = (item){.best = -INFINITY};
        s.scores[b * beams] = 0; /* the empty sequence */
    }
    return run(&s, prompt) ? read_sequences(&s) : NULL;
}
