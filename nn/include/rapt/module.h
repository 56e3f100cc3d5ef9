/* Modules: named parameters, buffers and children. A layer is a struct whose first member is a rapt_module. */
#ifndef RAPT_MODULE_H
#define RAPT_MODULE_H

#include <stdio.h>

#include <rapt/autograd.h>

RAPT_BEGIN_DECLS

/* What every layer begins with. Its fields are the library's: `training` and `kind` may be read, `failed` be set. */
typedef struct rapt_module rapt_module;

/* What all layers of one kind share. Every function may be NULL, the name not. A forward that gives NULL has called
 * rapt_fail, or that is the error. */
typedef struct rapt_module_class {
    const char *name;                                                     /* "Linear" */
    rapt_tensor *(*forward)(rapt_module *module, rapt_tensor *x);         /* for layers that map one tensor to one */
    void (*destroy)(rapt_module *module);                                 /* frees what is not registered */
    void (*describe)(const rapt_module *module, char *text, size_t size); /* "2 -> 16, bias" */
    /* Gives up what it keeps of its last call, whose graph may hold the module; NULL: it keeps nothing. */
    void (*forget)(rapt_module *module);
} rapt_module_class;

/* What every layer begins with. */
struct rapt_module {
    const rapt_module_class *kind;
    bool training; /* true at first; dropout looks at it */
    bool failed;   /* in the constructor, which may say so, too: rapt_module_finish then gives NULL */
    struct rapt_module_entry *entries;
    int count, capacity;
    /* The library's own: all shares in the module, those that the program and that graphs hold, and whether a parent
     * has taken over the constructor's; the random generator as the constructor found it, until it is finished; and
     * the paths by which the module ran. */
    int shares, held, in_graphs;
    bool adopted, constructing;
    rapt_random_state random;
    struct rapt_module_path *paths;
    void *reserved[4]; /* for what later versions keep here: modules of one's own begin with this struct */
};

/* WHO OWNS A MODULE. Its parents do, and the program as far as it holds shares. A new module has one share, the
 * program's. It goes to the first parent; every further parent, or a second name in the same one, adds a share of its
 * own. So a module may stand in several places, twice in one list for instance, without further ado, and is freed with
 * the last of its owners, in whatever order they go. A module that goes gives back its shares in its children and
 * tensors. A layer with recompute lives on in graphs that need it, and when they are all that has it, the gradients of
 * RAPT_CREATE_GRAPH that its parameters have go first, for they hold such graphs: not those of parameters that somebody
 * else has too (an optimizer: free it before the module, or clear them). Shares are counted atomically: threads may
 * free modules that have children in common. What a module holds must not change while another thread uses it. */

/* The first line of a constructor: a zeroed struct of that size, at least a rapt_module. NULL when there is no
 * memory. */
RAPT_API void *rapt_module_new(size_t size, const rapt_module_class *kind);

/* The last line of a constructor: the module; or NULL when anything above failed. It is then freed, and the thread's
 * random generator is put back to where rapt_module_new found it, whatever children and initial values have drawn. */
RAPT_API void *rapt_module_finish(rapt_module *module);

/* Gives one share of the program's back: frees a module that no parent has. Where the program holds no share
 * (parents have taken it over) nothing happens: the module is theirs. NULL does nothing. */
RAPT_API void rapt_module_free(rapt_module *module);

/* Takes a share for the program, which keeps the module when its parents go, until it is given back by
 * rapt_module_free. Returns the module. NULL gives NULL. */
RAPT_API void *rapt_module_retain(rapt_module *module);

/* Registers and returns the tensor, NULL when it is NULL or on error. A parameter becomes a leaf that requires a
 * gradient; a buffer is saved and loaded but not trained, and is no result of a recorded op. The module takes a share.
 * Names follow PyTorch's, and have 1 to 100 bytes and no dot. One tensor may be registered in several modules, which
 * ties their weights. */
RAPT_API rapt_tensor *rapt_module_add_parameter(rapt_module *module, const char *name, rapt_tensor *tensor);
RAPT_API rapt_tensor *rapt_module_add_buffer(rapt_module *module, const char *name, rapt_tensor *tensor);

/* Registers a child, as said above. A child named "" adds no part of its own to the names below it. Returns the
 * child, NULL when it is NULL or on error. After an error, and where the module is NULL, a new child's share is
 * given back all the same, so that nothing leaks where calls nest; who wants to go on with it holds another
 * (rapt_module_retain). A module below itself is an error, and then stays whose it was. */
RAPT_API void *rapt_module_add_child(rapt_module *module, const char *name, rapt_module *child);

/* Runs the module's forward; NULL and an error for a kind that has none, or NULL arguments. */
RAPT_API rapt_tensor *rapt_module_forward(rapt_module *module, rapt_tensor *x);

/* Switches training mode (dropout on) or evaluation mode, in the module and everything below. */
RAPT_API void rapt_module_train(rapt_module *module, bool training);

/* Which tensors of a module are meant; joined by |, and 0 for none. */
enum rapt_module_what { RAPT_PARAMETERS = 1, RAPT_BUFFERS = 2 };

/* Calls the visitor with the full name ("encoder.rnn.weight_ih_l0") of every parameter or buffer (what: the flags
 * above), in the order in which they were added. A tensor that has several names, since it or a module above it
 * stands in several places, comes once, under the first. Stops, and returns false, when the visitor returns false. What
 * the visitor adds to the module that it visits is not visited. */
typedef bool rapt_module_visitor(const char *name, rapt_tensor *tensor, void *context);
RAPT_API bool rapt_module_visit(const rapt_module *module, int what, rapt_module_visitor *visitor, void *context);

/* The same for modules: the module itself, whose name is "", and everything below it, parents first. What they are is
 * told by their `kind`: the class of a layer of one's own, or kind->name. A child that is named "" has the name of its
 * parent. */
typedef bool rapt_submodule_visitor(const char *name, rapt_module *module, void *context);
RAPT_API bool rapt_module_visit_modules(rapt_module *module, rapt_submodule_visitor *visitor, void *context);

/* What a visit would show, side by side: for rapt_gradients, say. */
typedef struct rapt_tensor_list {
    int count;
    rapt_tensor **tensors;
    char **names;
} rapt_tensor_list;

/* The list holds shares in the tensors, and names of its own: it outlives the module. Free it with
 * rapt_tensor_list_free. NULL after an error. */
RAPT_API rapt_tensor_list *rapt_module_list(const rapt_module *module, int what);
RAPT_API void rapt_tensor_list_free(rapt_tensor_list *list);

/* The parameter or buffer of that full name, which may be any of its names; NULL and no error when there is none. */
RAPT_API rapt_tensor *rapt_module_find(const rapt_module *module, const char *name);

/* The module of that full name ("encoder.layers.0"; "" is the module itself), which may be any of its names; NULL and
 * no error when there is none. It stays its owners'. */
RAPT_API rapt_module *rapt_module_find_module(rapt_module *module, const char *name);

/* Freezes (rapt_refuse_gradient), or trains again (rapt_require_gradient), every parameter whose full name matches the
 * pattern (fnmatch's: "encoder.*", "*.bias"), and returns how many match; what has several names goes by the first.
 * Frozen ones are parameters still, for files, casts and counts; no gradient is computed for them, and optimizers pass
 * them over, with the state that they have. A graph from before gives them none, even where they are trained again by
 * then: freeze between backward and forward. 0 after an error, which it is when none matches; without memory all stay
 * as they were. */
RAPT_API int rapt_module_freeze(rapt_module *module, const char *pattern, bool frozen);

/* The number of elements of all parameters, each counted once; 0 after an error. */
RAPT_API int64_t rapt_module_parameter_count(const rapt_module *module);

/* Drops the gradients of all parameters. */
RAPT_API void rapt_module_clear_gradients(rapt_module *module);

/* Converts all floating parameters and buffers, in place, to float32 or float64. Gradients are dropped, and no graph
 * recorded before reaches a parameter that was converted; one that has the dtype stays itself, in such graphs too.
 * False after an error; nothing is changed then. */
RAPT_API bool rapt_module_cast(rapt_module *module, rapt_dtype dtype);

/* Prints the tree: kinds, sizes, parameter counts, and dtype and shape of every tensor, each under the full name by
 * which rapt_module_find knows it. What stands in several places is printed at the first. False after an error. */
RAPT_API bool rapt_module_print(const rapt_module *module, FILE *stream);

/* rapt_gradcheck of a function of the inputs and of all parameters: `function` runs the module on the inputs, and
 * gets options->context; NULL: rapt_module_forward of one input. The parameters count after the inputs in the
 * result's `input`, and the message has their full names. Nothing is converted: parameters must be float64
 * (rapt_module_cast). Each run of the function finds the module's buffers, running statistics say, as they were, and
 * so they are when it returns. */
RAPT_API rapt_gradcheck_result rapt_module_gradcheck(rapt_module *module, rapt_gradcheck_function *function, int count,
                                                     rapt_tensor *const *inputs, const rapt_gradcheck_options *options);

RAPT_END_DECLS

#endif
