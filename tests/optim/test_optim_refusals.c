/* What functions of the folder optim refuse, one argument at a time: the sentence names what is wrong. */
#include "loader_columns.h"
#include "refused.h"

#include <math.h>

#include <rapt/profile.h>
#include <rapt/progress.h>
#include <rapt/schedule.h>
#include <rapt/watch.h>

static rapt_linear *linear;
static rapt_optimizer *sgd;
static rapt_archive *archive;

static void begin(void)
{
    linear = rapt_linear_new(2, 2, RAPT_BIAS);
    sgd = rapt_sgd_new(&linear->module, NULL);
    archive = rapt_archive_new();
    cr_assert(sgd && archive, "%s", rapt_error());
}

static void end(void)
{
    rapt_archive_free(archive);
    rapt_optimizer_free(sgd);
    rapt_module_free(&linear->module);
}

TestSuite(optim_refusals, .init = begin, .fini = end);

#define NOT_A_NUMBER(call, words)                                                                                      \
    do {                                                                                                               \
        cr_expect(isnan(call), "%s", #call);                                                                           \
        expect_error(RAPT_ERROR_NULL, words);                                                                          \
    } while (0)

Test(optim_refusals, optimizers)
{
    RAPT_SCOPE;
    rapt_tensor *leaf = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2)));
    const rapt_group_config group = {.learning_rate = 1};
    NULL_IN(rapt_optimizer_add(NULL, "a", leaf), "optimizer_add: optimizer is NULL");
    NULL_IN(rapt_optimizer_add(sgd, NULL, leaf), "SGD: the name of a parameter is NULL");
    NULL_IN(rapt_optimizer_add(sgd, "a", NULL), "SGD: parameter 'a' is NULL");
    REFUSED(rapt_optimizer_add(sgd, "a", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2))), RAPT_ERROR_GRAPH, "'a' is no leaf");
    BAD_VALUE(rapt_optimizer_add(sgd, "a", linear->weight), "SGD: 'a' is there already, as 'weight'");
    BAD_VALUE(rapt_optimizer_add(sgd, "weight", leaf), "SGD: the name 'weight' is in use");
    NULL_IN(rapt_optimizer_group(NULL, "*", &group), "optimizer_group: optimizer is NULL");
    NULL_IN(rapt_optimizer_group(sgd, NULL, &group), "optimizer_group: pattern is NULL");
    NULL_IN(rapt_optimizer_group(sgd, "*", NULL), "optimizer_group: config is NULL");
    BAD_VALUE(rapt_optimizer_group(sgd, "*", &(rapt_group_config){.learning_rate = -1}),
              "optimizer_group: learning_rate is -1; a finite number from 0 on expected");
    BAD_VALUE(rapt_optimizer_group(sgd, "*", &(rapt_group_config){.weight_decay = -1}),
              "optimizer_group: weight_decay is -1; a finite number from 0 on expected");
    BAD_VALUE(rapt_optimizer_group(sgd, "nothing", &group),
              "optimizer_group: no name of the 2 parameters matches 'nothing'");
    NULL_IN(rapt_optimizer_step(NULL), "optimizer_step: optimizer is NULL");
    NULL_IN(rapt_optimizer_prepare(NULL), "optimizer_prepare: optimizer is NULL");
    NOT_A_NUMBER(rapt_optimizer_get_learning_rate(NULL), "optimizer is NULL");
    NULL_IN(rapt_optimizer_set_learning_rate(NULL, 1), "optimizer_set_learning_rate: optimizer is NULL");
    BAD_VALUE(rapt_optimizer_set_learning_rate(sgd, -1),
              "optimizer_set_learning_rate: learning_rate is -1; a finite number from 0 on expected");
    BAD_VALUE(rapt_optimizer_set_learning_rate(sgd, (double)NAN),
              "optimizer_set_learning_rate: learning_rate is nan; a finite number from 0 on expected");
    NULL_IN(rapt_optimizer_get_steps(NULL), "optimizer_get_steps: optimizer is NULL");
    NULL_IN(rapt_optimizer_count(NULL), "optimizer_count: optimizer is NULL");
    NULL_IN(rapt_optimizer_is_elementwise(NULL), "optimizer_is_elementwise: optimizer is NULL");
    NULL_IN(rapt_clip_gradient_norm(NULL, 1, NULL), "clip_gradient_norm: optimizer is NULL");
    NULL_IN(rapt_clip_gradient_value(NULL, 1), "clip_gradient_value: optimizer is NULL");
    NULL_IN(rapt_optimizer_step_clipped(NULL, 1, NULL), "optimizer_step_clipped: optimizer is NULL");
    BAD_VALUE(rapt_clip_gradient_norm(sgd, 0, NULL), "clip_gradient_norm: the limit is 0; a number above 0 expected");
    BAD_VALUE(rapt_clip_gradient_value(sgd, -1), "clip_gradient_value: the limit is -1; a number above 0 expected");
    BAD_VALUE(rapt_optimizer_step_clipped(sgd, (double)NAN, NULL),
              "optimizer_step_clipped: the limit is nan; a number above 0 expected");
    NULL_IN(rapt_optimizer_to_archive(NULL, NULL, archive), "optimizer_to_archive: optimizer is NULL");
    NULL_IN(rapt_optimizer_to_archive(sgd, NULL, NULL), "optimizer_to_archive: archive is NULL");
    NULL_IN(rapt_optimizer_from_archive(NULL, NULL, archive), "optimizer_from_archive: optimizer is NULL");
    NULL_IN(rapt_optimizer_from_archive(sgd, NULL, NULL), "optimizer_from_archive: archive is NULL");
    NULL_IN(rapt_muon_by_adamw(NULL, "*"), "muon_by_adamw: optimizer is NULL");
    BAD_VALUE(rapt_muon_by_adamw(sgd, "*"), "muon_by_adamw: the optimizer is SGD; Muon expected");
}

Test(optim_refusals, accumulated_gradients)
{
    RAPT_SCOPE;
    rapt_accumulation accumulation = {0};
    rapt_tensor *loss =
        rapt_sum(rapt_linear_forward(linear, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2))), RAPT_ALL_AXES, false);
    NULL_IN(rapt_accumulate(NULL, loss, 1), "accumulate: accumulation is NULL");
    NULL_IN(rapt_accumulate(&accumulation, NULL, 1), "accumulate: loss is NULL");
    BAD_VALUE(rapt_accumulate(&accumulation, loss, 0), "accumulate: the weight is 0; a finite number above 0 expected");
    BAD_VALUE(rapt_accumulate(&accumulation, loss, (double)INFINITY),
              "the weight is inf; a finite number above 0 expected");
    BAD_VALUE(rapt_accumulation_end(&accumulation, sgd, NULL),
              "accumulation_end: there was no part; rapt_accumulate expected before it");
    NULL_IN(rapt_accumulation_end(NULL, sgd, NULL), "accumulation_end: accumulation is NULL");
    NULL_IN(rapt_accumulation_end(&accumulation, NULL, NULL), "accumulation_end: optimizer is NULL");
    rapt_optimizer *const optimizers[] = {sgd, NULL};
    BAD_VALUE(rapt_accumulation_end_many(&accumulation, 1, optimizers, NULL),
              "accumulation_end_many: there was no part; rapt_accumulate expected before it");
    BAD_VALUE(rapt_accumulation_end_many(&accumulation, 0, optimizers, NULL),
              "accumulation_end_many: 0 optimizers; 1 or more expected");
    NULL_IN(rapt_accumulation_end_many(NULL, 1, optimizers, NULL), "accumulation_end_many: accumulation is NULL");
    NULL_IN(rapt_accumulation_end_many(&accumulation, 1, NULL, NULL), "accumulation_end_many: optimizers is NULL");
    NULL_IN(rapt_accumulation_end_many(&accumulation, 2, optimizers, NULL), "accumulation_end_many: optimizer is NULL");
    rapt_module_clear_gradients(&linear->module);
}

Test(optim_refusals, averages)
{
    rapt_average *average = rapt_average_new(&linear->module, NULL);
    NULL_IN(rapt_average_new(NULL, NULL), "average_new: module is NULL");
    BAD_VALUE(rapt_average_new(&linear->module, &(rapt_average_config){.decay = 2}),
              "average_new: decay is 2; a number from 0 to below 1 expected");
    BAD_VALUE(rapt_average_new(&linear->module, &(rapt_average_config){.decay = -1}),
              "average_new: decay is -1; a number from 0 to below 1 expected");
    NULL_IN(rapt_average_update(NULL), "average_update: average is NULL");
    NULL_IN(rapt_average_swap(NULL), "average_swap: average is NULL");
    NULL_IN(rapt_average_get_updates(NULL), "average_get_updates: average is NULL");
    NULL_IN(rapt_average_to_archive(NULL, NULL, archive), "average_to_archive: average is NULL");
    NULL_IN(rapt_average_from_archive(NULL, NULL, archive), "average_from_archive: average is NULL");
    REFUSED(rapt_average_from_archive(average, NULL, archive), RAPT_ERROR_FORMAT,
            "updates is missing; int64 [] expected");
    cr_assert(rapt_average_swap(average), "%s", rapt_error());
    BAD_VALUE(rapt_average_update(average),
              "average_update: the module has the averages now; rapt_average_swap expected before it");
    rapt_average_free(average);
}

Test(optim_refusals, checkpoints)
{
    RAPT_SCOPE;
    rapt_checkpoint whole = {.module = &linear->module}, none = {.step = 1};
    NULL_IN(rapt_checkpoint_save(NULL, &whole), "checkpoint_save: path is NULL");
    NULL_IN(rapt_checkpoint_save("/nowhere/at/all", NULL), "checkpoint_save: checkpoint is NULL");
    NULL_IN(rapt_checkpoint_save("/nowhere/at/all", &none), "checkpoint_save: module is NULL");
    NULL_IN(rapt_checkpoint_load(NULL, &whole), "checkpoint_load: path is NULL");
    NULL_IN(rapt_checkpoint_load("/nowhere/at/all", NULL), "checkpoint_load: checkpoint is NULL");
    NULL_IN(rapt_checkpoint_load("/nowhere/at/all", &none), "checkpoint_load: module is NULL");
    rapt_checkpoint checkpoint = whole;
    checkpoint.step = -1;
    BAD_VALUE(rapt_checkpoint_save("/nowhere/at/all", &checkpoint), "checkpoint_save: step is -1; 0 or more expected");
    checkpoint = whole;
    checkpoint.order = rapt_ones(RAPT_INT32, RAPT_SHAPE(2));
    BAD_SHAPE(rapt_checkpoint_save("/nowhere/at/all", &checkpoint), "order is int32 [2]; int64 (n) expected");
    checkpoint.order = rapt_ones(RAPT_INT64, RAPT_SHAPE(2, 2));
    BAD_SHAPE(rapt_checkpoint_save("/nowhere/at/all", &checkpoint), "order is int64 [2, 2]; int64 (n) expected");
    checkpoint = whole;
    checkpoint.records = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2));
    BAD_SHAPE(rapt_checkpoint_save("/nowhere/at/all", &checkpoint), "records is float32 [2]; float64 (n) expected");
}

static rapt_loader *loader_from(rapt_tensor *values, rapt_tensor *starts)
{
    const rapt_column column = {.values = values, .starts = starts};
    return rapt_loader_new(&(rapt_loader_config){.columns = &column, .column_count = 1, .batch_size = 1});
}

static rapt_tensor *starts_of(int64_t a, int64_t b, int64_t c)
{
    return rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){a, b, c});
}

Test(optim_refusals, loaders)
{
    RAPT_SCOPE;
    rapt_tensor *values = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4));
    NULL_IN(rapt_loader_new(NULL), "loader: config is NULL");
    NULL_IN(loader_from(NULL, NULL), "loader: the values of column 0 are NULL");
    BAD_SHAPE(loader_from(values, rapt_ones(RAPT_INT32, RAPT_SHAPE(3))),
              "the starts of column 0 are int32 [3]; int64 (items + 1) expected");
    BAD_SHAPE(loader_from(values, rapt_ones(RAPT_INT64, RAPT_SHAPE(1, 3))),
              "are int64 [1, 3]; int64 (items + 1) expected");
    BAD_SHAPE(loader_from(values, rapt_ones(RAPT_INT64, RAPT_SHAPE(0))), "are int64 [0]; int64 (items + 1) expected");
    BAD_VALUE(loader_from(values, starts_of(1, 2, 4)),
              "loader: start 0 of column 0 is 1; starts that rise from 0 to its 4 rows expected");
    BAD_VALUE(loader_from(values, starts_of(-1, 2, 4)),
              "loader: start 0 of column 0 is -1; starts that rise from 0 to its 4 rows expected");
    BAD_VALUE(loader_from(values, starts_of(0, 2, 1)),
              "loader: start 2 of column 0 is 1; starts that rise from 0 to its 4 rows expected");
    BAD_VALUE(loader_from(values, starts_of(0, 5, 5)),
              "loader: start 1 of column 0 is 5; starts that rise from 0 to its 4 rows expected");
    BAD_VALUE(loader_from(values, starts_of(0, 2, 3)),
              "loader: the last start of column 0 is 3; its number of rows, 4, expected");
    rapt_loader *loader = loader_from(values, starts_of(0, 2, 4));
    rapt_batch batch;
    NULL_IN(rapt_loader_next(NULL, &batch), "loader_next: loader is NULL");
    NULL_IN(rapt_loader_next(loader, NULL), "loader_next: batch is NULL");
    static const rapt_loader_state bad[] = {{.epoch = -1}, {.epoch = INT64_MAX}, {.next = -1}, {.next = 3}};
    for (int i = 0; i < 4; i++) {
        char message[160];
        snprintf(
            message, sizeof message,
            "loader_set_state: the loader's state is epoch %lld, item %lld; an epoch from 0 to below 2^62 and an item "
            "from 0 to 2 expected",
            (long long)bad[i].epoch, (long long)bad[i].next);
        BAD_VALUE(rapt_loader_set_state(loader, bad[i]), message);
    }
    cr_expect_eq(rapt_loader_count_batches(NULL), -1);
    expect_error(RAPT_ERROR_NULL, "loader is NULL");
    rapt_loader_free(loader);
}

Test(optim_refusals, metrics)
{
    const rapt_metric row = {"a", 1}, nameless = {NULL, 1};
    NULL_IN(rapt_metrics_open(NULL, RAPT_METRICS_CSV, false), "metrics_open: path is NULL");
    BAD_VALUE(rapt_metrics_open("/nowhere/a.txt", RAPT_METRICS_BY_NAME, false),
              "metrics_open: '/nowhere/a.txt' ends in .txt; .csv, .jsonl, or the name of a folder expected");
    BAD_VALUE(rapt_metrics_open("/nowhere/a.csv", (rapt_metrics_format)9, false), "9 is not a format of metrics");
    REFUSED(rapt_metrics_open("/nowhere/a.csv", RAPT_METRICS_BY_NAME, false), RAPT_ERROR_FILE,
            "'/nowhere/a.csv' cannot be written");
    REFUSED(rapt_metrics_open("/nowhere/a.jsonl", RAPT_METRICS_BY_NAME, true), RAPT_ERROR_FILE,
            "'/nowhere/a.jsonl' cannot be written");
    REFUSED(rapt_metrics_open("/nowhere/a", RAPT_METRICS_BY_NAME, false), RAPT_ERROR_FILE,
            "'/nowhere/a' is no folder and none can be made there");
    REFUSED(rapt_metrics_open("/nowhere/a.", RAPT_METRICS_BY_NAME, false), RAPT_ERROR_FILE,
            "'/nowhere/a.' is no folder and none can be made there");
    REFUSED(rapt_metrics_open("/dev/null", RAPT_METRICS_BY_NAME, false), RAPT_ERROR_FILE,
            "'/dev/null' is no folder and none can be made there");
    REFUSED(rapt_metrics_open("/dev", RAPT_METRICS_CSV, true), RAPT_ERROR_FILE,
            "'/dev' is no regular file, which alone can go on");
    NULL_IN(rapt_metrics_write(NULL, 1, 1, &row), "metrics_write: metrics is NULL");
    rapt_metrics *metrics = rapt_metrics_open("/dev/full", RAPT_METRICS_CSV, false);
    cr_assert_not_null(metrics, "%s", rapt_error());
    NULL_IN(rapt_metrics_write(metrics, 1, 1, NULL), "metrics_write: list is NULL");
    NULL_IN(rapt_metrics_write(metrics, 1, 1, &nameless), "metrics_write: the name of metric 0 is NULL");
    BAD_VALUE(rapt_metrics_write(metrics, 1, -1, &row), "metrics_write: -1 metrics; 1 or more expected");
    REFUSED(rapt_metrics_write(metrics, 1, 1, &row), RAPT_ERROR_FILE, "'/dev/full' cannot be written");
    rapt_metrics_close(metrics);
    rapt_clear_error();
}

Test(optim_refusals, schedules_and_watches)
{
    const rapt_schedule constant = {.kind = RAPT_SCHEDULE_COSINE, .total = 5};
    NOT_A_NUMBER(rapt_schedule_factor(NULL, 1), "schedule is NULL");
    NOT_A_NUMBER(rapt_schedule_chain_factor(1, NULL, NULL, 1), "is NULL");
    NOT_A_NUMBER(rapt_schedule_chain_factor(2, (rapt_schedule[]){constant, constant}, NULL, 1), "is NULL");
    NOT_A_NUMBER(rapt_plateau_factor(NULL, 1), "is NULL");
    NULL_IN(rapt_watch_take(NULL, 1), "watch_take: watch is NULL");
    NULL_IN(rapt_watch_is_over(NULL), "watch_is_over: watch is NULL");
    rapt_progress_step(NULL, 1, 1);
    expect_error(RAPT_ERROR_NULL, "progress is NULL");
}

/* The weight has a gradient of four ones, of norm 2, the bias none. */
static void give_weight_gradients(void)
{
    RAPT_SCOPE;
    rapt_accumulation parts = {0};
    for (int i = 1; i <= 3; i += 2)
        cr_assert(rapt_accumulate(&parts, rapt_sum(linear->weight, RAPT_ALL_AXES, false), i), "%s", rapt_error());
    cr_assert(rapt_accumulation_end(&parts, sgd, NULL), "%s", rapt_error());
}

static void expect_gradients(double each)
{
    cr_expect_null(rapt_gradient(linear->bias));
    cr_expect_float_eq(rapt_at(rapt_gradient(linear->weight), (int64_t[]){1, 0}), each, 1e-6);
}

/* Parameters without a gradient are passed over, results that nobody wants are not given. */
Test(optim_refusals, what_may_be_left_out)
{
    cr_assert(rapt_profile_start(NULL));
    give_weight_gradients();
    expect_gradients(1);
    cr_expect(rapt_clip_gradient_norm(sgd, 1, NULL), "%s", rapt_error());
    expect_gradients(0.5);
    cr_expect(rapt_clip_gradient_value(sgd, 0.125), "%s", rapt_error());
    expect_gradients(0.125);
    const double before = rapt_at(linear->weight, (int64_t[]){1, 0});
    cr_assert(rapt_optimizer_set_learning_rate(sgd, 0.5));
    cr_expect(rapt_optimizer_step_clipped(sgd, 0.125, NULL), "%s", rapt_error());
    cr_expect_float_eq(before - rapt_at(linear->weight, (int64_t[]){1, 0}), 0.5 * 0.0625, 1e-6);
    cr_assert(rapt_profile_stop());
    rapt_optimizer *rmsprop = rapt_rmsprop_new(&linear->module, NULL);
    cr_expect_not_null(rmsprop, "%s", rapt_error());
    rapt_optimizer_free(rmsprop);
    cr_expect_null(rapt_error(), "%s", rapt_error());
}

Test(optim_refusals, names_that_are_too_long)
{
    char prefix[10000];
    memset(prefix, 'p', sizeof prefix - 1);
    prefix[sizeof prefix - 1] = '\0';
    rapt_average *average = rapt_average_new(&linear->module, NULL);
    BAD_VALUE(rapt_optimizer_to_archive(sgd, prefix, archive), "is too long");
    BAD_VALUE(rapt_optimizer_from_archive(sgd, prefix, archive), "is too long");
    BAD_VALUE(rapt_average_to_archive(average, prefix, archive), "is too long");
    BAD_VALUE(rapt_average_from_archive(average, prefix, archive), "is too long");
    rapt_average_free(average);
    RAPT_SCOPE;
    rapt_tensor *one = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1));
    BAD_SHAPE(rapt_optimizer_add(sgd, "wide", rapt_require_gradient(rapt_expand(one, RAPT_SHAPE(3)))),
              "'wide' is expanded: several elements are one number");
    rapt_progress progress = rapt_progress_start(NULL, 0, 1);
    rapt_progress_print(&progress, NULL);
    expect_error(RAPT_ERROR_NULL, "progress_print: format is NULL");
    char room[256] = "before";
    cr_expect_str_eq(rapt_progress_text(NULL, 1, 80, room), "");
    expect_error(RAPT_ERROR_NULL, "progress_text: progress is NULL");
    cr_expect_null(rapt_progress_text(&progress, 1, 80, NULL));
    expect_error(RAPT_ERROR_NULL, "progress_text: room is NULL");
}
