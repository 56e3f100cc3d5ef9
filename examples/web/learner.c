/* The model, its words and its training step. */
#include "learner.h"

#include <math.h>
#include <string.h>

#include <rapt.h>

enum { hidden = 32, feed_forward = 64, batch = 32 };
static const double learning_rate = 2e-3, gradient_limit = 1;

struct learner {
    rapt_module module;
    enum learner_task task;
    rapt_embedding *letters;
    rapt_learned_positions *positions;
    rapt_transformer_encoder *encoder;
    rapt_linear *head;
    rapt_optimizer *adam;
};

static const rapt_module_class kind = {.name = "Learner"};

struct learner *learner_new(enum learner_task task, uint64_t seed)
{
    rapt_seed(seed);
    struct learner *learner = rapt_module_new(sizeof *learner, &kind);
    if (!learner) return NULL;
    rapt_module *module = &learner->module;
    const rapt_transformer_config config = {.hidden = hidden,
                                            .heads = learner_heads,
                                            .feed_forward = feed_forward,
                                            .kind = RAPT_FEED_FORWARD_GELU,
                                            .encoder_layers = learner_layers,
                                            .norm_first = true,
                                            .final_norm = true,
                                            .attention_bias = true};
    learner->task = task;
    learner->letters =
        rapt_module_add_child(module, "letters", (rapt_module *)rapt_embedding_new(learner_letters, hidden));
    learner->positions = rapt_module_add_child(module, "positions",
                                               (rapt_module *)rapt_learned_positions_new(learner_length, hidden, 0));
    learner->encoder = rapt_module_add_child(module, "encoder", (rapt_module *)rapt_transformer_encoder_new(&config));
    learner->head =
        rapt_module_add_child(module, "head", (rapt_module *)rapt_linear_new(hidden, learner_letters, RAPT_BIAS));
    learner = rapt_module_finish(module);
    if (!learner) return NULL;
    learner->adam = rapt_adam_new(&learner->module, &(rapt_adam_config){.learning_rate = learning_rate});
    if (learner->adam) return learner;
    rapt_module_free(&learner->module);
    return NULL;
}

void learner_free(struct learner *learner)
{
    if (!learner) return;
    rapt_optimizer_free(learner->adam);
    rapt_module_free(&learner->module);
}

/* Letters (B, length) → logits (B, length, letters) */
static rapt_tensor *forward(struct learner *learner, rapt_tensor *words)
{
    rapt_tensor *x = rapt_embedding_forward(learner->letters, words);
    x = rapt_learned_positions_forward(learner->positions, x, 0);
    return rapt_linear_forward(learner->head, rapt_transformer_encoder_forward(learner->encoder, x, NULL, NULL));
}

/* What is to come out of a word. */
static void solve(enum learner_task task, const int64_t *word, int64_t *expected)
{
    for (int i = 0; i < learner_length; i++) {
        int place = learner_length - 1 - i;
        if (task == LEARNER_SORT) {
            place = 0;
            for (int j = 0; j < learner_length; j++) place += word[j] < word[i] || (word[j] == word[i] && j < i);
        }
        expected[place] = word[i];
    }
}

static rapt_tensor *solve_all(enum learner_task task, rapt_tensor *words)
{
    rapt_tensor *expected = rapt_zeros_like(words);
    const int64_t *word = rapt_data(words);
    int64_t *to = rapt_data_for_writing(expected);
    for (int64_t i = 0; word && to && i < rapt_count(words); i += learner_length) solve(task, word + i, to + i);
    return expected;
}

static rapt_tensor *draw_words(int64_t count)
{
    return rapt_randint(0, learner_letters, RAPT_SHAPE(count, learner_length));
}

double learner_train(struct learner *learner)
{
    RAPT_SCOPE;
    rapt_tensor *words = draw_words(batch);
    rapt_tensor *loss = rapt_cross_entropy(forward(learner, words), solve_all(learner->task, words), NULL);
    rapt_backward(loss);
    rapt_clip_gradient_norm(learner->adam, gradient_limit, NULL);
    return rapt_optimizer_step(learner->adam) ? rapt_item(loss) : NAN;
}

bool learner_look(struct learner *learner, const int32_t word[learner_length], struct learner_view *view)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    int64_t letters[learner_length], expected[learner_length];
    for (int i = 0; i < learner_length; i++) letters[i] = word[i];
    solve(learner->task, letters, expected);
    rapt_attention_keep_weights(&learner->module, true);
    rapt_tensor *logits = forward(learner, rapt_from(RAPT_INT64, RAPT_SHAPE(1, learner_length), letters));
    rapt_attention_keep_weights(&learner->module, false);
    const int64_t *answer = rapt_data(rapt_argmax(logits, -1, false));
    if (!answer) return false;
    for (int i = 0; i < learner_length; i++) {
        view->answer[i] = (int32_t)answer[i];
        view->expected[i] = (int32_t)expected[i];
    }
    for (int layer = 0; layer < learner_layers; layer++)
        memcpy(view->weights[layer], rapt_data(learner->encoder->layers[layer]->self_attn->pooling->weights),
               sizeof view->weights[layer]);
    return true;
}

double learner_measure(struct learner *learner, int64_t count)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_tensor *words = draw_words(count);
    rapt_tensor *right = rapt_equal(rapt_argmax(forward(learner, words), -1, false), solve_all(learner->task, words));
    return rapt_item(rapt_mean(rapt_cast(rapt_all(right, RAPT_AXES(-1), false), RAPT_FLOAT64), RAPT_ALL_AXES, false));
}
