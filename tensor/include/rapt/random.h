/* Random numbers: counter-based (Philox4x32-10, Salmon et al. 2011), the same for a seed at any number of threads. */
#ifndef RAPT_RANDOM_H
#define RAPT_RANDOM_H

#include <rapt/base.h>

RAPT_BEGIN_DECLS

/* The state of the calling thread's generator: all of it, so that it can be saved and set again. */
typedef struct rapt_random_state {
    uint64_t seed;
    uint64_t offset; /* blocks of four 32-bit numbers drawn since the seed was set */
} rapt_random_state;

/* Starts the calling thread's generator anew. A thread that never calls this starts from seed 0. */
RAPT_API void rapt_seed(uint64_t seed);
/* Where the calling thread's generator stands, and back to there. */
RAPT_API rapt_random_state rapt_random_get_state(void);
RAPT_API void rapt_random_set_state(rapt_random_state state);

/* New tensors of random numbers. dtype is float32 or float64; NULL after an error. */
RAPT_API rapt_tensor *rapt_rand(rapt_dtype dtype, int rank, const int64_t *shape);  /* uniform in [0, 1) */
RAPT_API rapt_tensor *rapt_randn(rapt_dtype dtype, int rank, const int64_t *shape); /* normal, mean 0, variance 1 */

/* The same of another tensor's dtype and shape. */
RAPT_API rapt_tensor *rapt_rand_like(const rapt_tensor *tensor);
RAPT_API rapt_tensor *rapt_randn_like(const rapt_tensor *tensor);

/* int64 numbers, uniform in [low, high). */
RAPT_API rapt_tensor *rapt_randint(int64_t low, int64_t high, int rank, const int64_t *shape);

/* The numbers 0 … count − 1 in random order, int64, shape (count). */
RAPT_API rapt_tensor *rapt_randperm(int64_t count);

/* In place: overwrite a floating tensor (of any strides) with random numbers, uniform in [low, high), or low where that
 * is high, or normal; false after an error. */
RAPT_API bool rapt_fill_uniform(rapt_tensor *tensor, double low, double high);
RAPT_API bool rapt_fill_normal(rapt_tensor *tensor, double mean, double deviation);

/* In place: 1 with the given probability, else 0, in a tensor of any dtype; false after an error. */
RAPT_API bool rapt_fill_bernoulli(rapt_tensor *tensor, double probability);

RAPT_END_DECLS

#endif
