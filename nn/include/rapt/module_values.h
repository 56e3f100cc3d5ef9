/* The values of a module's parameters and buffers: to archives and files and back, from module to module, and
 * averaged. */
#ifndef RAPT_MODULE_VALUES_H
#define RAPT_MODULE_VALUES_H

#include <rapt/module.h>

RAPT_BEGIN_DECLS

/* Adds all parameters and buffers to an archive, or copies them from one (names with the prefix put before them; may
 * be NULL). A tensor of several names goes to the archive once, under the first (as safetensors' save_model has it),
 * and is found there under any of them; where an archive has it under several (PyTorch's state_dict does), their
 * values must be the same bits. Loading checks everything first: names missing from the archive, other shapes or
 * dtypes are an error that names them, and then nothing is changed. What the archive has besides is ignored: it may
 * hold several modules. */
RAPT_API bool rapt_module_to_archive(const rapt_module *module, const char *prefix, rapt_archive *archive);
RAPT_API bool rapt_module_from_archive(rapt_module *module, const char *prefix, const rapt_archive *archive);

/* The same with a safetensors file of nothing else: names that the module has not are an error, since the file is then
 * of another architecture. */
RAPT_API bool rapt_module_save(const rapt_module *module, const char *path);
RAPT_API bool rapt_module_load(rapt_module *module, const char *path);

/* What became of a name. */
typedef enum rapt_load_outcome {
    RAPT_LOAD_TAKEN,
    RAPT_LOAD_MISSING, /* the module has it, the archive has not: left as it was */
    RAPT_LOAD_SKIPPED, /* the module has it, but its first name does not match the pattern: left as it was */
    RAPT_LOAD_UNUSED,  /* the archive has it (here without the prefix), the module has not */
} rapt_load_outcome;

/* A part to be loaded; all zeros: everything. */
typedef struct rapt_load_part {
    const char *prefix;  /* of the archive's names, as above */
    const char *pattern; /* only tensors whose first name matches (fnmatch's: "encoder.*"); NULL: all */
    bool allow_missing;  /* names that the archive lacks are left as they were, as long as it has any; else an error */
    /* Called, once everything is loaded, for every tensor of the module by its first name, and for names that are
     * unused. May be NULL. */
    void (*report)(const char *name, rapt_load_outcome outcome, void *context);
    void *context;
} rapt_load_part;

/* Loads a part of an archive or file. A pattern that no name of the module matches is an error; other shapes and
 * dtypes are one always. False after an error; nothing is changed then. */
RAPT_API bool rapt_module_from_archive_part(rapt_module *module, const rapt_load_part *part,
                                            const rapt_archive *archive);
RAPT_API bool rapt_module_load_part(rapt_module *module, const rapt_load_part *part, const char *path);

/* Copies the values of one module into another with the same names, no more and no less, shapes and dtypes: two calls
 * of one constructor give such a pair. (A copy of the structure itself is the constructor's work: the struct of a
 * layer is its own, with pointers to its parts, and only its constructor knows them all.) False after an error;
 * nothing is changed then. */
RAPT_API bool rapt_module_copy(rapt_module *target, const rapt_module *source);

/* The present values, copied into an archive: the best weights so far, which rapt_module_from_archive(module, NULL,
 * best) puts back, and rapt_save_safetensors writes. NULL after an error. */
RAPT_API rapt_archive *rapt_module_snapshot(const rapt_module *module);

/* averages += (1 − decay) · (the module's present values − averages), for what is floating; the rest is copied. decay
 * is 0 to 1: 0.999 after every step gives exponential averages, n / (n + 1) with n values so far their mean; 0 copies.
 * The archive is a rapt_module_snapshot of such a module. False after an error; the averages are then as they were. */
RAPT_API bool rapt_module_average(const rapt_module *module, rapt_archive *averages, double decay);

RAPT_END_DECLS

#endif
