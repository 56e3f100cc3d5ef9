/* The command line: two presets, and an option for each of their numbers. */
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_line.h"
#include "model.h"
#include "resume.h"

static const char *const schedule_names[] = {[CONSTANT_SCHEDULE] = "constant", [COSINE_SCHEDULE] = "cosine", NULL};

enum { DEFAULT_PRESET, BOOK_PRESET };
static const char *const preset_names[] = {[DEFAULT_PRESET] = "default", [BOOK_PRESET] = "book", NULL};

enum { MASKED_LOSS, PLAIN_LOSS };
static const char *const loss_names[] = {[MASKED_LOSS] = "masked", [PLAIN_LOSS] = "plain", NULL};

/* "i'm home .", which evaluate.c translates. */
enum { longest_of_the_book = 3 };

enum { most_epochs = 1000000 }; /* the losses of each are kept */

/* An option that was not given takes the preset's number. */
enum { not_given = -1 };

/* What the command line says, before a preset fills the gaps. */
struct given {
    int preset, loss, schedule, scoring;
    int64_t longest, rarest, train, validation, test;
    bool has_translate, resumes;
    const char *training; /* the first option given that --translate makes nothing of */
};

/* The numbers of a preset; the model of the default one is small, because number names are. */
static void take_preset(struct options *o, const struct given *g)
{
    o->is_book = g->preset == BOOK_PRESET;
    bool small = !o->data && !o->is_book;
    o->pairs = o->is_book ? pairs_options_book : o->data ? pairs_options_file : pairs_options_numbers;
    bool is_transformer = o->architecture == TRANSFORMER;
    if (o->epochs == not_given) o->epochs = o->is_book ? 30 : small ? 5 : 20;
    if (o->batch_size == not_given) o->batch_size = 128;
    if (o->embedding == not_given) o->embedding = small ? 64 : 256;
    if (o->hidden == not_given) o->hidden = small ? 128 : 256;
    if (o->layers == not_given) o->layers = small && !is_transformer ? 1 : 2;
    if (o->heads == not_given) o->heads = 4;
    if (o->feed_forward == not_given) o->feed_forward = o->is_book ? 64 : 2 * o->hidden;
    if (is_transformer) o->embedding = o->hidden;
    if (o->dropout < 0) o->dropout = small ? 0 : 0.2;
    if (o->learning_rate < 0) o->learning_rate = is_transformer ? 0.001 : o->is_book ? 0.005 : small ? 0.004 : 0.002;
    o->scoring = g->scoring >= 0 ? g->scoring : is_transformer ? SCALED_DOT : ADDITIVE;
    o->schedule = g->schedule >= 0 ? g->schedule : o->is_book ? CONSTANT_SCHEDULE : COSINE_SCHEDULE;
    o->counts_padding = g->loss >= 0 ? g->loss == PLAIN_LOSS : o->is_book;
}

static void take_sizes(struct options *o, const struct given *g)
{
    if (g->longest != not_given) o->pairs.num_steps = g->longest + 1; /* and <eos> */
    if (g->rarest != not_given) o->pairs.minimum_frequency = g->rarest;
    if (g->train != not_given) o->pairs.num_train = g->train;
    if (g->validation != not_given) o->pairs.num_validation = g->validation;
    if (g->test != not_given) o->pairs.num_test = g->test;
    if (!o->is_book) o->pairs.seed = (uint64_t)o->seed;
}

/* What would change nothing is refused: somebody counts on it. Before a preset fills the gaps. */
static int check_effects(const struct options *o, const struct given *g)
{
    static const char transformers[] = "goes with --model transformer";
    const bool is_transformer = o->architecture == TRANSFORMER;
    const struct {
        bool changes_nothing;
        const char *option, *why;
    } checks[] = {
        {o->weights && !g->has_translate, "--weights", "goes with --translate; training goes on by --resume"},
        {g->has_translate && g->training, g->training,
         "does not go with --translate, which takes the model as it was trained"},
        {is_transformer && o->embedding != not_given, "--embedding",
         "goes with --model recurrent; the words of a Transformer have --hidden numbers"},
        {!is_transformer && o->heads != not_given, "--heads", transformers},
        {!is_transformer && o->feed_forward != not_given, "--feed-forward", transformers},
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (checks[i].changes_nothing) return command_line_wrong("translate", "%s %s", checks[i].option, checks[i].why);
    return COMMAND_LINE_RUN;
}

static const char epilogue[] = "Files in the --out folder: model.safetensors (weights and vocabularies),\n"
                               "checkpoint.safetensors (the whole run), attention and loss (.svg and .png); of a\n"
                               "Transformer also attention-encoder and attention-decoder; with the option --page\n"
                               "also training.html, which a browser shows without a network.\n"
                               "What is marked (preset) comes from --preset book, the numbers of Dive into Deep\n"
                               "Learning, 11.4 (recurrent) and 11.7 (Transformer); without it number names get a\n"
                               "small model, and sentence pairs a larger one.";

/* Rows that other programs have too. */
static struct command_option among(struct command_option option, const char **name)
{
    option.among = name;
    return option;
}

int options_parse(int argc, char **argv, struct options *o)
{
    struct given g = {.loss = not_given,
                      .schedule = not_given,
                      .scoring = not_given,
                      .longest = not_given,
                      .rarest = not_given,
                      .train = not_given,
                      .validation = not_given,
                      .test = not_given};
    *o = (struct options){.out = "translate-out",
                          .seed = 0,
                          .threads = 0,
                          .epochs = not_given,
                          .batch_size = not_given,
                          .embedding = not_given,
                          .hidden = not_given,
                          .layers = not_given,
                          .heads = not_given,
                          .feed_forward = not_given,
                          .beams = 1,
                          .dropout = -1,
                          .learning_rate = -1,
                          .clip = 1};
    const struct command_option table[] = {
        {.help = "What to do"},
        {"--translate", .metavar = "TEXT", .help = "translate TEXT, or the lines of standard input, with a saved model",
         .string = &o->sentence, .flag = &g.has_translate, .is_optional = true},
        {"--weights", .metavar = "FILE",
         .help = "the model for --translate; default: model.safetensors in the --out folder", .string = &o->weights},
        {"--beams", .metavar = "N", .help = "translations that are tried side by side; 1: greedy", .integer = &o->beams,
         .integer_range = {1, 64}},
        {"--resume", .among = &g.training, .help = "go on with the run whose checkpoint is in the --out folder",
         .flag = &g.resumes},
        {"--log", .among = &g.training, .metavar = "PATH",
         .help = "write the losses of each epoch there: FILE.csv, FILE.jsonl, or a folder for TensorBoard",
         .string = &o->log},
        {"--out", .metavar = "DIR", .help = "folder of all files that are written", .string = &o->out},
        {.help = "Data"},
        {"--data", .among = &g.training, .metavar = "FILE",
         .help = "sentence pairs: English, tab, French on each line; without it number names", .string = &o->data},
        {"--preset", .among = &g.training, .help = "where numbers that are not given come from", .choice = &g.preset,
         .choices = preset_names},
        {"--longest", .among = &g.training, .metavar = "N", .help = "tokens of the longest sentence (preset)",
         .integer = &g.longest, .integer_range = {1, 999}},
        {"--rarest", .among = &g.training, .metavar = "N", .help = "times a word must be seen to be kept (preset)",
         .integer = &g.rarest, .integer_range = {1, INT32_MAX}},
        {"--train", .among = &g.training, .metavar = "N", .help = "training pairs (preset)", .integer = &g.train,
         .integer_range = {1, INT32_MAX}},
        {"--validation", .among = &g.training, .metavar = "N", .help = "validation pairs (preset)",
         .integer = &g.validation, .integer_range = {0, INT32_MAX}},
        {"--test", .among = &g.training, .metavar = "N", .help = "test pairs (preset)", .integer = &g.test,
         .integer_range = {0, INT32_MAX}},
        {.help = "Model"},
        {"--model", .among = &g.training, .help = "which architecture", .choice = &o->architecture,
         .choices = model_architectures},
        {"--scoring", .among = &g.training,
         .help = "how attention scores; default: additive (recurrent), scaled-dot (transformer)", .choice = &g.scoring,
         .choices = model_scorings},
        {"--embedding", .among = &g.training, .metavar = "N", .help = "numbers that stand for a word (preset)",
         .integer = &o->embedding, .integer_range = {1, 65536}},
        {"--hidden", .among = &g.training, .metavar = "N", .help = "hidden units (preset)", .integer = &o->hidden,
         .integer_range = {1, 65536}},
        {"--layers", .among = &g.training, .metavar = "N", .help = "layers of encoder and decoder each (preset)",
         .integer = &o->layers, .integer_range = {1, 64}},
        {"--heads", .among = &g.training, .metavar = "N", .help = "attention heads, transformer (preset)",
         .integer = &o->heads, .integer_range = {1, 1024}},
        {"--feed-forward", .among = &g.training, .metavar = "N", .help = "inner units of a block, transformer (preset)",
         .integer = &o->feed_forward, .integer_range = {1, 65536}},
        {"--fix", .among = &g.training,
         .help =
             "with --preset book: a Transformer that keeps its causality in validation, and counts positions when it "
             "translates",
         .flag = &o->is_fixed},
        {"--dropout", .among = &g.training, .metavar = "X", .help = "probability (preset)", .real = &o->dropout,
         .real_range = {0, 1}},
        {.help = "Training"},
        {"--epochs", .among = &g.training, .metavar = "N", .help = "passes over the training pairs (preset)",
         .integer = &o->epochs, .integer_range = {1, most_epochs}},
        {"--steps", .among = &g.training, .metavar = "N", .help = "stop after N steps, or when the epochs are done",
         .integer = &o->steps, .integer_range = {1, INT32_MAX}},
        {"--batch-size", .among = &g.training, .metavar = "N", .help = "pairs in a step (preset)",
         .integer = &o->batch_size, .integer_range = {1, 65536}},
        {"--learning-rate", .among = &g.training, .metavar = "X", .help = "of Adam (preset)", .real = &o->learning_rate,
         .real_range = {1e-12, 10}},
        {"--schedule", .among = &g.training, .help = "of the learning rate (preset)", .choice = &g.schedule,
         .choices = schedule_names},
        {"--clip", .among = &g.training, .metavar = "X", .help = "largest norm of the gradient", .real = &o->clip,
         .real_range = {1e-12, 1e12}},
        {"--loss", .among = &g.training,
         .help = "mean over the words, or over all positions, padding included, as the book has it (preset)",
         .choice = &g.loss, .choices = loss_names},
        {"--page", .among = &g.training,
         .help = "write the page training.html as the run goes: losses, learning rate, and attention as it changes",
         .flag = &o->writes_page},
        {"--checkpoint-every", .among = &g.training, .metavar = "N",
         .help = "steps between checkpoints, instead of one after each epoch", .integer = &o->checkpoint_every,
         .integer_range = {1, INT32_MAX}},
        among(command_line_seed(&o->seed), &g.training),
        command_line_threads(&o->threads),
        among(command_line_parts(&o->parts), &g.training),
        {0},
    };
    const struct command_line line =
        {.program = "translate",
         .summary = "Trains a translator (Bahdanau's recurrent model or a Transformer), or uses one.",
         .options = table,
         .epilogue = epilogue};
    enum command_line_result result = command_line_parse(&line, argc, argv);
    if (result != COMMAND_LINE_RUN) return result;
    result = (enum command_line_result)check_effects(o, &g);
    if (result != COMMAND_LINE_RUN) return result;
    if (g.preset == BOOK_PRESET && !o->data)
        return command_line_wrong("translate", "--preset book needs --data FILE: it is made for sentence pairs");
    if (o->is_fixed && (g.preset != BOOK_PRESET || o->architecture != TRANSFORMER))
        return command_line_wrong("translate",
                                  "--fix only goes with --preset book --model transformer: nothing else is broken");
    if (g.preset == BOOK_PRESET && g.longest != not_given && g.longest < longest_of_the_book)
        return command_line_wrong("translate",
                                  "--preset book translates sentences of %d tokens in the end, not of %lld",
                                  longest_of_the_book, (long long)g.longest);
    o->translates = g.has_translate;
    o->resumes = g.resumes;
    take_preset(o, &g);
    take_sizes(o, &g);
    return -1;
}

void options_note(const struct options *o, const struct pairs *p, char *text, size_t size)
{
    char data[resume_path_size];
    snprintf(text, size,
             "data %s, %lld + %lld + %lld pairs of %lld steps, words %lld and %lld, seed %lld, epochs %lld, batch "
             "%lld, embedding %lld, "
             "hidden %lld, layers %lld, dropout %.17g, learning rate %.17g, schedule %s, clip %.17g, loss %s, model %s "
             "with %s attention, heads %lld, feed-forward %lld, preset %s%s",
             o->data ? resume_path(o->data, data) : "numbers", (long long)p->num_train, (long long)p->num_validation,
             (long long)p->num_test, (long long)p->num_steps, (long long)p->source_vocabulary->size,
             (long long)p->target_vocabulary->size, (long long)o->seed, (long long)o->epochs, (long long)o->batch_size,
             (long long)o->embedding, (long long)o->hidden, (long long)o->layers, o->dropout, o->learning_rate,
             schedule_names[o->schedule], o->clip, loss_names[o->counts_padding ? PLAIN_LOSS : MASKED_LOSS],
             model_architectures[o->architecture], model_scorings[o->scoring], (long long)o->heads,
             (long long)o->feed_forward, preset_names[o->is_book ? BOOK_PRESET : DEFAULT_PRESET],
             o->is_fixed ? " with --fix" : "");
    resume_end_note(text, size, o->data ? p->hash : 0, o->parts);
}
