/* Options out of range, one at a time: each is refused by the name of what was asked. */
#include "loader_columns.h"

#include <math.h>

#include <rapt/schedule.h>
#include <rapt/watch.h>

#define NO_NUMBER ((double)NAN)
#define TOO_LARGE ((double)INFINITY)

#define FOR_EACH(type, one, ...)                                                                                       \
    for (const type *list = (const type[]){__VA_ARGS__}, *one = list;                                                  \
         one < list + sizeof((const type[]){__VA_ARGS__}) / sizeof(type); one++)

#define STEP .kind = RAPT_SCHEDULE_STEP, .period = 2
#define COSINE .kind = RAPT_SCHEDULE_COSINE, .total = 5
#define LINEAR .kind = RAPT_SCHEDULE_LINEAR, .total = 5
#define CYCLE .kind = RAPT_SCHEDULE_ONE_CYCLE, .total = 10
#define STABLE .kind = RAPT_SCHEDULE_WARM_UP_STABLE_DECAY, .total = 9, .decay = 2

Test(bad_numbers, of_schedules)
{
    FOR_EACH(rapt_schedule, schedule, {STEP, .factor = -1}, {STEP, .factor = TOO_LARGE}, {COSINE, .final = TOO_LARGE},
             {COSINE, .final = NO_NUMBER}, {LINEAR, .final = -1}, {LINEAR, .final = TOO_LARGE}, {LINEAR, .start = -1},
             {LINEAR, .start = TOO_LARGE}, {CYCLE, .warm_up = 1}, {CYCLE, .warm_up = 10}, {CYCLE, .start = -1},
             {CYCLE, .start = TOO_LARGE}, {CYCLE, .final = -1}, {CYCLE, .final = TOO_LARGE},
             {STABLE, .curve = (rapt_schedule_curve)7}, {STABLE, .warm_up = 10}, {STABLE, .final = -1},
             {STABLE, .final = TOO_LARGE})
    {
        cr_expect(isnan(rapt_schedule_factor(schedule, 3)), "kind %d", (int)schedule->kind);
        expect_error(RAPT_ERROR_VALUE, "schedule");
    }
}

Test(bad_numbers, of_what_is_watched)
{
    FOR_EACH(rapt_plateau, plateau, {.watch = {.threshold = -1}}, {.watch = {.threshold = TOO_LARGE}},
             {.watch = {.patience = -1}}, {.cut = -1}, {.cut = NO_NUMBER}, {.least = -1}, {.least = NO_NUMBER},
             {.cool_down = -1})
    {
        rapt_plateau taken = *plateau;
        cr_expect(isnan(rapt_plateau_factor(&taken, 1)));
        expect_error(RAPT_ERROR_VALUE, "plateau_factor");
        cr_expect_eq(taken.watch.values, 0);
    }
}

Test(bad_numbers, of_loaders)
{
    RAPT_SCOPE;
    rapt_column column = numbers();
#define COLUMN .columns = &column, .column_count = 1
    FOR_EACH(rapt_loader_config, config, {COLUMN, .batch_size = -1}, {COLUMN, .most_tokens = -1},
             {COLUMN, .batch_size = 1, .bucket = -1}, {COLUMN, .batch_size = 1, .prefetch = -1})
    {
        cr_expect_null(rapt_loader_new(config));
        expect_error(RAPT_ERROR_VALUE, "0 or more expected");
    }
}

/* Makes optimizers of one kind that all are refused. */
#define EXPECT_REFUSED(kind, part, ...)                                                                                \
    FOR_EACH(rapt_##kind##_config, config, __VA_ARGS__)                                                                \
    {                                                                                                                  \
        cr_expect_null(rapt_##kind##_new(&linear->module, config), #kind);                                             \
        expect_error(RAPT_ERROR_VALUE, part);                                                                          \
    }

Test(bad_numbers, of_optimizers)
{
    rapt_linear *linear = rapt_linear_new(2, 2, 0);
    EXPECT_REFUSED(sgd, "expected", {.learning_rate = -1}, {.momentum = -1}, {.dampening = -1}, {.weight_decay = -1})
    EXPECT_REFUSED(sgd, "Nesterov", {.nesterov = true}, {.nesterov = true, .momentum = 0.9, .dampening = 0.1})
    EXPECT_REFUSED(adam, "expected", {.learning_rate = -1}, {.beta1 = 1}, {.beta2 = 1}, {.epsilon = -1},
                   {.weight_decay = -1})
    EXPECT_REFUSED(rmsprop, "expected", {.learning_rate = -1}, {.alpha = 1}, {.epsilon = -1}, {.weight_decay = -1},
                   {.momentum = -1})
    EXPECT_REFUSED(adagrad, "expected", {.learning_rate = -1}, {.learning_rate_decay = -1}, {.weight_decay = -1},
                   {.initial_accumulator = -1}, {.epsilon = -1})
    EXPECT_REFUSED(lion, "expected", {.learning_rate = -1}, {.beta1 = 1}, {.beta2 = 1}, {.weight_decay = -1})
    EXPECT_REFUSED(muon, "expected", {.learning_rate = -1}, {.momentum = 1}, {.epsilon = -1}, {.weight_decay = -1})
    EXPECT_REFUSED(adafactor, "expected", {.learning_rate = -1}, {.beta2_decay = -1}, {.epsilon1 = -1},
                   {.epsilon2 = -1}, {.clip = -1}, {.clip = RAPT_ZERO}, {.weight_decay = -1})
    rapt_module_free(&linear->module);
}
