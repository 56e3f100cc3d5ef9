/* What an optimizer is inside: named parameters with their state, groups, and the one function in which kinds
 * differ. */
#ifndef RAPT_OPTIM_CORE_H
#define RAPT_OPTIM_CORE_H

#include <float.h>

#include <rapt/optimizer.h>

#include "tensor/kernels.h"
#include "tensor/names.h"
#include "tensor/pointer_set.h"

/* The most tensors an optimizer keeps for a parameter. */
#define RAPT_MAX_STATES 3

/* The longest name of a parameter, with its end. */
#define RAPT_PARAMETER_NAME_SIZE 512

/* A step that is computed before any parameter changes: p = keep·p − rate·direction, and new states in the place of
 * those that are not NULL. Tensors of the scope of the step; no direction: the step is the kind's `update`. */
typedef struct rapt_prepared {
    double keep, rate;
    rapt_tensor *direction;
    rapt_tensor *states[RAPT_MAX_STATES];
} rapt_prepared;

typedef struct rapt_group {
    rapt_group_config config;
    int count; /* of its parameters */
} rapt_group;

/* A parameter and what the optimizer keeps for it. */
typedef struct rapt_slot {
    const char *name; /* the optimizer's */
    rapt_tensor *parameter;
    bool by_adamw; /* Muon: a matrix that AdamW steps */
    rapt_prepared prepared;
    rapt_tensor *states[RAPT_MAX_STATES]; /* made at the first step */
    int64_t steps;                        /* of this parameter */
    int group;                            /* index into the groups, −1: none */
} rapt_slot;

/* One step of one parameter. */
typedef struct rapt_update {
    const rapt_slot *slot;
    double learning_rate, weight_decay; /* of its group */
    double ratio;                       /* of the learning rate to the constructor's */
    const rapt_group_config *group;     /* NULL: none */
    int64_t step;                       /* of this parameter, from 1 */
    double gradient_factor;             /* of a clipped step: what the gradient is multiplied by first */
    int operand_count;
    const rapt_tensor *operands[2 + RAPT_MAX_STATES]; /* parameter, gradient, states */
} rapt_update;

/* What all optimizers of one kind share. */
typedef struct rapt_optimizer_class {
    const char *name; /* "Adam" */
    /* An error where the parameter's dtype has not a number of the step, by rapt_check_step_number. NULL: of the
     * optimizer's own numbers. */
    bool (*check)(const rapt_optimizer *optimizer, const rapt_update *update);
    /* NULL: every parameter that has elements is stepped by `prepare`. */
    void (*update)(const rapt_optimizer *optimizer, const rapt_update *update);
    /* Computes a step that takes memory, where this kind has one for the parameter; NULL: it never has, and steps each
     * number by itself. */
    bool (*prepare)(const rapt_optimizer *optimizer, const rapt_update *update, rapt_prepared *prepared);
    /* Whether the parameter has that state, and its shape: the parameter's on entry. NULL: all are so. */
    bool (*has_state)(const rapt_slot *slot, int state, int64_t *shape);
} rapt_optimizer_class;

/* An optimizer of a kind is a struct whose first member is this. */
struct rapt_optimizer {
    const rapt_optimizer_class *kind;
    double learning_rate, weight_decay;
    double epsilon;             /* what its kernel adds to a root; 0: nothing */
    double first_learning_rate; /* the constructor's, to which those of groups relate */
    int64_t steps;
    int state_count;
    const char *state_names[RAPT_MAX_STATES]; /* PyTorch's */
    double first_state;                       /* the value that states start from */
    rapt_slot *slots;
    int count, capacity;
    rapt_names names;            /* of the slots, */
    rapt_pointer_set parameters; /* and their parameters, by their numbers */
    rapt_group *groups;
    int group_count;
};

/* A zeroed struct of that size; NULL and an error when there is no memory. */
void *rapt_optimizer_new(size_t size, const rapt_optimizer_class *kind);

/* The last line of a constructor: takes over the module's parameters (NULL: none). When that fails or the
 * constructor was not good so far, frees the optimizer and returns NULL. */
rapt_optimizer *rapt_optimizer_finish(rapt_optimizer *optimizer, bool good, rapt_module *module);

/* Lists a state that is kept for each parameter. */
void rapt_optimizer_add_state(rapt_optimizer *optimizer, const char *name);

/* The number, the default where it is 0, 0 where it is RAPT_ZERO. */
double rapt_or_default(double number, double otherwise);

/* rapt_or_default into *result, and an error unless 0 ≤ result < limit. */
bool rapt_take_number(const char *op, const char *name, double number, double otherwise, double limit, double *result);

/* For a learning rate that follows the optimizer's in its ratio to the constructor's: an error where that is 0 and the
 * rate is not. */
bool rapt_check_can_follow(const char *op, double rate, double first_learning_rate);

/* Whether the parameter has that state; its shape in shape[RAPT_MAX_RANK]. */
bool rapt_slot_has_state(const rapt_optimizer *optimizer, const rapt_slot *slot, int state, int64_t *shape);

/* An error where that state, which is there, has not the parameter's dtype any more. */
bool rapt_check_state(const rapt_optimizer *optimizer, const rapt_slot *slot, int state);

/* An error that names the parameter, where its dtype has not that number of its step: where it is infinite there, or 0,
 * unless that is as good. */
bool rapt_check_step_number(const rapt_optimizer *optimizer, const rapt_update *update, const char *name, double number,
                            bool may_vanish);

/* rapt_check_step_number of a decay, and of what it takes away in a step of that rate. */
bool rapt_check_decay(const rapt_optimizer *optimizer, const rapt_update *update, double learning_rate,
                      double weight_decay);

/* The least positive number of the dtype that has all its digits. */
static inline double rapt_least_normal(rapt_dtype dtype)
{
    return dtype == RAPT_FLOAT64 ? DBL_MIN : (double)FLT_MIN;
}

/* What Adam's formula needs: decay goes into the gradient, keep is what stays of p before the step. */
typedef struct rapt_adam_terms {
    double learning_rate, beta1, beta2, epsilon, weight_decay;
} rapt_adam_terms;
bool rapt_adam_take_config(const char *op, const rapt_adam_config *config, double default_decay,
                           rapt_adam_terms *terms);

/* rapt_check_step_number of the terms. */
bool rapt_adam_check(const rapt_adam_terms *terms, const rapt_optimizer *optimizer, const rapt_update *update);

/* Operands of the update: parameter, gradient, both moments. */
void rapt_adam_run(const rapt_adam_terms *terms, double decay, double keep, const rapt_update *update);

/* An error unless the optimizer is there and the limit above 0. */
bool rapt_check_clipping(const char *op, const rapt_optimizer *optimizer, double limit);

/* The L2 norm of all gradients, summed in double; false after an error, which it is when it is not finite. */
bool rapt_gradient_norm(const char *op, const rapt_optimizer *optimizer, double *norm);

/* Makes every gradient the leaf's own, so that a change reaches no other tensor. False after an error. */
bool rapt_own_gradients(const rapt_optimizer *optimizer);

/* Multiplies all gradients; false after an error. */
bool rapt_scale_gradients(const rapt_optimizer *optimizer, double factor);

/* *sum += Σx², in double; false after an error. */
bool rapt_add_squares(const char *op, const rapt_tensor *x, double *sum);

/* m + share·(x − m), which loses neither a small x beside a large m, nor what of m stays. NULL after an error. */
rapt_tensor *rapt_towards(rapt_tensor *m, rapt_tensor *x, double share);

/* Runs a kernel over a parameter, its gradient, multiplied first where the update says so, and its states. */
void rapt_update_run(const rapt_update *update, const rapt_loops loops, const void *numbers);

/* What rapt_optimizer_from_archive reads, checked and copied: one slot for each of the optimizer's, in its order. */
typedef struct rapt_optimizer_image {
    double learning_rate;
    int64_t steps;
    rapt_slot *slots;
    int count;
} rapt_optimizer_image;

/* False after an error. In either case rapt_optimizer_image_free has to follow. */
bool rapt_optimizer_read(const rapt_optimizer *optimizer, const char *prefix, const rapt_archive *archive,
                         rapt_optimizer_image *image);

/* Puts what was read into the optimizer, which cannot fail. */
void rapt_optimizer_take(rapt_optimizer *optimizer, rapt_optimizer_image *image);
void rapt_optimizer_image_free(rapt_optimizer_image *image);

#endif
