/* The training loop. */
#include <stdio.h>

#include "ranks.h"
#include "run.h"
#include "training_page.h"

static double learning_rate(const struct run *run)
{
    const bool falls = run->options->schedule == COSINE_SCHEDULE;
    const rapt_schedule schedule = {.kind = falls ? RAPT_SCHEDULE_COSINE : RAPT_SCHEDULE_CONSTANT,
                                    .total = run->total_steps};
    return run->options->learning_rate * rapt_schedule_factor(&schedule, run->step);
}

static const int64_t *padding(const struct run *run)
{
    return run->options->counts_padding ? NULL : &run->pairs->target_vocabulary->padding;
}

/* The training rows of the next step, in this epoch or the next. */
static bool next_batch(const struct run *run, struct batch *batch)
{
    return batches_next(run->batches, batch) || (!rapt_error() && batches_next(run->batches, batch));
}

struct rows {
    const struct run *run;
    const struct batch *batch;
};

static rapt_tensor *loss_of_rows(void *context, int64_t first, int64_t last, double *weight)
{
    const struct rows *rows = context;
    const struct batch part = batch_rows(rows->batch, first, last);
    const int64_t *left_out = padding(rows->run);
    *weight = (double)(left_out ? part.num_tokens : part.count);
    return model_loss(rows->run->model, &part, left_out);
}

static bool step(struct run *run, rapt_progress *progress)
{
    RAPT_SCOPE;
    struct batch batch;
    double loss;
    if (!next_batch(run, &batch)) return false;
    bool good = ranks_backward(run->step, batch.count, loss_of_rows, &(struct rows){run, &batch}, &loss) &&
                rapt_clip_gradient_norm(run->optimizer, run->options->clip, NULL) &&
                rapt_optimizer_set_learning_rate(run->optimizer, learning_rate(run)) &&
                rapt_optimizer_step(run->optimizer);
    if (!good) return false;
    run->last_loss = run->recent_loss;
    run->recent_loss = loss;
    run->epoch_loss += run->recent_loss;
    run->step++;
    rapt_progress_step(progress, run->recent_loss, batch.num_tokens);
    return true;
}

double run_validate(struct run *run)
{
    RAPT_NO_GRADIENT;
    struct batch batch;
    int64_t batches = 0;
    double sum = 0;
    rapt_module_train(&run->model->module, false);
    for (; run->validation && batches_next(run->validation, &batch); batches++) {
        RAPT_SCOPE;
        sum += rapt_item(model_loss(run->model, &batch, padding(run)));
    }
    rapt_module_train(&run->model->module, true);
    return sum / (double)batches; /* the mean of the batches' means, as the book plots it; NaN without a pair */
}

/* The book reports the mean of an epoch's last two batches; others want the mean of all. */
static double training_loss(const struct run *run)
{
    bool two = run->options->is_book && run->steps_per_epoch > 1;
    return two ? (run->recent_loss + run->last_loss) / 2 : run->epoch_loss / (double)run->steps_per_epoch;
}

static void tell_losses(struct run *run, rapt_progress *progress, const double losses[2])
{
    const rapt_metric training = {"training_loss", losses[0]}, validation = {"validation_loss", losses[1]},
                      rate = {"learning_rate", rapt_optimizer_get_learning_rate(run->optimizer)};
    const long long epoch = run->step / run->steps_per_epoch, epochs = run->options->epochs;
    if (run->validation) {
        rapt_progress_print(progress, "epoch %lld/%lld: training loss %.4f, validation loss %.4f", epoch, epochs,
                            losses[0], losses[1]);
        run_log_row(&run->log, progress, run->step, RAPT_METRIC_ROW(training, validation, rate));
    } else {
        rapt_progress_print(progress, "epoch %lld/%lld: training loss %.4f", epoch, epochs, losses[0]);
        run_log_row(&run->log, progress, run->step, RAPT_METRIC_ROW(training, rate));
    }
}

static bool end_epoch(struct run *run, rapt_progress *progress)
{
    double *losses = (double *)rapt_data_for_writing(run->curves) + 2 * (run->step / run->steps_per_epoch - 1);
    losses[0] = training_loss(run);
    losses[1] = run_validate(run);
    run->epoch_loss = 0;
    training_page_epoch(run, losses[1]);
    tell_losses(run, progress, losses);
    return !rapt_error();
}

static bool is_checkpoint_due(const struct run *run, bool epoch_ended)
{
    int64_t every = run->options->checkpoint_every;
    return every > 0 ? run->step % every == 0 : epoch_ended;
}

bool run_train(struct run *run)
{
    int64_t limit = run->options->steps;
    int64_t end = limit > 0 && limit < run->total_steps ? limit : run->total_steps;
    rapt_progress progress = rapt_progress_start(ranks_is_first() ? stderr : NULL, run->step, end);
    bool good = run_log_open(&run->log, ranks_is_first() ? run->options->log : NULL,
                             run->step > 0 ? run->step + 1 : 0) && /* rows follow their step */
                training_page_begin(run);
    while (good && !run->checkpoint_failed && run->step < end && !ranks_signal()) {
        good = step(run, &progress) && training_page_step(run, &progress);
        bool epoch_ended = good && run->step % run->steps_per_epoch == 0;
        if (epoch_ended) good = end_epoch(run, &progress);
        if (good && is_checkpoint_due(run, epoch_ended)) run->checkpoint_failed = !run_save(run);
    }
    rapt_progress_end(&progress);
    run_log_close(&run->log, &progress);
    training_page_end(run, &progress);
    if (good && !run->checkpoint_failed) run->checkpoint_failed = !run_save(run);
    return good;
}
