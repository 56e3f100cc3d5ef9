/* What a run in training mode may change: running statistics, say. */
#ifndef RAPT_NN_KEPT_BUFFERS_H
#define RAPT_NN_KEPT_BUFFERS_H

#include <rapt/module.h>

typedef struct rapt_kept_buffer {
    rapt_tensor *values;
    uint64_t version;
} rapt_kept_buffer;

/* kept: room for one of each buffer. The copies belong to the innermost scope. False after an error. */
bool rapt_keep_buffers(const rapt_tensor_list *buffers, rapt_kept_buffer *kept);

/* Only what was changed since, for a graph may still need the others as they are. */
bool rapt_put_buffers_back(const rapt_tensor_list *buffers, const rapt_kept_buffer *kept);

#endif
