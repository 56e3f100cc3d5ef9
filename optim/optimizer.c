/* What all optimizers share: their parameters, groups and learning rate. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "tensor/core.h"
#include "tensor/debug.h"
#include "tensor/system.h"

double rapt_or_default(double number, double otherwise)
{
    return number == RAPT_ZERO ? 0 : number != 0 ? number : otherwise;
}

bool rapt_take_number(const char *op, const char *name, double number, double otherwise, double limit, double *result)
{
    *result = rapt_or_default(number, otherwise);
    if (*result >= 0 && *result < limit) return true;
    if (isinf(limit))
        return rapt_fail(RAPT_ERROR_VALUE, op, "%s is %g; a finite number from 0 on expected", name, *result);
    return rapt_fail(RAPT_ERROR_VALUE, op, "%s is %g; a number from 0 to below %g expected", name, *result, limit);
}

bool rapt_check_can_follow(const char *op, double rate, double first_learning_rate)
{
    return rate == 0 || first_learning_rate > 0 ||
           rapt_fail(
               RAPT_ERROR_VALUE, op,
               "a learning rate of %g follows the optimizer's in its ratio to the constructor's, which is 0; make "
               "the optimizer with the full learning rate and set 0 by rapt_optimizer_set_learning_rate",
               rate);
}

void *rapt_optimizer_new(size_t size, const rapt_optimizer_class *kind)
{
    rapt_optimizer *optimizer = calloc(1, size);
    if (optimizer)
        optimizer->kind = kind;
    else
        rapt_fail(RAPT_ERROR_MEMORY, kind->name, "no memory for the optimizer");
    return optimizer;
}

void rapt_optimizer_add_state(rapt_optimizer *optimizer, const char *name)
{
    optimizer->state_names[optimizer->state_count++] = name;
}

static bool add_slot(rapt_optimizer *optimizer, const char *name, rapt_tensor *parameter);

/* A module's parameters may be frozen, to be trained later. */
static bool add(const char *name, rapt_tensor *parameter, void *context)
{
    return add_slot(context, name, parameter);
}

rapt_optimizer *rapt_optimizer_finish(rapt_optimizer *optimizer, bool good, rapt_module *module)
{
    optimizer->first_learning_rate = optimizer->learning_rate;
    if (good && (!module || rapt_module_visit(module, RAPT_PARAMETERS, add, optimizer))) return optimizer;
    rapt_optimizer_free(optimizer);
    return NULL;
}

void rapt_optimizer_free(rapt_optimizer *optimizer)
{
    if (!optimizer || rapt_was_freed("optimizer_free", optimizer)) return;
    for (int i = 0; i < optimizer->count; i++) {
        rapt_slot *slot = &optimizer->slots[i];
        for (int k = 0; k < RAPT_MAX_STATES; k++) rapt_release(slot->states[k]);
        rapt_release(slot->parameter);
    }
    rapt_names_free(&optimizer->names);
    rapt_pointer_set_free(&optimizer->parameters);
    free(optimizer->slots);
    free(optimizer->groups);
    rapt_free_object(optimizer, optimizer->kind->name);
}

static bool check_name(const rapt_optimizer *optimizer, const char *name)
{
    const char *op = optimizer->kind->name;
    if (!name) return rapt_fail_null(op, "the name of a parameter");
    size_t length = strlen(name);
    if (length == 0 || length >= RAPT_PARAMETER_NAME_SIZE)
        return rapt_fail(RAPT_ERROR_VALUE, op, "a parameter's name has %zu bytes; 1 to %d expected", length,
                         RAPT_PARAMETER_NAME_SIZE - 1);
    return !rapt_names_find(&optimizer->names, name) ||
           rapt_fail(RAPT_ERROR_VALUE, op, "the name '%s' is in use", name);
}

static bool check_parameter(const rapt_optimizer *optimizer, const char *name, const rapt_tensor *parameter)
{
    const char *op = optimizer->kind->name;
    if (!parameter) return rapt_fail(RAPT_ERROR_NULL, op, "parameter '%s' is NULL", name);
    for (int axis = 0; axis < parameter->rank; axis++)
        if (parameter->strides[axis] == 0 && parameter->shape[axis] > 1)
            return rapt_fail(RAPT_ERROR_SHAPE, op, "'%s' is expanded: several elements are one number", name);
    const int64_t same = rapt_pointer_set_find(&optimizer->parameters, parameter);
    return same < 0 ||
           rapt_fail(RAPT_ERROR_VALUE, op, "'%s' is there already, as '%s'", name, optimizer->slots[same].name);
}

/* Room for one more. */
static bool grow(rapt_optimizer *optimizer)
{
    if (optimizer->count < optimizer->capacity) return true;
    const int capacity = optimizer->capacity ? 2 * optimizer->capacity : 16;
    rapt_slot *slots = realloc(optimizer->slots, (size_t)capacity * sizeof *slots);
    if (!slots) return false;
    optimizer->slots = slots;
    optimizer->capacity = capacity;
    return true;
}

static bool add_slot(rapt_optimizer *optimizer, const char *name, rapt_tensor *parameter)
{
    if (!check_name(optimizer, name) || !check_parameter(optimizer, name, parameter)) return false;
    if (!grow(optimizer) || !rapt_names_add(&optimizer->names, name, parameter) ||
        rapt_pointer_set_add(&optimizer->parameters, parameter) == RAPT_SET_NO_MEMORY) {
        rapt_names_cut(&optimizer->names, optimizer->count);
        return rapt_fail(RAPT_ERROR_MEMORY, optimizer->kind->name, "no memory for '%s'", name);
    }
    const char *copy = optimizer->names.entries[optimizer->count].name;
    optimizer->slots[optimizer->count++] = (rapt_slot){.name = copy, .parameter = rapt_retain(parameter), .group = -1};
    return true;
}

bool rapt_optimizer_add(rapt_optimizer *optimizer, const char *name, rapt_tensor *parameter)
{
    if (!optimizer) return rapt_fail_null("optimizer_add", "optimizer");
    if (rapt_was_freed("optimizer_add", optimizer)) return false;
    if (!rapt_check_alive(optimizer->kind->name, "the parameter", parameter)) return false;
    if (name && parameter && (!parameter->link || !parameter->link->kind->is_leaf))
        return rapt_fail(RAPT_ERROR_GRAPH, optimizer->kind->name,
                         "'%s' is no leaf; a tensor after rapt_require_gradient expected", name);
    return add_slot(optimizer, name, parameter);
}

/* One that no parameter is in any more, or one more; −1 without memory. */
static int free_group(rapt_optimizer *optimizer)
{
    for (int k = 0; k < optimizer->group_count; k++)
        if (optimizer->groups[k].count == 0) return k;
    rapt_group *groups = realloc(optimizer->groups, ((size_t)optimizer->group_count + 1) * sizeof *groups);
    if (!groups) return -1;
    optimizer->groups = groups;
    return optimizer->group_count++;
}

static void move_to_group(rapt_optimizer *optimizer, rapt_slot *slot, int group)
{
    if (slot->group >= 0) optimizer->groups[slot->group].count--;
    optimizer->groups[group].count++;
    slot->group = group;
}

bool rapt_optimizer_group(rapt_optimizer *optimizer, const char *pattern, const rapt_group_config *config)
{
    const char *op = "optimizer_group";
    if (!optimizer || !pattern || !config)
        return rapt_fail_null(op, !optimizer ? "optimizer" : !pattern ? "pattern" : "config");
    if (rapt_was_freed(op, optimizer)) return false;
    double rate, decay;
    if (!rapt_take_number(op, "learning_rate", config->learning_rate, 0, INFINITY, &rate) ||
        !rapt_take_number(op, "weight_decay", config->weight_decay, 0, INFINITY, &decay) ||
        !rapt_check_can_follow(op, rate, optimizer->first_learning_rate))
        return false;
    bool any = false;
    for (int i = 0; i < optimizer->count; i++) any = any || rapt_system_matches(pattern, optimizer->slots[i].name);
    if (!any)
        return rapt_fail(RAPT_ERROR_VALUE, op, "no name of the %d parameters matches '%s'", optimizer->count, pattern);
    const int group = free_group(optimizer);
    if (group < 0) return rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for the group '%s'", pattern);
    optimizer->groups[group] = (rapt_group){.config = *config};
    for (int i = 0; i < optimizer->count; i++)
        if (rapt_system_matches(pattern, optimizer->slots[i].name))
            move_to_group(optimizer, &optimizer->slots[i], group);
    return true;
}

void rapt_optimizer_clear_gradients(rapt_optimizer *optimizer)
{
    if (rapt_was_freed("optimizer_clear_gradients", optimizer)) return;
    for (int i = 0; optimizer && i < optimizer->count; i++) rapt_clear_gradient(optimizer->slots[i].parameter);
}

double rapt_optimizer_get_learning_rate(const rapt_optimizer *optimizer)
{
    const char *op = "optimizer_get_learning_rate";
    if (optimizer && !rapt_was_freed(op, optimizer)) return optimizer->learning_rate;
    rapt_fail_null(op, "optimizer");
    return NAN;
}

bool rapt_optimizer_set_learning_rate(rapt_optimizer *optimizer, double learning_rate)
{
    const char *op = "optimizer_set_learning_rate";
    if (!optimizer) return rapt_fail_null(op, "optimizer");
    if (rapt_was_freed(op, optimizer)) return false;
    double checked;
    if (!rapt_take_number(op, "learning_rate", learning_rate, 0, INFINITY, &checked)) return false;
    optimizer->learning_rate = checked;
    return true;
}

int64_t rapt_optimizer_get_steps(const rapt_optimizer *optimizer)
{
    const char *op = "optimizer_get_steps";
    if (optimizer && !rapt_was_freed(op, optimizer)) return optimizer->steps;
    rapt_fail_null(op, "optimizer");
    return 0;
}

int rapt_optimizer_count(const rapt_optimizer *optimizer)
{
    const char *op = "optimizer_count";
    if (optimizer && !rapt_was_freed(op, optimizer)) return optimizer->count;
    rapt_fail_null(op, "optimizer");
    return 0;
}

bool rapt_optimizer_is_elementwise(const rapt_optimizer *optimizer)
{
    const char *op = "optimizer_is_elementwise";
    if (!optimizer) return rapt_fail_null(op, "optimizer");
    return !rapt_was_freed(op, optimizer) && !optimizer->kind->prepare;
}
