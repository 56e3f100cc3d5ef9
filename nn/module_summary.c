/* The summary of a module: what each module below it gives, found by a run that is observed. */
#include <stdlib.h>
#include <string.h>

#include <rapt/module_views.h>

#include "kept_buffers.h"
#include "nn/entry.h"
#include "nn/summary.h"
#include "tensor/core.h"
#include "tensor/lock.h"
#include "tensor/scratch.h"

static const char op[] = "module_summarize";
static RAPT_THREAD_LOCAL rapt_module_results *running; /* of the summary that this thread makes */

const rapt_module_result *rapt_module_result_of(const rapt_module_results *results, const rapt_module *module)
{
    const int64_t number = rapt_pointer_set_find(&results->modules, module);
    return number < 0 ? NULL : &results->results[number];
}

/* The module's number, −1 where there is no memory. */
static int64_t number_of(rapt_module_results *r, const rapt_module *module)
{
    if (r->modules.count == r->capacity) {
        const int64_t capacity = r->capacity ? 2 * r->capacity : 64;
        rapt_module_result *results = realloc(r->results, (size_t)capacity * sizeof *results);
        if (!results) return -1;
        memset(results + r->capacity, 0, (size_t)(capacity - r->capacity) * sizeof *results);
        r->results = results;
        r->capacity = capacity;
    }
    return rapt_pointer_set_add(&r->modules, module) == RAPT_SET_NO_MEMORY ? -1
                                                                           : rapt_pointer_set_find(&r->modules, module);
}

void rapt_module_left(const rapt_module *module)
{
    if (!running || !rapt_last_outputs) return;
    const int64_t number = number_of(running, module);
    char *outputs = number < 0 ? NULL : strdup(*rapt_last_outputs ? rapt_last_outputs : "its input");
    if (!outputs) {
        running->failed = true;
        return;
    }
    free(running->results[number].outputs);
    running->results[number].outputs = outputs;
    running->results[number].calls++;
}

/* The last op may have been about something else: a buffer, say. */
void rapt_module_gave(const rapt_tensor *x, const rapt_tensor *y)
{
    if (!running || !rapt_last_outputs || !y) return;
    if (*rapt_last_outputs || y != x) rapt_describe(y, rapt_last_outputs, RAPT_LAST_OUTPUTS_SIZE);
}

/* --- the run --- */

RAPT_LOCK(summaries_lock, SUMMARIES)

/* Several threads may summarize at a time. */
static void observe(bool begins)
{
    static int summaries;
    summaries_lock_take();
    summaries += begins ? 1 : -1;
    rapt_set_observer(RAPT_SUMMARIZES, summaries > 0);
    summaries_lock_give();
}

static bool run(rapt_module *module, rapt_summary_function *function, rapt_tensor *const *inputs, void *context)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    const rapt_tensor *output = function ? function(inputs, context) : rapt_module_forward(module, inputs[0]);
    return output || rapt_fail(RAPT_ERROR_VALUE, op, "the function failed without a reason");
}

static bool run_observed(rapt_module *module, rapt_summary_function *function, rapt_tensor *const *inputs,
                         void *context, rapt_module_results *results)
{
    rapt_module_results *const results_before = running;
    char *const outputs_before = rapt_last_outputs, *const outputs = calloc(1, RAPT_LAST_OUTPUTS_SIZE);
    if (!outputs) return rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for shapes");
    running = results;
    rapt_last_outputs = outputs;
    observe(true);
    const bool good = run(module, function, inputs, context);
    observe(false);
    running = results_before;
    rapt_last_outputs = outputs_before;
    free(outputs);
    return good && (!results->failed || rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for shapes"));
}

/* The modes of a module and those below it, in the order of rapt_module_each. */
typedef struct kept_modes {
    struct kept_mode {
        rapt_module *module;
        bool training;
    } * modes; /* NULL: they are only counted */
    int64_t count;
} kept_modes;

static bool keep_mode(rapt_module *module, void *context)
{
    kept_modes *kept = context;
    if (kept->modes) kept->modes[kept->count] = (struct kept_mode){module, module->training};
    kept->count++;
    return true;
}

static bool keep_modes(rapt_module *module, kept_modes *kept)
{
    if (!rapt_module_each(module, keep_mode, kept)) return false;
    kept->modes = rapt_scratch_list(op, kept->count, sizeof *kept->modes);
    kept->count = 0;
    return kept->modes && rapt_module_each(module, keep_mode, kept);
}

static void put_modes_back(const kept_modes *kept)
{
    for (int64_t i = 0; i < kept->count; i++) kept->modes[i].module->training = kept->modes[i].training;
}

static bool run_without_traces(rapt_module *module, rapt_summary_function *function, rapt_tensor *const *inputs,
                               void *context, rapt_module_results *results)
{
    RAPT_SCOPE;
    const rapt_random_state random = rapt_random_get_state();
    rapt_kept_buffers buffers = {0};
    kept_modes modes = {0};
    bool good = rapt_keep_buffers(op, module, &buffers) && keep_modes(module, &modes);
    if (good) {
        good = run_observed(module, function, inputs, context, results);
        put_modes_back(&modes);
        good = rapt_put_buffers_back(&buffers) && good;
    }
    rapt_random_set_state(random);
    rapt_kept_buffers_free(&buffers);
    return good;
}

static bool check(const rapt_module *module, FILE *stream, rapt_summary_function *function, int count,
                  rapt_tensor *const *inputs)
{
    if (!rapt_module_is_there(op, module)) return false;
    if (!stream) return rapt_fail_null(op, "stream");
    if (count < 0 || (!function && count != 1))
        return rapt_fail(RAPT_ERROR_VALUE, op, "%d inputs; %s expected", count,
                         function ? "0 or more" : "one, for rapt_module_forward,");
    return count == 0 || inputs || rapt_fail_null(op, "the list of inputs");
}

bool rapt_module_summarize(rapt_module *module, FILE *stream, rapt_summary_function *function, int count,
                           rapt_tensor *const *inputs, void *context)
{
    rapt_module_results results = {0};
    if (!check(module, stream, function, count, inputs)) return false;
    const bool good = run_without_traces(module, function, inputs, context, &results) &&
                      rapt_module_print_tree(op, module, stream, &results);
    for (int64_t i = 0; i < results.modules.count; i++) free(results.results[i].outputs);
    free(results.results);
    rapt_pointer_set_free(&results.modules);
    return good;
}
