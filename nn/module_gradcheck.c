/* gradcheck of a module: its parameters are inputs of the function as well. */
#include <stdio.h>
#include <stdlib.h>

#include <rapt/module.h>

#include "kept_buffers.h"
#include "tensor/core.h"

static const char *const op = "module_gradcheck";

/* The caller's inputs, behind them the parameters, and what messages call them. */
typedef struct joined {
    rapt_tensor **inputs;
    const char **names;
    char (*numbers)[32]; /* "input 0" and so on */
} joined;

/* The caller's function, and the buffers that each of its runs finds as they were. */
typedef struct subject {
    rapt_module *module;
    rapt_gradcheck_function *function; /* NULL: rapt_module_forward */
    void *context;
    rapt_kept_buffers buffers;
} subject;

/* Before a run, not behind it: a graph may need what the run made of its buffers. */
static rapt_tensor *run(rapt_tensor *const *inputs, void *context)
{
    const subject *s = context;
    if (!rapt_put_buffers_back(&s->buffers)) return NULL;
    return s->function ? s->function(inputs, s->context) : rapt_module_forward(s->module, inputs[0]);
}

static bool check_arguments(const rapt_module *module, rapt_gradcheck_function *function, int count,
                            rapt_tensor *const *inputs)
{
    if (!module || (count > 0 && !inputs))
        return rapt_fail(RAPT_ERROR_NULL, op, module ? "the inputs are NULL" : "module is NULL");
    if (count < 0 || (!function && count != 1))
        return rapt_fail(RAPT_ERROR_VALUE, op, "%d inputs; %s expected", count,
                         function ? "0 or more" : "one, for rapt_module_forward,");
    return true;
}

static bool join(joined *all, int count, rapt_tensor *const *inputs, const rapt_tensor_list *parameters)
{
    const size_t room = (size_t)count + (size_t)parameters->count + 1;
    all->inputs = calloc(room, sizeof *all->inputs);
    all->names = calloc(room, sizeof *all->names);
    all->numbers = calloc((size_t)count + 1, sizeof *all->numbers);
    if (!all->inputs || !all->names || !all->numbers)
        return rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for %zu inputs", room - 1);
    for (int i = 0; i < count; i++) {
        snprintf(all->numbers[i], sizeof *all->numbers, "input %d", i);
        all->inputs[i] = inputs[i];
        all->names[i] = all->numbers[i];
    }
    for (int i = 0; i < parameters->count; i++) {
        all->inputs[count + i] = parameters->tensors[i];
        all->names[count + i] = parameters->names[i];
        for (int k = 0; k < count; k++)
            if (inputs[k] == parameters->tensors[i])
                return rapt_fail(RAPT_ERROR_VALUE, op, "input %d is the parameter %s, which is checked anyway", k,
                                 parameters->names[i]);
    }
    return true;
}

rapt_gradcheck_result rapt_module_gradcheck(rapt_module *module, rapt_gradcheck_function *function, int count,
                                            rapt_tensor *const *inputs, const rapt_gradcheck_options *options)
{
    RAPT_SCOPE;
    rapt_gradcheck_result result = {.passed = false};
    rapt_gradcheck_options used = options ? *options : (rapt_gradcheck_options){0};
    const rapt_standing_error standing = rapt_error_put_aside();
    rapt_tensor_list *parameters =
        check_arguments(module, function, count, inputs) ? rapt_module_list(module, RAPT_PARAMETERS) : NULL;
    joined all = {0};
    subject s = {.module = module, .function = function, .context = used.context};
    if (parameters && join(&all, count, inputs, parameters) && rapt_keep_buffers(op, module, &s.buffers)) {
        for (int i = 0; i < count && used.names; i++) all.names[i] = used.names[i];
        used.names = all.names;
        used.context = &s;
        result = rapt_gradcheck(module->kind->name, run, count + parameters->count, all.inputs, &used);
        if (!rapt_put_buffers_back(&s.buffers) && result.passed) {
            result.passed = false;
            snprintf(result.message, sizeof result.message, "%s", rapt_error());
        }
    } else {
        snprintf(result.message, sizeof result.message, "%s", rapt_error() ? rapt_error() : "module_gradcheck failed");
    }
    free(all.inputs);
    free(all.names);
    free(all.numbers);
    rapt_tensor_list_free(parameters);
    rapt_kept_buffers_free(&s.buffers);
    rapt_error_put_back(standing);
    return result;
}
