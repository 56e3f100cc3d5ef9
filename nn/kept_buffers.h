/* What a run in training mode may change: running statistics, say. */
#ifndef RAPT_NN_KEPT_BUFFERS_H
#define RAPT_NN_KEPT_BUFFERS_H

#include <rapt/module.h>

/* All zeros keep nothing. The copies belong to the innermost scope, the list to who calls rapt_kept_buffers_free. */
typedef struct rapt_kept_buffers {
    rapt_tensor_list *buffers;
    struct rapt_kept_buffer {
        rapt_tensor *values;
        uint64_t version;
    } * kept; /* one for each */
} rapt_kept_buffers;

/* Those of the module and of all below it. False after an error, of `op`. */
bool rapt_keep_buffers(const char *op, const rapt_module *module, rapt_kept_buffers *kept);

/* Only what was changed since, for a graph may still need the others as they are. False after an error: others are put
 * back all the same. */
bool rapt_put_buffers_back(const rapt_kept_buffers *kept);

void rapt_kept_buffers_free(rapt_kept_buffers *kept);

#endif
