/* The training loop. */
#include "train.h"

#include <stdio.h>

#include "ranks.h"
#include "resume.h"
#include "run_log.h"

static rapt_tensor *loss_of(rapt_gpt *gpt, rapt_tensor *inputs, rapt_tensor *targets)
{
    return rapt_gpt_loss(gpt, inputs, targets, NULL);
}

double validate(rapt_gpt *gpt, const struct text *text, const struct options *o)
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
        text_windows(text, size, starts, o->context, &inputs, &targets);
        sum += rapt_item(loss_of(gpt, inputs, targets));
    }
    rapt_module_train(&gpt->module, true);
    return sum / (double)batches;
}

struct batch {
    rapt_gpt *gpt;
    const struct text *text;
    int64_t context;
    const int64_t *starts; /* of the windows */
};

static rapt_tensor *loss_of_windows(void *context, int64_t first, int64_t last, double *weight)
{
    const struct batch *b = context;
    rapt_tensor *inputs, *targets;
    text_windows(b->text, last - first, b->starts + first, b->context, &inputs, &targets);
    *weight = (double)(last - first);
    return loss_of(b->gpt, inputs, targets);
}

static double train_step(rapt_gpt *gpt, rapt_optimizer *adamw, const struct text *text, const struct options *o,
                         int64_t step)
{
    RAPT_SCOPE;
    double loss = 0;
    const rapt_tensor *starts = rapt_randint(0, text->training - o->context, RAPT_SHAPE(o->batch));
    ranks_backward(step, o->batch, loss_of_windows, &(struct batch){gpt, text, o->context, rapt_data(starts)}, &loss);
    rapt_optimizer_step_clipped(adamw, 1, NULL);
    return loss;
}

/* The settings of nanoGPT: weight decay on matrices only, warm-up, cosine to a tenth. */
static rapt_optimizer *optimizer_of(rapt_gpt *gpt, const struct options *o)
{
    rapt_optimizer *adamw =
        rapt_adamw_new(&gpt->module,
                       &(rapt_adam_config){.learning_rate = o->learning_rate, .beta2 = 0.99, .weight_decay = 0.1});
    rapt_optimizer_group(adamw, "*.ln_*", &(rapt_group_config){.weight_decay = RAPT_ZERO});
    return adamw;
}

static double learning_rate(const struct options *o, int64_t step)
{
    const rapt_schedule schedule = {.kind = RAPT_SCHEDULE_COSINE,
                                    .warm_up = o->steps / 20,
                                    .total = o->steps,
                                    .final = 0.1};
    return o->learning_rate * rapt_schedule_factor(&schedule, step);
}

/* Without the handler, which would end the program before its weights are saved. */
static bool save(const char *path, const rapt_checkpoint *run)
{
    rapt_error_handler *handler = rapt_on_error(NULL);
    const bool good = ranks_save(path, run);
    if (!good && ranks_is_first()) fprintf(stderr, "%s\n", rapt_error());
    rapt_clear_error();
    rapt_on_error(handler);
    return good;
}

struct trained train(rapt_gpt *gpt, const struct text *text, const struct options *o)
{
    char note[resume_note_size];
    options_note(o, text, note, sizeof note);
    rapt_optimizer *adamw = optimizer_of(gpt, o);
    ranks_share(&gpt->module, note);
    rapt_checkpoint run = {.module = &gpt->module, .optimizer = adamw, .note = note};
    if (o->resumes && resume_check_note(o->checkpoint, note)) ranks_load(o->checkpoint, &run);
    if (o->checkpoint && !o->resumes) resume_check_new(o->checkpoint, note, o->steps);
    struct run_log log;
    run_log_open(&log, ranks_is_first() ? o->log : NULL, run.step);
    rapt_progress progress = rapt_progress_start(ranks_is_first() ? stderr : NULL, run.step, o->steps);
    bool is_kept = true;
    while (is_kept && run.step < o->steps && !ranks_signal()) {
        const double rate = learning_rate(o, run.step);
        rapt_optimizer_set_learning_rate(adamw, rate);
        const double loss = train_step(gpt, adamw, text, o, run.step);
        rapt_progress_step(&progress, loss, o->batch * o->context);
        run_log_row(&log, &progress, run.step, RAPT_METRIC_ROW({"loss", loss}, {"learning_rate", rate}));
        run.step++;
        if (o->checkpoint && run.step % o->checkpoint_every == 0) is_kept = save(o->checkpoint, &run);
    }
    rapt_progress_end(&progress);
    run_log_close(&log, &progress);
    if (o->checkpoint && is_kept) is_kept = save(o->checkpoint, &run);
    rapt_optimizer_free(adamw);
    return (struct trained){run.step, !log.failed, is_kept};
}
