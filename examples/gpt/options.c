/* The command line. */
#include "options.h"

#include <stdio.h>

#include "command_line.h"
#include "hash.h"
#include "resume.h"

enum { DEFAULT_PRESET, SMALL_PRESET };
static const char *const preset_names[] = {[DEFAULT_PRESET] = "default", [SMALL_PRESET] = "small", NULL};
const char *const position_names[] = {[RAPT_POSITIONS_LEARNED] = "learned",
                                      [RAPT_POSITIONS_SINUSOIDAL] = "sinusoidal",
                                      [RAPT_POSITIONS_ROTARY] = "rotary",
                                      [RAPT_POSITIONS_ALIBI] = "alibi",
                                      NULL};
const char *const block_names[] = {[gpt2_blocks] = "gpt2", [llama_blocks] = "llama", NULL};

int options_parse(int argc, char **argv, struct options *o)
{
    *o = (struct options){.preset = -1,
                          .steps = -1,
                          .batch = -1,
                          .context = 64,
                          .hidden = -1,
                          .layers = -1,
                          .heads = 4,
                          .sample = 256,
                          .learning_rate = -1,
                          .temperature = 0.8,
                          .seed = 1,
                          .checkpoint_every = -1};
    const struct command_option table[] = {
        {.help = "Text"},
        {"--data", .metavar = "FILE", .help = "the text to learn, any bytes; without it sentences are made up",
         .string = &o->data},
        {.help = "Model"},
        {"--preset",
         .help = "small: nanoGPT's settings for a processor (4 layers, 128 wide, 2000 steps), which --data takes by "
                 "itself",
         .choice = &o->preset, .choices = preset_names},
        {"--context", .metavar = "N", .help = "bytes that the model sees at once", .integer = &o->context,
         .integer_range = {2, 65536}},
        {"--hidden", .metavar = "N", .help = "width (preset)", .integer = &o->hidden, .integer_range = {1, 65536}},
        {"--layers", .metavar = "N", .help = "blocks (preset)", .integer = &o->layers, .integer_range = {1, 64}},
        {"--heads", .metavar = "N", .help = "attention heads", .integer = &o->heads, .integer_range = {1, 1024}},
        {"--positions", .help = "how the model knows where a byte stands", .choice = &o->positions,
         .choices = position_names},
        {"--blocks", .help = "gpt2: layer norm and GELU; llama: RMSNorm and SwiGLU, and rotary positions in halves",
         .choice = &o->blocks, .choices = block_names},
        {"--dropout", .metavar = "X", .help = "probability", .real = &o->dropout, .real_range = {0, 1}},
        {.help = "Training"},
        {"--steps", .metavar = "N", .help = "training steps (preset)", .integer = &o->steps,
         .integer_range = {0, INT32_MAX}},
        {"--batch-size", .metavar = "N", .help = "windows in a step (preset)", .integer = &o->batch,
         .integer_range = {1, 65536}},
        {"--learning-rate", .metavar = "X", .help = "of AdamW at its peak (preset)", .real = &o->learning_rate,
         .real_range = {1e-12, 10}},
        {"--checkpoint", .metavar = "FILE", .help = "write the whole run there as it goes (safetensors)",
         .string = &o->checkpoint},
        {"--checkpoint-every", .metavar = "N", .help = "steps between checkpoints; without it 100",
         .integer = &o->checkpoint_every, .integer_range = {1, INT32_MAX}},
        {"--resume", .help = "go on with the run whose checkpoint is in the --checkpoint file", .flag = &o->resumes},
        command_line_seed(&o->seed),
        command_line_threads(&o->threads),
        command_line_parts(&o->parts),
        {"--save", .metavar = "FILE", .help = "write the weights there (safetensors)", .string = &o->save},
        {"--log", .metavar = "PATH",
         .help = "write loss and learning rate of each step there: FILE.csv, FILE.jsonl, or a folder for TensorBoard",
         .string = &o->log},
        {"--weights", .metavar = "FILE", .help = "begin with these weights; --steps 0 only continues the text",
         .string = &o->weights},
        {.help = "Continuing"},
        {"--prompt", .metavar = "TEXT", .help = "what to continue; without it a new line", .string = &o->prompt},
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
    if (!o->checkpoint && (o->resumes || o->checkpoint_every > 0))
        return command_line_wrong("gpt", "%s needs --checkpoint FILE", o->resumes ? "--resume" : "--checkpoint-every");
    if (o->temperature == 0 && (o->top_k > 0 || o->top_p > 0))
        return command_line_wrong("gpt", "%s chooses at random, which --temperature 0 does not",
                                  o->top_k > 0 ? "--top-k" : "--top-p");
    if (o->checkpoint_every < 0) o->checkpoint_every = 100;
    if (o->preset < 0) o->preset = o->data ? SMALL_PRESET : DEFAULT_PRESET;
    const bool small = o->preset == SMALL_PRESET;
    if (o->steps < 0) o->steps = small ? 2000 : default_steps;
    if (o->batch < 0) o->batch = small ? 12 : 8;
    if (o->hidden < 0) o->hidden = small ? 128 : 64;
    if (o->layers < 0) o->layers = small ? 4 : 2;
    if (o->learning_rate < 0) o->learning_rate = small ? 0.001 : 0.003;
    return -1;
}

void options_note(const struct options *o, const struct text *text, char *note, size_t size)
{
    char data[resume_path_size], weights[resume_path_size];
    snprintf(note, size,
             "%lld bytes of %lld kinds, seed %lld, steps %lld, batch %lld, context %lld, hidden %lld, layers %lld, "
             "heads %lld, positions %s, blocks %s, dropout %.17g, learning rate %.17g, data %s, weights %s",
             (long long)text->count, (long long)text->vocabulary, (long long)o->seed, (long long)o->steps,
             (long long)o->batch, (long long)o->context, (long long)o->hidden, (long long)o->layers,
             (long long)o->heads, position_names[o->positions], block_names[o->blocks], o->dropout, o->learning_rate,
             o->data ? resume_path(o->data, data) : "sentences",
             o->weights ? resume_path(o->weights, weights) : "random");
    resume_end_note(note, size, o->data ? hash_bytes(HASH_BEGIN, text->bytes, (size_t)text->count) : 0, o->parts);
}
