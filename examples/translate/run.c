/* A training run: its parts, its checkpoint. */
#include "run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
    return run->optimizer && run->batches && (run->validation || pairs->num_validation == 0) && run->curves;
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
    return losses &&
           rapt_checkpoint_save(run_path(run->options, "checkpoint.safetensors", path, sizeof path), &checkpoint);
}

/* The length of the first part of a note; parts are set apart by ", ". */
static size_t part_length(const char *note)
{
    const char *end = strstr(note, ", ");
    return end ? (size_t)(end - note) : strlen(note);
}

/* "seed 0, not seed 1; hidden 64, not hidden 128" */
static void describe_difference(const char *theirs, const char *ours, char *text, size_t size)
{
    size_t used = 0;
    while (*theirs && *ours && used < size) {
        size_t a = part_length(theirs), b = part_length(ours);
        if (a != b || memcmp(theirs, ours, a) != 0)
            used += (size_t)snprintf(text + used, size - used, "%s%.*s, not %.*s", used ? "; " : "", (int)a, theirs,
                                     (int)b, ours);
        theirs += theirs[a] ? a + 2 : a;
        ours += ours[b] ? b + 2 : b;
    }
}

/* Is the checkpoint of a run with the same options? */
static bool check_note(const char *path, const char *ours)
{
    rapt_archive *archive = rapt_load_safetensors(path);
    const char *theirs = archive ? rapt_archive_find_text(archive, "note") : NULL;
    bool same = theirs && strcmp(theirs, ours) == 0;
    char text[256] = "";
    if (theirs && !same) describe_difference(theirs, ours, text, sizeof text);
    if (archive && !same)
        rapt_fail(RAPT_ERROR_FORMAT, "resume", "'%.150s' is of another run%s%s", path, *text ? ": " : "", text);
    rapt_archive_free(archive);
    return same;
}

bool run_resume(struct run *run)
{
    RAPT_SCOPE;
    char path[4096];
    rapt_checkpoint read = {.module = &run->model->module, .optimizer = run->optimizer, .loader = run->batches};
    run_path(run->options, "checkpoint.safetensors", path, sizeof path);
    if (!check_note(path, run->note) || !rapt_checkpoint_load(path, &read)) return false;
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
