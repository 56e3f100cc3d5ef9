/* A training run: its parts, its checkpoint. */
#include "run.h"

#include <math.h>
#include <stdio.h>

#include "ranks.h"
#include "resume.h"

const char *const run_files[] = {"checkpoint.safetensors",
                                 "model.safetensors",
                                 "attention.svg",
                                 "attention.png",
                                 "attention-encoder.svg",
                                 "attention-encoder.png",
                                 "attention-decoder.svg",
                                 "attention-decoder.png",
                                 "loss.svg",
                                 "loss.png",
                                 "training.html",
                                 NULL};

const char *run_path(const struct options *options, const char *name, char *text, size_t size)
{
    snprintf(text, size, "%s/%s", options->out, name);
    return text;
}

bool run_begin(struct run *run, const struct options *options, const struct pairs *pairs)
{
    RAPT_SCOPE;
    *run = (struct run){.options = options, .pairs = pairs};
    rapt_seed((uint64_t)options->seed);
    run->model = model_new(&(struct model_sizes){.architecture = options->architecture,
                                                 .scoring = options->scoring,
                                                 .source_vocabulary = pairs->source_vocabulary->size,
                                                 .target_vocabulary = pairs->target_vocabulary->size,
                                                 .embedding = options->embedding,
                                                 .hidden = options->hidden,
                                                 .layers = options->layers,
                                                 .heads = options->heads,
                                                 .feed_forward = options->feed_forward,
                                                 .dropout = options->dropout,
                                                 .is_book = options->is_book && !options->is_fixed,
                                                 .reads_padding = options->counts_padding});
    if (!run->model) return false;
    run->optimizer = rapt_adam_new(&run->model->module, &(rapt_adam_config){.learning_rate = options->learning_rate});
    run->batches = batches_of(pairs, 0, pairs->num_train, options->batch_size, true);
    if (pairs->num_validation > 0)
        run->validation = batches_of(pairs, pairs->num_train, pairs->num_validation, options->batch_size, false);
    run->curves = rapt_retain(rapt_full(RAPT_FLOAT64, RAPT_SHAPE(options->epochs, 2), NAN));
    run->steps_per_epoch = (pairs->num_train + options->batch_size - 1) / options->batch_size;
    run->total_steps = run->steps_per_epoch * options->epochs;
    options_note(options, pairs, run->note, sizeof run->note);
    return run->optimizer && run->batches && (run->validation || pairs->num_validation == 0) && run->curves &&
           ranks_share(&run->model->module, run->note);
}

void run_end(struct run *run)
{
    rapt_optimizer_free(run->optimizer);
    rapt_module_free(run->model ? &run->model->module : NULL);
    rapt_loader_free(run->batches);
    rapt_loader_free(run->validation);
    rapt_release(run->curves);
}

/* What a checkpoint keeps of the losses: three numbers of the present epoch, then the curves. */
enum { present = 3 };

static rapt_tensor *collect_losses(const struct run *run)
{
    rapt_tensor *now =
        rapt_from(RAPT_FLOAT64, RAPT_SHAPE(present), (double[]){run->epoch_loss, run->recent_loss, run->last_loss});
    rapt_tensor *parts[] = {now, rapt_reshape(run->curves, RAPT_SHAPE(-1))};
    return rapt_concat(2, parts, 0);
}

bool run_save(const struct run *run)
{
    RAPT_SCOPE;
    char path[4096];
    rapt_tensor *losses = collect_losses(run);
    const rapt_checkpoint checkpoint = {.module = &run->model->module,
                                        .optimizer = run->optimizer,
                                        .step = run->step,
                                        .loader = run->batches,
                                        .records = losses,
                                        .note = run->note};
    return losses && ranks_save(run_path(run->options, "checkpoint.safetensors", path, sizeof path), &checkpoint);
}

bool run_resume(struct run *run)
{
    RAPT_SCOPE;
    char path[4096];
    rapt_checkpoint read = {.module = &run->model->module, .optimizer = run->optimizer, .loader = run->batches};
    run_path(run->options, "checkpoint.safetensors", path, sizeof path);
    if (!resume_check_note(path, run->note) || !ranks_load(path, &read)) return false;
    if (!read.records || rapt_count(read.records) != present + rapt_count(run->curves))
        return rapt_fail(RAPT_ERROR_FORMAT, "resume", "%s is a checkpoint of some other program", path);
    run->step = read.step;
    const double *losses = rapt_data(read.records);
    run->epoch_loss = losses[0];
    run->recent_loss = losses[1];
    run->last_loss = losses[2];
    rapt_tensor *curves =
        rapt_reshape(rapt_slice(read.records, 0, present, rapt_count(read.records), 1), RAPT_SHAPE(-1, 2));
    return rapt_copy(run->curves, curves);
}

bool run_check_new(const struct run *run)
{
    char path[4096];
    return resume_check_new(run_path(run->options, "checkpoint.safetensors", path, sizeof path), run->note,
                            run->total_steps);
}
