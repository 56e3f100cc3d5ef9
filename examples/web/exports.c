/* What the page calls: one learner, whose numbers it reads from memory. */
#include <emscripten.h>

#include <rapt.h>

#include "learner.h"

EMSCRIPTEN_KEEPALIVE int page_size(int which);
EMSCRIPTEN_KEEPALIVE bool page_start(int task, int seed);
EMSCRIPTEN_KEEPALIVE double page_train(void);
EMSCRIPTEN_KEEPALIVE int32_t *page_word(void);
EMSCRIPTEN_KEEPALIVE const struct learner_view *page_look(void);
EMSCRIPTEN_KEEPALIVE double page_measure(int count);
EMSCRIPTEN_KEEPALIVE const char *page_error(void);

static struct learner *learner;
static int32_t word[learner_length];
static struct learner_view view;

/* The sizes that the page must know: length of words, letters, layers, heads. */
int page_size(int which)
{
    static const int sizes[] = {learner_length, learner_letters, learner_layers, learner_heads};
    return sizes[which];
}

bool page_start(int task, int seed)
{
    learner_free(learner);
    rapt_clear_error();
    learner = learner_new((enum learner_task)task, (uint64_t)seed);
    return learner != NULL;
}

/* The loss of one step. */
double page_train(void)
{
    return learner_train(learner);
}

/* The page writes the word there, */
int32_t *page_word(void)
{
    return word;
}

/* and reads here what becomes of it; NULL after an error. */
const struct learner_view *page_look(void)
{
    return learner_look(learner, word, &view) ? &view : NULL;
}

double page_measure(int count)
{
    return learner_measure(learner, count);
}

const char *page_error(void)
{
    return rapt_error();
}
