/* What a data-parallel step costs. */
#include "cost_model.h"

#include <math.h>

static double sum_by(int ranks, int scheme, double latency, double bandwidth, double bytes)
{
    const double messages = scheme == cost_ring ? ranks - 1 : ceil(log2(ranks));
    const double size = scheme == cost_ring ? bytes / ranks : bytes;
    return 2 * messages * (latency + size / bandwidth);
}

double cost_of_sum(const cost_input *in, double bytes)
{
    return sum_by(in->ranks, in->scheme, in->latency, in->bandwidth, bytes);
}

/* Buckets are complete one after the other while backward goes on, and travel one behind the other. Where the optimizer
 * is sharded only half of it does: what comes back are values, behind the optimizer's step. */
cost_output cost_predict(const cost_input *in)
{
    cost_output out = {0};
    const double early = in->parameters - in->last, share = in->sharded ? 1.0 / in->ranks : 1;
    const double buckets = early > 0 ? ceil(early / in->bucket) : 0, early_part = in->sharded ? 0.5 : 1;
    double copies = 0;
    if (in->bandwidth_of_copies > 0)
        copies = sum_by(in->ranks, cost_ring, in->latency_of_copies, in->bandwidth_of_copies, in->parameters);
    const double computing = in->forward + in->backward + copies + (in->ranks > 1 ? in->handling * in->parameters : 0);
    double free = 0;
    for (double k = 1; k <= buckets; k++) {
        const double ready = in->overlaps ? in->forward + (computing - in->forward) * k / buckets : computing;
        const double time = cost_of_sum(in, early / buckets);
        free = fmax(free, ready) + early_part * time;
        out.communication += time;
    }
    if (in->last > 0) {
        const double time = cost_of_sum(in, in->last);
        free = fmax(free, computing) + early_part * time;
        out.communication += time;
    }
    out.exposed = fmax(0, free - computing) + (1 - early_part) * out.communication;
    out.step = computing + out.exposed + in->update * share;
    /* values and gradients, those that are on their way out and in, and what of them, and of the state, a rank has */
    const double way = in->shards_gradients ? 8 * in->bucket : 2 * in->parameters;
    const double own =
        in->sharded ? (1 + (2 + in->state) / in->ranks) * in->parameters : (2 + in->state) * in->parameters;
    out.memory = own + way + in->activations;
    return out;
}

/* Of each layer and hop: keys and values travel while 4 n² d operations are done, half of them where the mask is causal
 * and the work balanced; backward has 2.5 times the operations, and two gradients travel, too. */
double cost_of_sequence(const cost_sequence *in, double *computing)
{
    const double n = in->tokens / in->ranks, hops = in->ranks * in->layers;
    const double attend = 2 * n * n * in->hidden / in->rate, linear = 6 * in->parameters * n / in->rate;
    const double sending = in->latency + 2 * n * in->hidden * 4 / in->bandwidth;
    *computing = linear + 3.5 * attend * hops;
    if (in->ranks == 1) return *computing;
    return linear + hops * (fmax(attend, sending) + fmax(2.5 * attend, 2 * sending));
}
