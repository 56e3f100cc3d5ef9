/* What an optimizer is inside: named parameters with their state, groups, and the one function in which kinds
 * differ. */
#ifndef RAPT_OPTIM_CORE_H
#define RAPT_OPTIM_CORE_H

#include <rapt/optimizer.h>

#include "tensor/kernels.h"

/* The most tensors an optimizer keeps for a parameter. */
#define RAPT_MAX_STATES 3

/* The longest name of a parameter, with its end. */
#define RAPT_PARAMETER_NAME_SIZE 512

/* A parameter and what the optimizer keeps for it. */
typedef struct rapt_slot {
    char *name;
    rapt_tensor *parameter;
    rapt_tensor *states[RAPT_MAX_STATES]; /* made at the first step */
    int64_t steps;                        /* of this parameter */
    int group;                            /* index into the groups, −1: none */
} rapt_slot;

/* One step of one parameter. */
typedef struct rapt_update {
    double learning_rate, weight_decay; /* of its group */
    int64_t step;                       /* of this parameter, from 1 */
    int operand_count;
    const rapt_tensor *operands[2 + RAPT_MAX_STATES]; /* parameter, gradient, states */
} rapt_update;

/* What all optimizers of one kind share. */
typedef struct rapt_optimizer_class {
    const char *name; /* "Adam" */
    void (*update)(const rapt_optimizer *optimizer, const rapt_update *update);
} rapt_optimizer_class;

/* An optimizer of a kind is a struct whose first member is this. */
struct rapt_optimizer {
    const rapt_optimizer_class *kind;
    double learning_rate, weight_decay;
    double first_learning_rate; /* the constructor's, to which those of groups relate */
    int64_t steps;
    int state_count;
    const char *state_names[RAPT_MAX_STATES]; /* PyTorch's */
    double first_state;                       /* the value that states start from */
    rapt_slot *slots;
    int count, capacity;
    rapt_group_config *groups;
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

/* Runs a kernel over a parameter, its gradient and its states. */
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
