/* What a module holds, for the folder nn itself. */
#ifndef RAPT_NN_ENTRY_H
#define RAPT_NN_ENTRY_H

#include <rapt/module_values.h>

#include "autograd/observe.h"
#include "tensor/core.h"
#include "tensor/debug.h"
#include "tensor/pointer_set.h"

/* One named thing of a module: a tensor or a child. */
typedef struct rapt_module_entry {
    char *name;
    rapt_tensor *tensor; /* NULL for a child */
    rapt_module *child;  /* NULL for a tensor */
    bool is_parameter;
    int next; /* of its chain (rapt_module_member), −1 at the end */
} rapt_module_entry;

/* The member of that name, of `length` bytes, or the next one behind `before`: children alone may have the empty name
 * together. NULL: none, or no more. */
const rapt_module_entry *rapt_module_member(const rapt_module *module, const char *name, size_t length,
                                            const rapt_module_entry *before);

enum { rapt_all_tensors = RAPT_PARAMETERS | RAPT_BUFFERS };

/* Do these flags name parameters, buffers, both or none? False and an error of op when not. */
bool rapt_check_what(const char *op, int what);

/* The longest full name, with the dots and the end. */
#define RAPT_NAME_SIZE 512

/* Puts the name of a member behind the first `used` bytes; where it then ends, which may be too far. */
int rapt_module_put_name(const rapt_module_entry *entry, char name[RAPT_NAME_SIZE], int used);

/* Puts an entry's part behind the first `used` bytes of a full name; its length, or −1 and an error when it is too
 * long. */
int rapt_module_append_name(const rapt_module *module, const rapt_module_entry *entry, char name[RAPT_NAME_SIZE],
                            int used);

/* May several owners have it? Then a walk may come to it again. */
static inline bool rapt_module_is_shared(const rapt_module *module)
{
    return __atomic_load_n(&module->shares, __ATOMIC_RELAXED) > 1;
}

/* Is there a module, and not one that was freed? False and an error of op when not. */
static inline bool rapt_module_is_there(const char *op, const rapt_module *module)
{
    return module ? !rapt_was_freed(op, module) : rapt_fail_null(op, "module");
}

/* rapt_module_forward of a layer that is called so where it is NULL. */
rapt_tensor *rapt_layer_forward(const char *name, rapt_module *layer, rapt_tensor *x);

/* A share for a graph, which needs the module until backward, and its end. When all shares but one are such, the module
 * forgets its last call before that one goes. */
void rapt_module_hold_in_graph(rapt_module *module);
void rapt_module_leave_graph(rapt_module *module);

/* Calls the function for the module, which is there, and everything below it, parents first. It may come to a module
 * of several parents more than once, but only where there is no memory to remember it. False as soon as the function
 * returns false. */
bool rapt_module_each(rapt_module *module, bool (*function)(rapt_module *module, void *context), void *context);

/* `RAPT_ENTER(module);` at the top of a forward function: errors, and those who observe (the hunt, the trace, the
 * profile), know the module until the block is left. NULL: nothing. In the debugging mode the function returns NULL,
 * with an error, for a module that was freed. */
#define RAPT_ENTER(module)                                                                                             \
    if (rapt_was_freed("forward", module)) return NULL;                                                                \
    const rapt_module_place RAPT_JOIN(rapt_place_, __COUNTER__) __attribute__((cleanup(rapt_module_leave), unused)) =  \
        rapt_module_enter(module)

void rapt_module_enter_now(rapt_module *module);

static inline rapt_module_place rapt_module_enter(rapt_module *module)
{
    const rapt_module_place before = rapt_running_place;
    if (module && module != before.module) rapt_module_enter_now(module);
    return before;
}

/* Some module got a child, or goes: paths may be others from now on. */
void rapt_module_tree_changes(void);

/* Frees what the module remembers of where it ran. */
void rapt_module_forget_paths(rapt_module *module);

/* The forward of the module in which this thread is is over. */
void rapt_module_leave_now(void);

/* For a summary: the module's forward is over, and before that, where it is known what that gave of x. */
void rapt_module_left(const rapt_module *module);
void rapt_module_gave(const rapt_tensor *x, const rapt_tensor *y);

static inline void rapt_module_leave(const rapt_module_place *before)
{
    if (rapt_observed() && rapt_running_place.module != before->module) rapt_module_leave_now();
    rapt_running_place = *before;
}

/* Has what is stored under that name the shape and dtype of the module's tensor? False and an error when not, or
 * NULL. */
bool rapt_module_check_stored(const char *op, const char *name, const rapt_tensor *tensor, const rapt_tensor *stored);

/* rapt_module_from_archive_part under the name of an op. Where the archive is of a whole module, names that the module
 * has not are an error. */
bool rapt_module_take(const char *op, rapt_module *module, const rapt_load_part *part, bool is_whole,
                      const rapt_archive *archive);

/* A float32 tensor for a parameter, uniform within ±bound; NULL after an error. */
rapt_tensor *rapt_new_uniform(int rank, const int64_t *shape, double bound);

/* Where the parameters and buffers of a module are. */
typedef struct rapt_module_memory {
    const char *op;
    rapt_pointer_set storages;
    struct rapt_span *spans; /* of each tensor */
    int64_t count, capacity;
    bool is_foreign; /* some of it */
} rapt_module_memory;

/* False after an error; it is to be freed then, too. */
bool rapt_module_memory_find(rapt_module_memory *memory, const char *op, const rapt_module *module);

/* Is the tensor, or may it be, in the same memory? */
bool rapt_module_memory_has(const rapt_module_memory *memory, const rapt_tensor *tensor);
void rapt_module_memory_free(rapt_module_memory *memory);

/* The number of trained elements; false after an error. */
bool rapt_module_count(const rapt_module *module, int64_t *count);

#endif
