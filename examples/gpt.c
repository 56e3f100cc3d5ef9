/* A language model of bytes: a small GPT learns a text file, or sentences that this program makes up, and continues
 * them. What it makes up can only be continued by looking back, at the number and at the animal: "1 owl" → "
 * hoots.", "3 owl" → "s hoot." */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt.h>

#include "command_line.h"
#include "files.h"

struct options {
    const char *data, *prompt, *weights, *save, *log;
    int preset, positions;
    int64_t steps, batch, context, hidden, layers, heads, sample, top_k, seed, threads;
    double learning_rate, dropout, temperature, top_p;
};

/* --- the text --- */

struct text {
    unsigned char *bytes;
    int64_t count;
    int64_t training; /* the first 90 %; the rest is for validation */
    int64_t vocabulary;
    int token_of[256]; /* −1: not in the text */
    unsigned char byte_of[256];
};

static const char *const animals[] = {"owl", "dog", "cat", "bee", "lion", "frog", "hen", "duck"};
static const char *const voices[] = {"hoot", "bark", "purr", "hum", "roar", "croak", "cluck", "quack"};
enum { choices = 8, longest_sentence = 32, made_up = 10000, default_steps = 400 };

static int64_t draw(int64_t low, int64_t high)
{
    RAPT_SCOPE;
    return (int64_t)rapt_item(rapt_randint(low, high, RAPT_SHAPE(1)));
}

/* A random sentence; *asked is the length of its first half, after which the rest is certain. */
static int make_sentence(char sentence[longest_sentence], int *asked)
{
    int animal = (int)draw(0, choices), number = (int)draw(1, 5);
    bool is_one = number == 1;
    *asked = snprintf(sentence, longest_sentence, "%d %s", number, animals[animal]);
    return *asked + snprintf(sentence + *asked, (size_t)(longest_sentence - *asked), "%s %s%s.\n", is_one ? "" : "s",
                             voices[animal], is_one ? "s" : "");
}

static bool make_up(struct text *text)
{
    text->bytes = malloc((size_t)made_up * longest_sentence);
    for (int i = 0; text->bytes && i < made_up; i++) {
        char sentence[longest_sentence];
        int asked, length = make_sentence(sentence, &asked);
        memcpy(text->bytes + text->count, sentence, (size_t)length);
        text->count += length;
    }
    return text->bytes != NULL;
}

static bool read_text(const char *path, struct text *text)
{
    size_t size;
    text->bytes = (unsigned char *)file_read(path, &size);
    text->count = (int64_t)size;
    if (!text->bytes) fprintf(stderr, "gpt: cannot read %s: %s\n", path, strerror(errno));
    if (text->bytes && size == 0) fprintf(stderr, "gpt: %s is empty\n", path);
    return text->bytes && size > 0;
}

/* Numbers the bytes that occur; false when there is too little text for one window. */
static bool index_text(struct text *text, int64_t context)
{
    text->training = text->count / 10 * 9;
    bool occurs[256] = {false};
    for (int64_t i = 0; i < text->count; i++) occurs[text->bytes[i]] = true;
    for (int b = 0; b < 256; b++) {
        text->token_of[b] = occurs[b] ? (int)text->vocabulary : -1;
        if (occurs[b]) text->byte_of[text->vocabulary++] = (unsigned char)b;
    }
    bool good = text->count - text->training > context && text->training > context;
    if (!good)
        fprintf(stderr, "gpt: %lld bytes of text are too few: a tenth of it must be longer than the context, %lld\n",
                (long long)text->count, (long long)context);
    return good;
}

/* Windows of context + 1 bytes that start at the given places: what the model reads, and what comes one byte later. */
static void take_windows(const struct text *text, int64_t count, const int64_t *starts, int64_t context,
                         rapt_tensor **inputs, rapt_tensor **targets)
{
    rapt_tensor *windows = rapt_empty(RAPT_INT64, RAPT_SHAPE(count, context + 1));
    int64_t *token = rapt_data_for_writing(windows);
    for (int64_t i = 0; i < count; i++)
        for (int64_t t = 0; t <= context; t++) *token++ = text->token_of[text->bytes[starts[i] + t]];
    *inputs = rapt_slice(windows, 1, 0, context, 1);
    *targets = rapt_slice(windows, 1, 1, context + 1, 1);
}

/* --- training --- */

static rapt_tensor *loss_of(rapt_gpt *gpt, rapt_tensor *inputs, rapt_tensor *targets)
{
    return rapt_gpt_loss(gpt, inputs, targets, NULL);
}

/* The mean loss over the validation text, cut into batches of windows. */
static double validate(rapt_gpt *gpt, const struct text *text, const struct options *o)
{
    RAPT_NO_GRADIENT;
    enum { most = 64 };
    const int64_t windows = (text->count - text->training - 1) / o->context, size = windows < most ? windows : most;
    const int64_t batches = windows / size; /* a last, shorter one would weigh too much */
    double sum = 0;
    rapt_module_train(&gpt->module, false);
    for (int64_t batch = 0; batch < batches; batch++) {
        RAPT_SCOPE;
        int64_t starts[most];
        for (int64_t i = 0; i < size; i++) starts[i] = text->training + (batch * size + i) * o->context;
        rapt_tensor *inputs, *targets;
        take_windows(text, size, starts, o->context, &inputs, &targets);
        sum += rapt_item(loss_of(gpt, inputs, targets));
    }
    rapt_module_train(&gpt->module, true);
    return sum / (double)batches;
}

static double train_step(rapt_gpt *gpt, rapt_optimizer *adamw, const struct text *text, const struct options *o)
{
    RAPT_SCOPE;
    rapt_tensor *inputs, *targets, *starts = rapt_randint(0, text->training - o->context, RAPT_SHAPE(o->batch));
    take_windows(text, o->batch, rapt_data(starts), o->context, &inputs, &targets);
    rapt_tensor *loss = loss_of(gpt, inputs, targets);
    rapt_backward(loss);
    rapt_optimizer_step_clipped(adamw, 1, NULL);
    return rapt_item(loss);
}

static void train(rapt_gpt *gpt, const struct text *text, const struct options *o)
{
    /* the settings of nanoGPT: weight decay on matrices only, warm-up, cosine to a tenth */
    rapt_optimizer *adamw =
        rapt_adamw_new(&gpt->module,
                       &(rapt_adam_config){.learning_rate = o->learning_rate, .beta2 = 0.99, .weight_decay = 0.1});
    rapt_optimizer_group(adamw, "*.ln_*", &(rapt_group_config){.weight_decay = RAPT_ZERO});
    const rapt_schedule schedule = {.kind = RAPT_SCHEDULE_COSINE,
                                    .warm_up = o->steps / 20,
                                    .total = o->steps,
                                    .final = 0.1};
    rapt_metrics *log = o->log ? rapt_metrics_open(o->log, RAPT_METRICS_BY_NAME, false) : NULL;
    rapt_progress progress = rapt_progress_start(stderr, 0, o->steps);
    for (int64_t step = 0; step < o->steps; step++) {
        const double rate = o->learning_rate * rapt_schedule_factor(&schedule, step);
        rapt_optimizer_set_learning_rate(adamw, rate);
        const double loss = train_step(gpt, adamw, text, o);
        rapt_progress_step(&progress, loss, o->batch * o->context);
        if (log) rapt_metrics_write(log, step, RAPT_METRIC_ROW({"loss", loss}, {"learning_rate", rate}));
    }
    rapt_progress_end(&progress);
    rapt_metrics_close(log);
    rapt_optimizer_free(adamw);
}

/* --- continuing a text --- */

/* Writes `length` bytes after the prompt to `written`. */
static void continue_text(rapt_gpt *gpt, const struct text *text, const char *prompt, const rapt_generation *how,
                          char *written)
{
    RAPT_SCOPE;
    int64_t length = (int64_t)strlen(prompt);
    rapt_tensor *start = rapt_empty(RAPT_INT64, RAPT_SHAPE(1, length));
    int64_t *tokens = rapt_data_for_writing(start);
    for (int64_t i = 0; i < length; i++) tokens[i] = text->token_of[(unsigned char)prompt[i]];
    rapt_gpt_cache *cache = rapt_gpt_cache_new(gpt);
    const rapt_token_model model = rapt_gpt_token_model(cache);
    rapt_tensor *generated = rapt_generate(&model, start, how);
    for (int64_t i = 0; i < how->length; i++)
        written[i] = (char)text->byte_of[((const int64_t *)rapt_data(generated))[i]];
    written[how->length] = '\0';
    rapt_gpt_cache_free(cache);
}

static void print_sample(rapt_gpt *gpt, const struct text *text, const struct options *o)
{
    char *written = malloc((size_t)o->sample + 1);
    if (!written) exit(EXIT_FAILURE);
    const double start = rapt_seconds();
    continue_text(gpt, text, o->prompt,
                  &(rapt_generation){.length = o->sample,
                                     .temperature = o->temperature,
                                     .top_k = o->top_k,
                                     .top_p = o->top_p},
                  written);
    const double seconds = rapt_seconds() - start;
    printf("%s%s\n(%lld bytes in %.2f s)\n", o->prompt, written, (long long)o->sample, seconds);
    free(written);
}

/* How many of 100 made-up sentences the model ends as they must end. */
static int count_right_ends(rapt_gpt *gpt, const struct text *text)
{
    int right = 0;
    for (int i = 0; i < 100; i++) {
        char sentence[longest_sentence], prompt[longest_sentence], written[longest_sentence];
        int asked, length = make_sentence(sentence, &asked);
        snprintf(prompt, sizeof prompt, "\n%.*s", asked, sentence);
        continue_text(gpt, text, prompt, &(rapt_generation){.length = length - asked}, written);
        right += strcmp(written, sentence + asked) == 0;
    }
    return right;
}

/* --- the program --- */

enum { DEFAULT_PRESET, SMALL_PRESET };
static const char *const preset_names[] = {[DEFAULT_PRESET] = "default", [SMALL_PRESET] = "small", NULL};
static const char *const position_names[] = {[RAPT_POSITIONS_LEARNED] = "learned",
                                             [RAPT_POSITIONS_SINUSOIDAL] = "sinusoidal",
                                             [RAPT_POSITIONS_ROTARY] = "rotary",
                                             [RAPT_POSITIONS_ALIBI] = "alibi",
                                             NULL};

static int parse(int argc, char **argv, struct options *o)
{
    *o = (struct options){.steps = -1,
                          .batch = -1,
                          .context = 64,
                          .hidden = -1,
                          .layers = -1,
                          .heads = 4,
                          .sample = 256,
                          .learning_rate = -1,
                          .temperature = 0.8,
                          .seed = 1};
    const struct command_option table[] = {
        {.help = "Text"},
        {"--data", .metavar = "FILE", .help = "the text to learn, any bytes; without it sentences are made up",
         .string = &o->data},
        {.help = "Model"},
        {"--preset", .help = "small: nanoGPT's settings for a processor (4 layers, 128 wide, 2000 steps)",
         .choice = &o->preset, .choices = preset_names},
        {"--context", .metavar = "N", .help = "bytes that the model sees at once", .integer = &o->context,
         .integer_range = {2, 65536}},
        {"--hidden", .metavar = "N", .help = "width (preset)", .integer = &o->hidden, .integer_range = {1, 65536}},
        {"--layers", .metavar = "N", .help = "blocks (preset)", .integer = &o->layers, .integer_range = {1, 64}},
        {"--heads", .metavar = "N", .help = "attention heads", .integer = &o->heads, .integer_range = {1, 1024}},
        {"--positions", .help = "how the model knows where a byte stands", .choice = &o->positions,
         .choices = position_names},
        {"--dropout", .metavar = "X", .help = "probability", .real = &o->dropout, .real_range = {0, 1}},
        {.help = "Training"},
        {"--steps", .metavar = "N", .help = "training steps (preset)", .integer = &o->steps,
         .integer_range = {0, INT32_MAX}},
        {"--batch-size", .metavar = "N", .help = "windows in a step (preset)", .integer = &o->batch,
         .integer_range = {1, 65536}},
        {"--learning-rate", .metavar = "X", .help = "of AdamW at its peak (preset)", .real = &o->learning_rate,
         .real_range = {1e-12, 10}},
        command_line_seed(&o->seed),
        command_line_threads(&o->threads),
        {"--save", .metavar = "FILE", .help = "write the weights there (safetensors)", .string = &o->save},
        {"--log", .metavar = "PATH",
         .help = "write loss and learning rate of each step there: FILE.csv, FILE.jsonl, or a folder for TensorBoard",
         .string = &o->log},
        {"--weights", .metavar = "FILE", .help = "begin with these weights; --steps 0 only continues the text",
         .string = &o->weights},
        {.help = "Continuing"},
        {"--prompt", .metavar = "TEXT", .help = "what to continue; default: a new line", .string = &o->prompt},
        {"--sample", .metavar = "N", .help = "bytes to write", .integer = &o->sample, .integer_range = {0, 1000000}},
        {"--temperature", .metavar = "X", .help = "0: always the likeliest byte", .real = &o->temperature,
         .real_range = {0, 100}},
        {"--top-k", .metavar = "N", .help = "only the N likeliest; 0: all", .integer = &o->top_k,
         .integer_range = {0, 256}},
        {"--top-p", .metavar = "X", .help = "only the likeliest that make up X; 0: all", .real = &o->top_p,
         .real_range = {0, 1}},
        {0},
    };
    const struct command_line line = {.program = "gpt",
                                      .summary =
                                          "Trains a small language model on the bytes of a text, and continues it.",
                                      .options = table};
    enum command_line_result result = command_line_parse(&line, argc, argv);
    if (result != COMMAND_LINE_RUN) return result;
    if (!o->prompt) o->prompt = "\n";
    bool small = o->preset == SMALL_PRESET || o->data;
    if (o->steps < 0) o->steps = small ? 2000 : default_steps;
    if (o->batch < 0) o->batch = small ? 12 : 8;
    if (o->hidden < 0) o->hidden = small ? 128 : 64;
    if (o->layers < 0) o->layers = small ? 4 : 2;
    if (o->learning_rate < 0) o->learning_rate = small ? 0.001 : 0.003;
    return -1;
}

static bool check_prompt(const struct text *text, const char *prompt)
{
    for (const char *p = prompt; *p; p++)
        if (text->token_of[(unsigned char)*p] < 0) {
            fprintf(stderr, "gpt: the prompt has the byte 0x%02x, which the text does not have\n", (unsigned char)*p);
            return false;
        }
    if (*prompt == '\0') fprintf(stderr, "gpt: the prompt is empty\n");
    return *prompt != '\0';
}

/* When the disk is full by now, the text is still to come. */
static bool save(rapt_gpt *gpt, const char *path)
{
    rapt_on_error(NULL);
    const bool saved = rapt_module_save(&gpt->module, path);
    if (!saved) fprintf(stderr, "%s\n", rapt_error());
    rapt_clear_error();
    rapt_on_error(rapt_exit_on_error);
    return saved;
}

static int run(const struct options *o, const struct text *text)
{
    const rapt_gpt_config config = {.vocabulary = text->vocabulary,
                                    .context = o->context,
                                    .hidden = o->hidden,
                                    .layers = (int)o->layers,
                                    .heads = (int)o->heads,
                                    .dropout = o->dropout,
                                    .positions = (rapt_gpt_positions)o->positions,
                                    .kind = RAPT_FEED_FORWARD_GELU};
    rapt_gpt *gpt = rapt_gpt_new(&config);
    if (o->weights) rapt_module_load(&gpt->module, o->weights);
    printf("%lld bytes of text, %lld different; %lld parameters\n", (long long)text->count, (long long)text->vocabulary,
           (long long)rapt_module_parameter_count(&gpt->module));
    train(gpt, text, o);
    const bool saved = !o->save || save(gpt, o->save);
    const double loss = validate(gpt, text, o);
    printf("validation loss %.4f (%.3f bits a byte)\n", loss, loss / log(2));
    rapt_module_train(&gpt->module, false);
    if (o->sample > 0) print_sample(gpt, text, o);
    int status = saved ? EXIT_SUCCESS : EXIT_FAILURE;
    if (!o->data) {
        int right = count_right_ends(gpt, text);
        printf("sentences ended as they must end: %d of 100\n", right);
        if (right < 90 && o->steps >= default_steps) status = EXIT_FAILURE;
    }
    rapt_module_free(&gpt->module);
    return status;
}

int main(int argc, char **argv)
{
    struct options o;
    struct text text = {0};
    int status = parse(argc, argv, &o);
    if (status >= 0) return status;
    rapt_on_error(rapt_exit_on_error);
    rapt_seed((uint64_t)o.seed);
    if (o.threads > 0) rapt_set_threads((int)o.threads);
    bool good = (!o.save || file_can_be_saved("gpt", o.save)) && (o.data ? read_text(o.data, &text) : make_up(&text)) &&
                index_text(&text, o.context) && check_prompt(&text, o.prompt);
    status = good ? run(&o, &text) : EXIT_FAILURE;
    free(text.bytes);
    return status;
}
