/* The page of a run: about a thousand points of the loss, and the attention at about forty steps. */
#include "training_page.h"

#include "drawn.h"
#include "ranks.h"

enum { points = 1000, views = 40 };

/* Every so many steps, so that it happens about so often. */
static bool is_due(const struct run *run, int64_t times)
{
    const int64_t limit = run->options->steps;
    const int64_t steps = limit > 0 && limit < run->total_steps ? limit : run->total_steps;
    const int64_t every = steps > times ? (steps + times - 1) / times : 1;
    return run->step % every == 0 || run->step == steps;
}

/* The model as it is, without a trace in the run. */
static bool add_attention(struct run *run)
{
    RAPT_NO_GRADIENT;
    const rapt_random_state random = rapt_random_get_state();
    rapt_module_train(&run->model->module, false);
    const bool good = draw_attention_on_page(run);
    rapt_module_train(&run->model->module, true);
    rapt_random_set_state(random);
    return good;
}

bool training_page_begin(struct run *run)
{
    char path[4096], error[600];
    if (!run->options->writes_page || !ranks_is_first()) return true;
    run_path(run->options, "training.html", path, sizeof path);
    if (!web_page_open(&run->page, path, "A translator in training", run->note, run->step, error, sizeof error))
        return rapt_fail(RAPT_ERROR_FILE, "translate", "%s", error);
    return run->step > 0 || add_attention(run);
}

bool training_page_step(struct run *run, rapt_progress *progress)
{
    if (!run->page.stream) return true;
    run->page_loss += run->recent_loss;
    run->page_steps++;
    if (is_due(run, points)) {
        web_page_point(&run->page, run->step, "training", run->page_loss / (double)run->page_steps);
        web_page_point(&run->page, run->step, "learning rate", rapt_optimizer_get_learning_rate(run->optimizer));
        run->page_loss = 0;
        run->page_steps = 0;
    }
    const bool good = !is_due(run, views) || add_attention(run);
    if (!web_page_is_whole(&run->page)) training_page_end(run, progress);
    return good;
}

void training_page_epoch(struct run *run, double validation_loss)
{
    web_page_point(&run->page, run->step, "validation", validation_loss);
}

void training_page_end(struct run *run, rapt_progress *progress)
{
    char error[600];
    if (!run->page.stream) return;
    run->page_failed = !web_page_close(&run->page, error, sizeof error);
    if (run->page_failed)
        rapt_progress_print(progress, "translate: %s", error);
    else
        printf("drawn: the whole run: %s/training.html\n", run->options->out);
}
