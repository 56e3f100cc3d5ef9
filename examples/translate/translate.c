/* The translator: trains a sequence-to-sequence model from scratch, or translates with one. */
#include <stdio.h>
#include <stdlib.h>

#include "evaluate.h"
#include "files.h"
#include "interrupt.h"
#include "options.h"
#include "ranks.h"
#include "resume.h"
#include "run.h"
#include "saved_model.h"

static int complain(const char *message)
{
    fprintf(stderr, "translate: %s\n", message);
    return EXIT_FAILURE;
}

/* The first error, which begins with the name of what failed. */
static int complain_of_library(void)
{
    if (rapt_error()) fprintf(stderr, "%s\n", rapt_error());
    return EXIT_FAILURE;
}

/* False where this cannot be printed; the end of the program tells of standard output. */
static bool introduce(const struct run *run)
{
    const struct pairs *p = run->pairs;
    printf("data: %lld training, %lld validation, %lld test pairs; vocabularies of %lld and %lld words\n",
           (long long)p->num_train, (long long)p->num_validation, (long long)p->num_test,
           (long long)p->source_vocabulary->size, (long long)p->target_vocabulary->size);
    if (p->num_left_out > 0)
        printf("left out: %lld pairs with a sentence of more than %lld tokens\n", (long long)p->num_left_out,
               (long long)p->num_steps - 1);
    const bool good = rapt_module_print(&run->model->module, stdout);
    if (ferror(stdout)) rapt_clear_error();
    return good;
}

static int train(const struct options *options, const struct pairs *pairs)
{
    struct run run;
    char path[4096];
    int status = EXIT_SUCCESS;
    interrupt_watch();
    bool good = run_begin(&run, options, pairs) && (options->resumes ? run_resume(&run) : run_check_new(&run));
    good = good && introduce(&run) && run_train(&run);
    const int signal = good ? ranks_signal() : interrupt_signal();
    interrupt_release();
    if (good && !ranks_is_first()) {
        ranks_end();
        run_end(&run);
        return EXIT_SUCCESS;
    }
    if (good) /* also where its checkpoint found no room */
        good = saved_model_write(run_path(options, "model.safetensors", path, sizeof path), run.model, pairs) &&
               !run.checkpoint_failed;
    if (good && signal)
        status = resume_announce(run.step, run.total_steps, signal);
    else if (!good || !evaluate(&run))
        status = complain_of_library();
    if (status != EXIT_FAILURE) ranks_end();
    if (run.log.failed || run.page_failed) status = EXIT_FAILURE;
    run_end(&run);
    return status;
}

/* Neither the data nor the log is a file that this program writes in its folder, or the other. */
static bool are_apart(const struct options *options)
{
    char path[4096];
    struct file_option files[] = {{"--data", options->data}, {"--log", options->log}, {"--out", path}, {0}};
    bool good = true;
    for (const char *const *name = run_files; good && *name; name++) {
        run_path(options, *name, path, sizeof path);
        good = files_are_apart("translate", files);
    }
    return good;
}

/* Before anything is made in a folder whose name may be mistyped. */
static bool has_checkpoint(const struct options *options)
{
    char path[4096];
    run_path(options, "checkpoint.safetensors", path, sizeof path);
    return file_is_there("translate", path, "checkpoint");
}

int main(int argc, char **argv)
{
    struct options options;
    struct translate_error error;
    char path[4096];
    int status = options_parse(argc, argv, &options);
    if (status >= 0) return status;
    if (options.threads > 0) rapt_set_threads((int)options.threads);
    if (options.translates)
        return translate_text(options.weights ? options.weights
                                              : run_path(&options, "model.safetensors", path, sizeof path),
                              options.sentence, (int)options.beams);
    if (!ranks_begin("translate", options.parts)) return EXIT_FAILURE;
    struct pairs *pairs = options.data ? pairs_from_file(options.data, &options.pairs, &error)
                                       : pairs_from_numbers(&options.pairs, &error);
    if (!pairs) return complain(error.message);
    const bool can_save = !ranks_is_first() || (are_apart(&options) && (!options.resumes || has_checkpoint(&options)) &&
                                                folder_can_be_saved("translate", options.out, run_files));
    status = can_save ? train(&options, pairs) : EXIT_FAILURE;
    pairs_free(pairs);
    return status;
}
