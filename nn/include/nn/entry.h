/* What a module holds, for the folder nn itself. */
#ifndef RAPT_NN_ENTRY_H
#define RAPT_NN_ENTRY_H

#include <rapt/module.h>

/* One named thing of a module: a tensor or a child. */
typedef struct rapt_module_entry {
    char *name;
    rapt_tensor *tensor; /* NULL for a child */
    rapt_module *child;  /* NULL for a tensor */
    bool is_parameter;
} rapt_module_entry;

/* The longest full name, with the dots and the end. */
#define RAPT_NAME_SIZE 512

#endif
