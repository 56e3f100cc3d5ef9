/* What the library's own scoring functions share: checks that name them, and numbers that may be learned. */
#ifndef RAPT_NN_SCORING_H
#define RAPT_NN_SCORING_H

#include <rapt/scoring.h>

enum { RAPT_ANY_SIZE = -1, RAPT_SIZE_OF_QUERIES = -2 };

/* Is that tensor vectors (…, count, size), floating? False after an error under the name of the scoring function. */
bool rapt_check_vectors(const rapt_scoring *scoring, const char *what, const rapt_tensor *vectors, int64_t size);

/* Are both, of one dtype? */
bool rapt_check_sizes(const rapt_scoring *scoring, const rapt_tensor *queries, int64_t query_size,
                      const rapt_tensor *keys, int64_t key_size);

/* And do their leading axes broadcast? */
bool rapt_check_pair(const rapt_scoring *scoring, const rapt_tensor *queries, int64_t query_size,
                     const rapt_tensor *keys, int64_t key_size);

/* The shape (…, Q, K) of the scores of queries (…, Q, q) and keys (…, K, k); its rank, or −1 after an error. */
int rapt_score_shape(const char *op, const rapt_tensor *queries, const rapt_tensor *keys, int64_t *shape);

/* A number above 0 that a scoring function divides by. */
typedef struct rapt_divisor {
    double value;
    rapt_tensor *parameter; /* (1), where it is learned; else NULL */
} rapt_divisor;

/* For a constructor. A value that is not finite or not above 0 is an error, which rapt_module_finish will find. */
rapt_divisor rapt_add_divisor(rapt_module *module, const char *name, double value, bool learns);

/* Of one element: the parameter, or the value in that dtype. */
rapt_tensor *rapt_divisor_tensor(const rapt_divisor *divisor, rapt_dtype dtype);

/* For a describe: "name value", and whether it is learned. */
void rapt_describe_divisor(const rapt_divisor *divisor, const char *name, char *text, size_t size);

#endif
