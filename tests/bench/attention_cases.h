/* What the measurements of attention share: cases of one kind, timed forward, and forward and backward. */
#ifndef BENCH_ATTENTION_CASES_H
#define BENCH_ATTENTION_CASES_H

#include <rapt.h>

/* How queries, keys and values of several heads lie in memory. */
typedef enum attention_layout {
    DENSE,  /* (batch, heads, length, size) */
    SPLIT,  /* (batch, length, heads, size), as a projection that is split into heads; permuting them is measured too */
    PACKED, /* (heads, rows, size): sequences of those lengths behind one another */
} attention_layout;

typedef struct attention_case {
    const char *name;
    int64_t batch, heads, groups; /* heads 0: no axis of heads */
    int64_t queries, keys, size;
    bool causal, has_lengths; /* lengths from 1 to keys, the same in tests/bench/torch_attention.py */
    attention_layout layout;
    rapt_score_modification *(*modify)(int64_t heads); /* NULL: the scores stay as they are */
} attention_case;

/* A kind of attention: its layer for vectors of that size, and what a pair of a query and a key that it sees costs. */
typedef struct attention_kind {
    rapt_attention *(*make)(int64_t size);
    double (*cost)(int64_t size, bool backward); /* floating-point operations */
    const char *note;                            /* what they count */
} attention_kind;

/* A main function, as rows_main is one. */
int attention_cases_main(int count, char **arguments, const attention_kind *kind, const attention_case *cases,
                         int num_cases);

#endif
