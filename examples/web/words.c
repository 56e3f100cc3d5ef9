/* The page's model in a terminal: it learns to turn words around, then others to sort them, and shows where they
 * look. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <rapt.h>

#include "claim.h"
#include "command_line.h"
#include "learner.h"
#include "picture.h"

static void print_word(const char *what, const int32_t *word)
{
    printf("%s ", what);
    for (int i = 0; i < learner_length; i++) putchar('a' + word[i]);
}

static void show(const struct learner_view *view, const int32_t *word)
{
    static const char *const titles[learner_heads] = {"head 1", "head 2"};
    static const char *const row_titles[learner_layers] = {"layer 1", "layer 2"};
    char letters[2 * learner_length][2];
    const char *labels[2 * learner_length]; /* of the word, of the answer */
    for (int i = 0; i < 2 * learner_length; i++) {
        letters[i][0] = (char)('a' + (i < learner_length ? word[i] : view->answer[i - learner_length]));
        letters[i][1] = '\0';
        labels[i] = letters[i];
    }
    picture_print_heatmaps(stdout,
                           &(struct heatmap){.values = &view->weights[0][0][0][0],
                                             .rows = learner_layers,
                                             .columns = learner_heads,
                                             .queries = learner_length,
                                             .keys = learner_length,
                                             .titles = titles,
                                             .key_labels = labels,
                                             .query_labels = labels + learner_length,
                                             .row_titles = row_titles},
                           NULL, 0);
}

static void learn(enum learner_task task, int64_t steps, int64_t seed)
{
    static const char *const names[LEARNER_TASKS] = {"turn around", "sort"};
    static const int32_t word[learner_length] = {0, 19, 19, 4, 13, 3, 4, 3}; /* attended */
    struct learner *learner = learner_new(task, (uint64_t)seed);
    struct learner_view view;
    double loss = 0;
    for (int64_t step = 1; step <= steps; step++) {
        loss = learner_train(learner);
        if (step % 100 == 0 || step == steps) printf("%s, step %4lld: loss %.4f\n", names[task], (long long)step, loss);
    }
    learner_look(learner, word, &view);
    print_word("the word", word);
    print_word(" becomes", view.answer);
    putchar('\n');
    show(&view, word);
    const double right = learner_measure(learner, 1000);
    if (steps >= 2000) claim(right > 0.8, "of 1000 new words %.1f %% come out right in every letter", 100 * right);
    learner_free(learner);
}

int main(int argc, char **argv)
{
    int64_t steps = 2000, seed = 1;
    const struct command_option table[] = {
        {"--steps", .metavar = "N", .help = "for each of the two", .integer = &steps, .integer_range = {1, INT32_MAX}},
        command_line_seed(&seed),
        {0},
    };
    const int status = command_line_parse(&(struct command_line){.program = "words",
                                                                 .summary = "A small Transformer learns to turn words "
                                                                            "around, and another one to sort them.",
                                                                 .options = table},
                                          argc, argv);
    if (status >= 0) return status;
    rapt_on_error(rapt_exit_on_error);
    for (enum learner_task task = 0; task < LEARNER_TASKS; task++) learn(task, steps, seed);
    return claim_status("words");
}
