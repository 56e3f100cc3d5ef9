/* What tests that run on several ranks share. */
#ifndef RAPT_TESTS_MPI_RANKS_H
#define RAPT_TESTS_MPI_RANKS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt.h>
#include <rapt/mpi.h>

extern int rank, ranks;
extern int failures; /* on this rank */

/* Prints what was expected and is not so. */
#define expect(condition, ...)                                                                                         \
    do {                                                                                                               \
        if (condition) break;                                                                                          \
        failures++;                                                                                                    \
        fprintf(stderr, "%s:%d, rank %d of %d: %s: ", __FILE__, __LINE__, rank, ranks, #condition);                    \
        fprintf(stderr, __VA_ARGS__);                                                                                  \
        fputc('\n', stderr);                                                                                           \
    } while (0)

/* The error that stands has that code and contains that text; it is cleared. */
#define expect_error(code, part)                                                                                       \
    do {                                                                                                               \
        expect(rapt_error_get_code() == (code) && rapt_error() && strstr(rapt_error(), (part)), "%s",                  \
               rapt_error() ? rapt_error() : "no error");                                                              \
        rapt_clear_error();                                                                                            \
    } while (0)

/* The same of an error of the last rank, of which the others are told. */
static inline void expect_error_of_last(rapt_error_code code, const char *text)
{
    char expected[200];
    if (rank == ranks - 1) {
        expect_error(code, text);
        return;
    }
    snprintf(expected, sizeof expected, "rank %d: ", ranks - 1);
    expect(rapt_error() && strstr(rapt_error(), expected), "%s", rapt_error() ? rapt_error() : "no error");
    expect_error(RAPT_ERROR_RANK, text);
}

/* A model that learns a row of tokens, what the tests train. */
typedef struct learner learner;
struct learner {
    const char *name;
    rapt_module *(*make)(void);
    /* The mean loss of rows [first, last) of a batch of the step, and what it is the mean of. */
    rapt_tensor *(*loss)(rapt_module *model, int step, int64_t first, int64_t last, double *weight);
};
enum { batch_rows = 7 };
extern const learner learners[];
extern const int learner_count;

/* A model from that seed. */
rapt_module *make_model(const learner *learns, rapt_dtype dtype, uint64_t seed);

/* A step of all ranks, and of one process; its loss. */
double step_together(const learner *learns, rapt_data_parallel *parallel, rapt_module *model, int step,
                     rapt_optimizer *optimizer, bool sharded);
double step_alone(const learner *learns, rapt_module *model, int step, rapt_optimizer *optimizer);

/* The largest difference of two models' parameters, as a part of the largest parameter. */
double difference(const rapt_module *a, const rapt_module *b);

/* Of all bits of the parameters and the loss. */
uint64_t hash_of(const rapt_module *module, double loss);

#endif
