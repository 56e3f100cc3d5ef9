/* Sinks of softmax, and sigmoid, in fused attention of either kind. T is the type, EXP its exponential. */
#ifndef RAPT_ATTENTION_NORMALIZER_H
#define RAPT_ATTENTION_NORMALIZER_H

#include "double_math.h"
#include "tensor/raw_normalizer.h"

static inline T head_term_of(const rapt_raw_normalizer *normalizer, int64_t head)
{
    return ((const T *)normalizer->head_terms)[head];
}

/* What a row's largest score begins with; of sigmoid it is no score, but −term, and stays. */
static inline T first_largest(const rapt_raw_normalizer *normalizer, int64_t head)
{
    return normalizer->is_sigmoid ? -head_term_of(normalizer, head) : -(T)INFINITY;
}

/* 1 / (1 + exp −x), without an exponential that is large */
static inline T sigmoid(T x)
{
    const T e = EXP(x < 0 ? x : -x);
    return (x < 0 ? e : 1) / (1 + e);
}

/* Ends a row that sees something: of softmax adds the sink, a score more, whose value is zeros, to the statistics.
 * Returns what the sums of values so far are to be multiplied by. */
static inline T end_row(const rapt_raw_normalizer *normalizer, int64_t head, T *largest, double *sum)
{
    if (normalizer->is_sigmoid) *sum = 1;
    if (normalizer->is_sigmoid || !normalizer->head_terms) return 1;
    const T sink = head_term_of(normalizer, head), most = sink > *largest ? sink : *largest,
            factor = EXP(*largest - most);
    *sum = *sum * (double)factor + (double)EXP(sink - most);
    *largest = most;
    return factor;
}

/* Sigmoid's head term is added to all scores of a row: adds the sum of their gradients to that of its own. */
static inline void gather_bias(const rapt_raw_normalizer *normalizer, int64_t head_of_task, int64_t count,
                               const T *d_scores)
{
    T sum = 0;
    if (!normalizer->is_sigmoid || !normalizer->gathered) return;
    _Pragma("omp simd reduction(+ : sum)") for (int64_t j = 0; j < count; j++) sum += d_scores[j];
    normalizer->gathered[head_of_task] += (double)sum;
}

/* With P = exp(sink − largest) · share the weight of the sink, whose value is zeros, and D = Σ P dP: dS = P (0 − D). */
static inline void gather_sink(const rapt_raw_normalizer *normalizer, int64_t head, int64_t head_of_task, T largest,
                               T share, T delta)
{
    if (normalizer->is_sigmoid || !normalizer->gathered || share == 0) return;
    normalizer->gathered[head_of_task] -= (double)(EXP(head_term_of(normalizer, head) - largest) * share * delta);
}

#endif
