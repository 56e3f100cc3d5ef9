/* What a run of a module gave, module by module. */
#ifndef RAPT_NN_SUMMARY_H
#define RAPT_NN_SUMMARY_H

#include <rapt/module.h>

#include "tensor/pointer_set.h"

typedef struct rapt_module_result {
    int calls;
    char *outputs; /* of the last one: "float32 [4, 16]" */
} rapt_module_result;

typedef struct rapt_module_results {
    rapt_pointer_set modules;
    rapt_module_result *results; /* of each */
    int64_t capacity;
    bool failed; /* for lack of memory */
} rapt_module_results;

/* NULL where the module did not run. */
const rapt_module_result *rapt_module_result_of(const rapt_module_results *results, const rapt_module *module);

/* The tree of modules: with results without its tensors, else (NULL) as rapt_module_print has it. */
bool rapt_module_print_tree(const char *op, const rapt_module *module, FILE *stream,
                            const rapt_module_results *results);

#endif
