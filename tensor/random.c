/* Random tensors: counter-based, so that every piece of a fill can be made by any thread. */
#include <rapt/random.h>

#include <float.h>
#include <math.h>

#include "kernels/philox.h"
#include "tensor/core.h"
#include "tensor/kernels.h"
#include "tensor/map.h"
#include "tensor/parallel.h"
#include "tensor/random.h"
#include "tensor/thread.h"

RAPT_THREAD_LOCAL rapt_random_state rapt_generator;

void rapt_random_set_state(rapt_random_state state)
{
    rapt_generator = state;
}

rapt_random_state rapt_random_get_state(void)
{
    return rapt_generator;
}

void rapt_seed(uint64_t seed)
{
    rapt_random_set_state((rapt_random_state){.seed = seed});
}

/* Takes the blocks for that many elements from the calling thread's generator. */
static rapt_random_state reserve(int64_t elements, int64_t elements_a_block)
{
    const rapt_random_state state = rapt_random_get_state();
    const uint64_t blocks = ((uint64_t)elements + (uint64_t)elements_a_block - 1) / (uint64_t)elements_a_block;
    rapt_random_set_state((rapt_random_state){.seed = state.seed, .offset = state.offset + blocks});
    return state;
}

rapt_random_state rapt_random_reserve(int64_t elements)
{
    return reserve(elements, 4);
}

rapt_random_state rapt_random_reserve_pairs(int64_t elements)
{
    return reserve(elements, 2);
}

/* A seed is drawn where nothing else is: streams of numbers begin at 0. */
rapt_random_state rapt_random_branch(rapt_random_state state, uint64_t number)
{
    const struct rapt_philox_block block = rapt_philox(state.seed, ~number, state.offset);
    return (rapt_random_state){.seed = (uint64_t)block.word[0] << 32 | block.word[1]};
}

rapt_draws rapt_draws_begin(void)
{
    return (rapt_draws){rapt_generator, rapt_count_failures()};
}

void rapt_draws_end(const rapt_draws *draws)
{
    if (rapt_count_failures() != draws->failures && rapt_error_get_code() != RAPT_OK) rapt_generator = draws->before;
}

/* One fill or dropout of dense elements, cut into groups of four of them. */
typedef struct job {
    rapt_random_loop *loop;
    rapt_dropout_loop *dropout;
    rapt_random_state state;
    double a, b;
    size_t element_size;
    int64_t count;
    char *out;
    const char *in;
} job;

static void run_groups(void *context, int64_t first_group, int64_t last_group)
{
    const job *j = context;
    const int64_t first = first_group * 4;
    const int64_t count = (last_group * 4 < j->count ? last_group * 4 : j->count) - first;
    const size_t skipped = (size_t)first * j->element_size;
    if (j->dropout)
        j->dropout(j->state, first, count, j->out + skipped, j->in + skipped, j->a, j->b);
    else
        j->loop(j->state, first, count, j->out + skipped, j->a, j->b);
}

static void run(job *j, int64_t cost)
{
    rapt_parallel_evenly((j->count + 3) / 4, rapt_grain(cost * 4), run_groups, j);
}

void rapt_random_dropout(rapt_random_state state, rapt_dtype dtype, int64_t count, void *out, const void *in,
                         double keep, double scale)
{
    run(&(job){.dropout = rapt_kernel.random.dropout[dtype],
               .state = state,
               .a = keep,
               .b = scale,
               .element_size = rapt_dtype_size(dtype),
               .count = count,
               .out = out,
               .in = in},
        1);
}

/* Fills the tensor with what the loop makes as dense elements of loop_dtype. */
static bool fill(const char *op, rapt_tensor *tensor, rapt_random_loop *loop, rapt_dtype loop_dtype,
                 int64_t elements_a_block, double a, double b)
{
    rapt_tensor *dense = tensor;
    if (!tensor->contiguous || tensor->dtype != loop_dtype)
        dense = rapt_new(op, loop_dtype, tensor->rank, tensor->shape);
    if (!dense || !rapt_begin_writing(op, tensor)) return false;
    run(&(job){.loop = loop,
               .state = reserve(tensor->count, elements_a_block),
               .a = a,
               .b = b,
               .element_size = rapt_dtype_size(loop_dtype),
               .count = tensor->count,
               .out = dense->data},
        4);
    if (dense != tensor)
        rapt_map(rapt_kernel.elementwise.cast[tensor->dtype][loop_dtype], NULL, 1, 2,
                 (const rapt_tensor *[]){tensor, dense});
    return true;
}

/* fill inside a scope of its own, which ends the dense copy. */
static bool fill_in_scope(const char *op, rapt_tensor *tensor, rapt_random_loop *loop, rapt_dtype loop_dtype,
                          int64_t elements_a_block, double a, double b)
{
    RAPT_SCOPE;
    return fill(op, tensor, loop, loop_dtype, elements_a_block, a, b);
}

static bool check_dtype(const char *op, rapt_dtype dtype)
{
    return rapt_dtype_is_floating(dtype) ||
           rapt_fail(RAPT_ERROR_DTYPE, op, "dtype is %s; float32 or float64 expected", rapt_dtype_name(dtype));
}

static bool fits(double number, rapt_dtype dtype)
{
    return fabs(number) <= (dtype == RAPT_FLOAT32 ? (double)FLT_MAX : DBL_MAX);
}

static bool fill_uniform(const char *op, rapt_tensor *tensor, double low, double high)
{
    if (!tensor) return rapt_fail_null(op, "tensor");
    const rapt_dtype dtype = tensor->dtype;
    if (!check_dtype(op, dtype)) return false;
    if (!(low <= high) || !fits(low, dtype) || !fits(high, dtype))
        return rapt_fail(RAPT_ERROR_VALUE, op, "from %g to %g; finite %s numbers in order expected", low, high,
                         rapt_dtype_name(dtype));
    if (!fits(high - low, dtype))
        return rapt_fail(RAPT_ERROR_VALUE, op, "from %g to %g; their difference is too large a number for %s", low,
                         high, rapt_dtype_name(dtype));
    return fill_in_scope(op, tensor, rapt_kernel.random.uniform[dtype], dtype, dtype == RAPT_FLOAT32 ? 4 : 2, low,
                         high);
}

static bool fill_normal(const char *op, rapt_tensor *tensor, double mean, double deviation)
{
    if (!tensor) return rapt_fail_null(op, "tensor");
    const rapt_dtype dtype = tensor->dtype;
    if (!check_dtype(op, dtype)) return false;
    if (!(deviation >= 0) || !fits(mean, dtype) || !fits(deviation, dtype))
        return rapt_fail(RAPT_ERROR_VALUE, op,
                         "mean %g and deviation %g; finite %s numbers expected, the deviation not below 0", mean,
                         deviation, rapt_dtype_name(dtype));
    return fill_in_scope(op, tensor, rapt_kernel.random.normal[dtype], dtype, dtype == RAPT_FLOAT32 ? 4 : 2, mean,
                         deviation);
}

bool rapt_fill_uniform(rapt_tensor *tensor, double low, double high)
{
    return fill_uniform("fill_uniform", tensor, low, high);
}

bool rapt_fill_normal(rapt_tensor *tensor, double mean, double deviation)
{
    return fill_normal("fill_normal", tensor, mean, deviation);
}

bool rapt_fill_bernoulli(rapt_tensor *tensor, double probability)
{
    if (!tensor) return rapt_fail_null("fill_bernoulli", "tensor");
    if (!rapt_check_probability("fill_bernoulli", "probability", probability)) return false;
    return fill_in_scope("fill_bernoulli", tensor, rapt_kernel.random.bernoulli, RAPT_UINT8, 4, probability, 0);
}

rapt_tensor *rapt_rand(rapt_dtype dtype, int rank, const int64_t *shape)
{
    rapt_tensor *tensor = rapt_new("rand", dtype, rank, shape);
    return tensor && fill_uniform("rand", tensor, 0, 1) ? tensor : NULL;
}

rapt_tensor *rapt_randn(rapt_dtype dtype, int rank, const int64_t *shape)
{
    rapt_tensor *tensor = rapt_new("randn", dtype, rank, shape);
    return tensor && fill_normal("randn", tensor, 0, 1) ? tensor : NULL;
}

rapt_tensor *rapt_rand_like(const rapt_tensor *tensor)
{
    rapt_tensor *like = rapt_new_like("rand_like", tensor);
    return like && fill_uniform("rand_like", like, 0, 1) ? like : NULL;
}

rapt_tensor *rapt_randn_like(const rapt_tensor *tensor)
{
    rapt_tensor *like = rapt_new_like("randn_like", tensor);
    return like && fill_normal("randn_like", like, 0, 1) ? like : NULL;
}
