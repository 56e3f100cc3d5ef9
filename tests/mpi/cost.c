/* What training on many machines will cost: a table by the cost model of docs/ranks.md. cost --help lists what it is
 * told. */
#include <math.h>
#include <stdio.h>

#include "command_line.h"
#include "cost_model.h"

struct told {
    double parameters, last, forward, backward, update, latency, bandwidth, bucket, activations;
    double tokens, hidden, layers, rate; /* of a sequence that is cut over ranks */
    int64_t most;
    bool sharded, shards_gradients;
};

static cost_input input_of(const struct told *t, int ranks, int scheme)
{
    return (cost_input){.ranks = ranks,
                        .scheme = scheme,
                        .latency = t->latency * 1e-6,
                        .bandwidth = t->bandwidth / 8 * 1e9,
                        .forward = t->forward,
                        .backward = t->backward,
                        .update = t->update,
                        .parameters = 4e6 * t->parameters,
                        .activations = 1e9 * t->activations,
                        .state = 2,
                        .bucket = 1e6 * t->bucket,
                        .last = 4e6 * t->last,
                        .overlaps = true,
                        .sharded = t->sharded || t->shards_gradients,
                        .shards_gradients = t->shards_gradients};
}

static void print_row(const struct told *t, int ranks)
{
    const double alone = t->forward + t->backward + t->update;
    printf("%6d", ranks);
    for (int scheme = 0; scheme < cost_schemes; scheme++) {
        const cost_input in = input_of(t, ranks, scheme);
        const cost_output out = cost_predict(&in);
        printf("  %8.3f %8.3f %8.3f %5.2f", out.step, out.communication, out.exposed, alone / out.step);
        if (scheme == cost_schemes - 1) printf("  %7.2f\n", out.memory / 1e9);
    }
}

static void print_sequence(const struct told *t, int ranks)
{
    double computing;
    const cost_sequence in = {.ranks = ranks,
                              .tokens = t->tokens,
                              .hidden = t->hidden,
                              .layers = t->layers,
                              .parameters = 1e6 * t->parameters,
                              .rate = 1e9 * t->rate,
                              .latency = 1e-6 * t->latency,
                              .bandwidth = t->bandwidth / 8 * 1e9};
    const double step = cost_of_sequence(&in, &computing);
    printf("%6d  %10.2f %10.2f %5.2f\n", ranks, step, computing, computing / step);
}

static void print_table(const struct told *t, const char *heading, void (*print)(const struct told *t, int ranks))
{
    puts(heading);
    for (int64_t ranks = 1; ranks < t->most; ranks *= 4) print(t, (int)ranks);
    print(t, (int)t->most);
}

int main(int argc, char **argv)
{
    struct told t = {.parameters = 124.4,
                     .last = 39.4,
                     .forward = 0.4,
                     .backward = 0.8,
                     .update = 0.02,
                     .latency = 2,
                     .bandwidth = 100,
                     .bucket = 4,
                     .most = 1000,
                     .hidden = 768,
                     .layers = 12,
                     .rate = 4500};
    const double positive[2] = {1e-9, INFINITY}, any[2] = {0, INFINITY};
#define RANGE(range) .real_range = {(range)[0], (range)[1] }
    const struct command_option table[] = {
        {.help = "Model"},
        {"--parameters", .metavar = "X", .help = "millions of them, in float32", .real = &t.parameters,
         RANGE(positive)},
        {"--last", .metavar = "X", .help = "millions whose gradient is complete only in the end: a tied embedding",
         .real = &t.last, RANGE(any)},
        {"--activations", .metavar = "X", .help = "GB of what forward keeps", .real = &t.activations, RANGE(any)},
        {.help = "Measured on one rank, with its part of the batch, in seconds"},
        {"--forward", .metavar = "X", .help = "forward", .real = &t.forward, RANGE(positive)},
        {"--backward", .metavar = "X", .help = "backward", .real = &t.backward, RANGE(positive)},
        {"--update", .metavar = "X", .help = "the optimizer's step", .real = &t.update, RANGE(any)},
        {.help = "Network"},
        {"--latency", .metavar = "X", .help = "microseconds of a message", .real = &t.latency, RANGE(any)},
        {"--bandwidth", .metavar = "X", .help = "gigabits a second of a rank", .real = &t.bandwidth, RANGE(positive)},
        {.help = "A sequence that is cut over ranks, in place of batches"},
        {"--tokens", .metavar = "X", .help = "its length", .real = &t.tokens, RANGE(any)},
        {"--hidden", .metavar = "X", .help = "width of the model", .real = &t.hidden, RANGE(positive)},
        {"--layers", .metavar = "X", .help = "with attention", .real = &t.layers, RANGE(positive)},
        {"--rate", .metavar = "X", .help = "GFLOP/s of a rank", .real = &t.rate, RANGE(positive)},
        {.help = "How ranks share the work"},
        {"--bucket", .metavar = "X", .help = "MB that travel together", .real = &t.bucket, RANGE(positive)},
        {"--sharded", .help = "the optimizer's state is", .flag = &t.sharded},
        {"--sharded-gradients", .help = "gradients and the optimizer's state are", .flag = &t.shards_gradients},
        {"--most", .metavar = "N", .help = "ranks of the last row", .integer = &t.most, .integer_range = {1, 1000000}},
        {0},
    };
    const struct command_line line = {.program = "cost",
                                      .summary = "Predicts steps of data-parallel training, by ring and by tree.",
                                      .options = table};
    const int status = command_line_parse(&line, argc, argv);
    if (status >= 0) return status;
    if (t.tokens > 0)
        print_table(&t, " ranks        step  computing  efficiency", print_sequence);
    else
        print_table(&t,
                    "            ring: seconds, efficiency            tree: seconds, efficiency\n"
                    " ranks      step  sending  exposed            step  sending  exposed             GB",
                    print_row);
    return 0;
}
