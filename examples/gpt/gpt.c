/* A language model of bytes: a small GPT learns a text file, or sentences that this program makes up, and continues
 * them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <rapt.h>

#include "files.h"
#include "interrupt.h"
#include "options.h"
#include "ranks.h"
#include "resume.h"
#include "sample.h"
#include "text.h"
#include "train.h"
#include "weights.h"

/* Shows what the model has learned, and returns what the program exits with. */
static int present(rapt_gpt *gpt, const struct text *text, const struct options *o)
{
    const double loss = validate(gpt, text, o);
    printf("validation loss %.4f (%.3f bits a byte)\n", loss, loss / log(2));
    rapt_module_train(&gpt->module, false);
    if (o->sample > 0) sample_print(gpt, text, o);
    if (o->data) return EXIT_SUCCESS;
    const int right = sample_count_right_ends(gpt, text);
    printf("sentences ended as they must end: %d of 100\n", right);
    if (right >= 90 || o->steps < default_steps) return EXIT_SUCCESS;
    fprintf(stderr, "gpt: 90 or more of 100 sentences expected to end as they must after %d steps or more, not %d\n",
            default_steps, right);
    return EXIT_FAILURE;
}

static int run(const struct options *o, const struct text *text)
{
    const bool is_llama = o->blocks == llama_blocks;
    const rapt_gpt_config config = {.vocabulary = text->vocabulary,
                                    .context = o->context,
                                    .hidden = o->hidden,
                                    .layers = (int)o->layers,
                                    .heads = o->heads,
                                    .dropout = o->dropout,
                                    .positions = (rapt_gpt_positions)o->positions,
                                    .kind = is_llama ? RAPT_FEED_FORWARD_SWIGLU : RAPT_FEED_FORWARD_GELU,
                                    .rms_norm = is_llama,
                                    .rotary_halves = is_llama && o->positions == RAPT_POSITIONS_ROTARY};
    rapt_gpt *gpt = rapt_gpt_new(&config);
    if (o->weights && !weights_load(gpt, text, o->weights)) {
        rapt_module_free(&gpt->module);
        return EXIT_FAILURE;
    }
    printf("%lld bytes of text, %lld different; %lld parameters\n", (long long)text->count, (long long)text->vocabulary,
           (long long)rapt_module_parameter_count(&gpt->module));
    if (o->checkpoint) interrupt_watch();
    const struct trained trained = train(gpt, text, o);
    const int signal = ranks_signal();
    interrupt_release();
    const bool speaks = ranks_is_first(), saved = !o->save || !speaks || weights_save(gpt, text, o->save);
    int status = EXIT_SUCCESS;
    if (speaks && !signal) status = present(gpt, text, o);
    if (speaks && signal && trained.is_kept) status = resume_announce(trained.steps, o->steps, signal);
    ranks_end();
    rapt_module_free(&gpt->module);
    return saved && trained.is_logged && trained.is_kept ? status : EXIT_FAILURE;
}

/* No file that one option writes is one that another reads or writes; but weights may be saved where they were. */
static bool are_apart(const struct options *o)
{
    const struct file_option checkpoint = {"--checkpoint", o->checkpoint}, weights = {"--weights", o->weights},
                             log = {"--log", o->log},
                             files[] = {{"--data", o->data}, checkpoint, {"--save", o->save}, log, {0}};
    return files_are_apart("gpt", files) &&
           files_are_apart("gpt", (struct file_option[]){weights, checkpoint, log, {0}});
}

int main(int argc, char **argv)
{
    struct options o;
    struct text text = {0};
    int status = options_parse(argc, argv, &o);
    if (status >= 0) return status;
    rapt_on_error(rapt_exit_on_error);
    if (!ranks_begin("gpt", o.parts)) return EXIT_FAILURE;
    rapt_seed((uint64_t)o.seed);
    if (o.threads > 0) rapt_set_threads((int)o.threads);
    const bool saves = o.save && ranks_is_first(), checkpoints = o.checkpoint && ranks_is_first();
    bool good = (!ranks_is_first() || are_apart(&o)) && (!saves || file_can_be_saved("gpt", o.save)) &&
                (!checkpoints || ranks_can_save("gpt", o.checkpoint)) &&
                (o.data ? text_read(o.data, &text) : text_make_up(&text)) && text_index(&text, o.context);
    if (!o.prompt) o.prompt = text.beginning;
    good = good && text_check_prompt(&text, o.prompt);
    status = good ? run(&o, &text) : EXIT_FAILURE;
    free(text.bytes);
    return status;
}
