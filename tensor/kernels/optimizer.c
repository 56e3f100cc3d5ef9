/* The formulas of the optimizers: parameter p and its state are changed by gradient g in one pass. And that of
 * averages. */
#include <math.h>

#include "apart.h"

/* What a loop does with each operand: X(name, its place in data). T is `number` in there. */
#define AND_ONE(name, k) +1
#define POINTER(name, k) number *name##_at = (number *)(void *)data[k];
#define LOAD(name, k) number name = name##_at[i];
#define STORE(name, k) name##_at[i] = name;

/* And with each of the numbers in options. */
#define CONSTANT(name)                                                                                                 \
    const number name = (number)numbers->name;                                                                         \
    (void)name;

enum { gradient = 1 }; /* its place in data: what is not written */

/* A loop over p, g and the operands of `state`, which the last argument, the formula, changes. */
#define UPDATE_LOOP(function, T, state, numbers_type, constants, ...)                                                  \
    static void function(int64_t count, char *const *data, const int64_t *strides, const void *options)                \
    {                                                                                                                  \
        typedef T number;                                                                                              \
        enum { operands = 2 state(AND_ONE) };                                                                          \
        if (!are_dense(operands, strides, sizeof(T))) {                                                                \
            run_apart(function, operands, 0, ~(1U << gradient), sizeof(T), count, data, strides, options);             \
            return;                                                                                                    \
        }                                                                                                              \
        const numbers_type *numbers = options;                                                                         \
        constants(CONSTANT);                                                                                           \
        POINTER(p, 0)                                                                                                  \
        POINTER(g, 1)                                                                                                  \
        state(POINTER);                                                                                                \
        RAPT_SIMD for (int64_t i = 0; i < count; i++)                                                                  \
        {                                                                                                              \
            LOAD(p, 0)                                                                                                 \
            LOAD(g, 1)                                                                                                 \
            state(LOAD);                                                                                               \
            __VA_ARGS__                                                                                                \
            STORE(p, 0)                                                                                                \
            state(STORE);                                                                                              \
        }                                                                                                              \
    }

/* Without decay p is left out, for 0 · ∞ is NaN. */
#define ADD_DECAY g = decay != 0 ? g + decay * p : g

/* m + share·(g − m), of large shares as share·g + (1 − share)·m: loses neither a small g beside a large m, nor what
 * of m stays. Without a branch, for which loops would be there twice. */
#define IS_SMALL(share) ((number)(2 * (share) < 1))
#define TOWARDS(m, g, share)                                                                                           \
    RAPT_MULTIPLY_ADD(share, (g)-IS_SMALL(share) * (m), (1 - (1 - IS_SMALL(share)) * (share)) * (m))

#define NO_STATE(X)
#define SGD_STATE(X) X(v, 2)
#define SGD_NUMBERS(X)                                                                                                 \
    X(rate)                                                                                                            \
    X(decay)                                                                                                           \
    X(momentum)                                                                                                        \
    X(share)

#define SGD(T, dtype)                                                                                                  \
    UPDATE_LOOP(sgd_##dtype, T, NO_STATE, rapt_sgd_numbers, SGD_NUMBERS, ADD_DECAY; p -= rate * g;)                    \
    UPDATE_LOOP(sgd_momentum_##dtype, T, SGD_STATE, rapt_sgd_numbers, SGD_NUMBERS, ADD_DECAY;                          \
                v = RAPT_MULTIPLY_ADD(momentum, v, share * g);                                                         \
                p -= rate * (numbers->nesterov ? g + momentum * v : v);)

SGD(float, float32)
SGD(double, float64)

#define ADAM_STATE(X)                                                                                                  \
    X(m, 2)                                                                                                            \
    X(v, 3)
#define ADAM_NUMBERS(X)                                                                                                \
    X(decay)                                                                                                           \
    X(keep)                                                                                                            \
    X(share1)                                                                                                          \
    X(beta2)                                                                                                           \
    X(share2)                                                                                                          \
    X(rate)                                                                                                            \
    X(correction)                                                                                                      \
    X(epsilon)

#define ADAM(T, dtype, SQRT)                                                                                           \
    UPDATE_LOOP(adam_##dtype, T, ADAM_STATE, rapt_adam_numbers, ADAM_NUMBERS, ADD_DECAY; m = TOWARDS(m, g, share1);    \
                v = RAPT_MULTIPLY_ADD(beta2, v, share2 * g * g);                                                       \
                p = keep * p - rate * m / (SQRT(v) * correction + epsilon);)

ADAM(float, float32, sqrtf)
ADAM(double, float64, sqrt)

#define RMSPROP_STATE(X) X(v, 2)
#define RMSPROP_CENTERED_STATE(X)                                                                                      \
    X(v, 2)                                                                                                            \
    X(a, 3)
#define RMSPROP_MOMENTUM_STATE(X)                                                                                      \
    X(v, 2)                                                                                                            \
    X(b, 3)
#define RMSPROP_FULL_STATE(X)                                                                                          \
    X(v, 2)                                                                                                            \
    X(a, 3)                                                                                                            \
    X(b, 4)
#define RMSPROP_NUMBERS(X)                                                                                             \
    X(rate)                                                                                                            \
    X(decay)                                                                                                           \
    X(alpha)                                                                                                           \
    X(share)                                                                                                           \
    X(epsilon)                                                                                                         \
    X(momentum)

#define SECOND_MOMENT                                                                                                  \
    ADD_DECAY;                                                                                                         \
    v = RAPT_MULTIPLY_ADD(alpha, v, share * g * g);                                                                    \
    number spread = v;

/* A variance is not negative, though rounding may make it so. */
#define CENTER                                                                                                         \
    a = TOWARDS(a, g, share);                                                                                          \
    spread = v - a * a;                                                                                                \
    spread = spread < 0 ? 0 : spread;

#define STEP(SQRT) p -= rate * g / (SQRT(spread) + epsilon);
#define STEP_WITH_MOMENTUM(SQRT)                                                                                       \
    b = momentum * b + g / (SQRT(spread) + epsilon);                                                                   \
    p -= rate * b;

#define RMSPROP_LOOP(function, T, state, ...)                                                                          \
    UPDATE_LOOP(function, T, state, rapt_rmsprop_numbers, RMSPROP_NUMBERS, __VA_ARGS__)

#define RMSPROP(T, dtype, SQRT)                                                                                        \
    RMSPROP_LOOP(rmsprop_##dtype, T, RMSPROP_STATE, SECOND_MOMENT STEP(SQRT))                                          \
    RMSPROP_LOOP(rmsprop_centered_##dtype, T, RMSPROP_CENTERED_STATE, SECOND_MOMENT CENTER STEP(SQRT))                 \
    RMSPROP_LOOP(rmsprop_momentum_##dtype, T, RMSPROP_MOMENTUM_STATE, SECOND_MOMENT STEP_WITH_MOMENTUM(SQRT))          \
    RMSPROP_LOOP(rmsprop_full_##dtype, T, RMSPROP_FULL_STATE, SECOND_MOMENT CENTER STEP_WITH_MOMENTUM(SQRT))

RMSPROP(float, float32, sqrtf)
RMSPROP(double, float64, sqrt)

#define ADAGRAD_STATE(X) X(s, 2)
#define ADAGRAD_NUMBERS(X)                                                                                             \
    X(rate)                                                                                                            \
    X(decay)                                                                                                           \
    X(epsilon)

#define ADAGRAD(T, dtype, SQRT)                                                                                        \
    UPDATE_LOOP(adagrad_##dtype, T, ADAGRAD_STATE, rapt_adagrad_numbers, ADAGRAD_NUMBERS, ADD_DECAY; s += g * g;       \
                p -= rate * g / (SQRT(s) + epsilon);)

ADAGRAD(float, float32, sqrtf)
ADAGRAD(double, float64, sqrt)

#define LION_STATE(X) X(m, 2)
#define LION_NUMBERS(X)                                                                                                \
    X(keep)                                                                                                            \
    X(rate)                                                                                                            \
    X(share1)                                                                                                          \
    X(share2)

/* 1 or −1; 0 and NaN as they are */
#define SIGN(x) ((x) > 0 ? 1 : (x) < 0 ? -1 : (x))

#define LION(T, dtype)                                                                                                 \
    UPDATE_LOOP(lion_##dtype, T, LION_STATE, rapt_lion_numbers, LION_NUMBERS, number c = TOWARDS(m, g, share1);        \
                p = RAPT_MULTIPLY_ADD(keep, p, -rate * SIGN(c)); m = TOWARDS(m, g, share2);)

LION(float, float32)
LION(double, float64)

#define MOVE_NUMBERS(X)                                                                                                \
    X(keep)                                                                                                            \
    X(rate)

#define MOVE(T, dtype)                                                                                                 \
    UPDATE_LOOP(move_##dtype, T, NO_STATE, rapt_move_numbers, MOVE_NUMBERS, p = RAPT_MULTIPLY_ADD(keep, p, -rate * g);)

MOVE(float, float32)
MOVE(double, float64)

#define AVERAGE_NUMBERS(X) X(share)

/* Where both are the same, infinite ones too, p stays the same. */
#define AVERAGE(T, dtype)                                                                                              \
    UPDATE_LOOP(average_##dtype, T, NO_STATE, rapt_average_numbers, AVERAGE_NUMBERS,                                   \
                p = g == p ? p : TOWARDS(p, g, share);)

AVERAGE(float, float32)
AVERAGE(double, float64)

void RAPT_AT_LEVEL(rapt_fill_optimizer)(rapt_kernels *kernels)
{
    kernels->optimizer = (rapt_optimizer_kernels){
        .sgd = {RAPT_FLOATING_ROW(sgd)},
        .sgd_momentum = {RAPT_FLOATING_ROW(sgd_momentum)},
        .adam = {RAPT_FLOATING_ROW(adam)},
        .rmsprop = {{{RAPT_FLOATING_ROW(rmsprop)}, {RAPT_FLOATING_ROW(rmsprop_momentum)}},
                    {{RAPT_FLOATING_ROW(rmsprop_centered)}, {RAPT_FLOATING_ROW(rmsprop_full)}}},
        .adagrad = {RAPT_FLOATING_ROW(adagrad)},
        .lion = {RAPT_FLOATING_ROW(lion)},
        .move = {RAPT_FLOATING_ROW(move)},
        .average = {RAPT_FLOATING_ROW(average)},
    };
}
