/* What the layer of multi-head attention and its forward share. */
#ifndef RAPT_NN_ATTENTION_MULTI_HEAD_H
#define RAPT_NN_ATTENTION_MULTI_HEAD_H

#include <rapt/multi_head.h>

#include <stddef.h>

/* Queries, keys, values. */
enum { RAPT_ATTENTION_PARTS = 3 };

extern const rapt_module_class rapt_multi_head_kind;

/* The ring that its pooling goes across; NULL: none. */
static inline rapt_ring *rapt_multi_head_ring(const rapt_multi_head_attention *m)
{
    return m && m->pooling ? m->pooling->ring : NULL;
}

/* How many rows of the projection are the queries', the keys' and the values'. */
void rapt_multi_head_part_sizes(const rapt_multi_head_attention *m, int64_t sizes[RAPT_ATTENTION_PARTS]);

#endif
