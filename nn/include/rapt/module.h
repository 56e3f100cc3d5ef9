/* Modules: named parameters, buffers and children. A layer is a struct whose first member is a rapt_module. */
#ifndef RAPT_MODULE_H
#define RAPT_MODULE_H

#include <stdio.h>

#include <rapt/autograd.h>

RAPT_BEGIN_DECLS

typedef struct rapt_module rapt_module;

/* What all layers of one kind share. Every function may be NULL. */
typedef struct rapt_module_class {
    const char *name;                                                     /* "Linear" */
    rapt_tensor *(*forward)(rapt_module *module, rapt_tensor *x);         /* for layers that map one tensor to one */
    void (*destroy)(rapt_module *module);                                 /* frees what is not registered */
    void (*describe)(const rapt_module *module, char *text, size_t size); /* "2 -> 16, bias" */
} rapt_module_class;

struct rapt_module {
    const rapt_module_class *kind;
    bool training; /* true at first; dropout looks at it */
    bool failed;   /* something could not be added; rapt_module_finish then gives NULL */
    struct rapt_module_entry *entries;
    int count, capacity;
};

/* A zeroed struct of that size, at least a rapt_module, freed by rapt_module_free. NULL when there is no memory. */
RAPT_API void *rapt_module_new(size_t size, const rapt_module_class *kind);

/* Frees the module, its children and its shares in parameters and buffers. NULL does nothing. */
RAPT_API void rapt_module_free(rapt_module *module);

/* Registers and returns the tensor, NULL when it is NULL or on error. A parameter becomes a leaf that requires a
 * gradient; a buffer is saved and loaded but not trained. The module takes a share. Names follow PyTorch's. */
RAPT_API rapt_tensor *rapt_module_add_parameter(rapt_module *module, const char *name, rapt_tensor *tensor);
RAPT_API rapt_tensor *rapt_module_add_buffer(rapt_module *module, const char *name, rapt_tensor *tensor);

/* Registers a child, which the module owns from now on, even after an error. A child named "" adds no part of its own
 * to the names below it. Returns the child, NULL when it is NULL or on error. */
RAPT_API void *rapt_module_add_child(rapt_module *module, const char *name, rapt_module *child);

/* The last line of a constructor: the module, or NULL (and it is freed) when anything above failed. */
RAPT_API void *rapt_module_finish(rapt_module *module);

/* Runs the module's forward; NULL and an error for a kind that has none, or NULL arguments. */
RAPT_API rapt_tensor *rapt_module_forward(rapt_module *module, rapt_tensor *x);

/* Switches training mode (dropout on) or evaluation mode, in the module and everything below. */
RAPT_API void rapt_module_train(rapt_module *module, bool training);

enum rapt_module_what { RAPT_PARAMETERS = 1, RAPT_BUFFERS = 2 };

/* Calls the visitor with the full name ("encoder.rnn.weight_ih_l0") of every parameter or buffer (what: the flags
 * above), in the order in which they were added. Stops, and returns false, when the visitor returns false. */
typedef bool rapt_module_visitor(const char *name, rapt_tensor *tensor, void *context);
RAPT_API bool rapt_module_visit(const rapt_module *module, int what, rapt_module_visitor *visitor, void *context);

/* The parameter or buffer of that full name; NULL and no error when there is none. */
RAPT_API rapt_tensor *rapt_module_find(const rapt_module *module, const char *name);

/* The number of trained elements. */
RAPT_API int64_t rapt_module_parameter_count(const rapt_module *module);

/* Drops the gradients of all parameters. */
RAPT_API void rapt_module_clear_gradients(rapt_module *module);

/* Converts all floating parameters and buffers, in place, to float32 or float64; gradients are dropped. */
RAPT_API bool rapt_module_cast(rapt_module *module, rapt_dtype dtype);

/* Prints the tree: kinds, sizes, parameter counts. */
RAPT_API void rapt_module_print(const rapt_module *module, FILE *stream);

/* Adds all parameters and buffers to an archive, or copies them from one (names with the prefix put before them; may
 * be NULL). Loading checks everything first: names missing from the archive, other shapes or dtypes are an error that
 * names them, and then nothing is changed. What the archive has besides is ignored. */
RAPT_API bool rapt_module_to_archive(const rapt_module *module, const char *prefix, rapt_archive *archive);
RAPT_API bool rapt_module_from_archive(rapt_module *module, const char *prefix, const rapt_archive *archive);

/* The same with a safetensors file of nothing else. */
RAPT_API bool rapt_module_save(const rapt_module *module, const char *path);
RAPT_API bool rapt_module_load(rapt_module *module, const char *path);

RAPT_END_DECLS

#endif
