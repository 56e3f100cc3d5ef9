/* Fields that hold a tensor between calls, alone and among threads. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "modules.h"
#include "tensor/debug.h"

Test(field, holds_what_was_set_beyond_its_scope)
{
    const int64_t before = rapt_memory_get_statistics().live_bytes;
    rapt_tensor *field = NULL;
    {
        RAPT_SCOPE;
        cr_expect_null(rapt_field_get(&field));
        for (int i = 1; i <= 3; i++) {
            RAPT_SCOPE;
            cr_expect(rapt_field_set(&field, rapt_full(RAPT_FLOAT64, RAPT_SHAPE(2), i)));
        }
        expect_values("the last", rapt_field_get(&field), 2, (double[]){3, 3}, 0);
        cr_expect(rapt_field_set(&field, rapt_field_get(&field)), "the same once more");
        rapt_tensor *held = rapt_field_get(&field);
        cr_expect_eq(held, field);
        cr_expect(rapt_field_set(&field, NULL));
        cr_expect_null(field);
        expect_values("it stays in the scope that has it", held, 2, (double[]){3, 3}, 0);
    }
    cr_expect_eq(rapt_memory_get_statistics().live_bytes, before);
    expect_no_error();
}

Test(field, what_is_missing_or_gone_is_an_error)
{
    cr_expect_not(rapt_field_set(NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "field_set: field is NULL");
    cr_expect_null(rapt_field_get(NULL));
    expect_error(RAPT_ERROR_NULL, "field_get: field is NULL");
    rapt_debugging = true;
    rapt_tensor *field = NULL, *gone;
    {
        RAPT_SCOPE;
        gone = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3));
        cr_expect(rapt_field_set(&field, rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(4))));
    }
    cr_expect_not(rapt_field_set(&field, gone));
    expect_error(RAPT_ERROR_GONE, "field_set: the tensor is gone: float32 [3], made by ones");
    cr_expect_eq(rapt_count(rapt_field_get(&field)), 4);
    cr_expect(rapt_field_set(&field, NULL));
    rapt_tensor *wrong = gone;
    cr_expect_null(rapt_field_get(&wrong));
    expect_error(RAPT_ERROR_GONE, "field_get: the tensor is gone");
    rapt_tensor *next;
    {
        RAPT_SCOPE;
        next = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2));
        cr_expect_not(rapt_field_set(&wrong, next));
        expect_error(RAPT_ERROR_GONE, "field_set: what the field holds is gone: float32 [3], made by ones");
        cr_expect_eq(wrong, gone);
    }
    cr_expect_null(rapt_field_get(&next));
    expect_error(RAPT_ERROR_GONE, "field_get: the tensor is gone: float32 [2]");
}

enum { threads = 4, rounds = 100000, elements = 8 };

typedef struct sharing {
    rapt_tensor *field;
    pthread_barrier_t start;
    int fails;
} sharing;

/* Elements of one tensor are equal: of one that is gone, or half another, they are not. */
static void *set_and_get(void *context)
{
    sharing *s = context;
    int fails = 0;
    pthread_barrier_wait(&s->start);
    for (int i = 0; i < rounds; i++) {
        RAPT_SCOPE;
        fails += !rapt_field_set(&s->field, rapt_full(RAPT_FLOAT64, RAPT_SHAPE(elements), i));
        const double *values = rapt_data(rapt_field_get(&s->field));
        for (int k = 1; k < elements; k++) fails += !values || values[k] != values[0];
    }
    __atomic_add_fetch(&s->fails, fails, __ATOMIC_RELAXED);
    return NULL;
}

Test(field, threads_read_and_replace_it)
{
    sharing s = {0};
    pthread_t thread[threads];
    const int64_t before = rapt_memory_get_statistics().live_bytes;
    cr_assert_eq(pthread_barrier_init(&s.start, NULL, threads), 0);
    for (int i = 0; i < threads; i++) cr_assert_eq(pthread_create(&thread[i], NULL, set_and_get, &s), 0);
    for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&s.start);
    cr_expect_eq(s.fails, 0);
    cr_expect(rapt_field_set(&s.field, NULL));
    /* of other threads up to 64 KiB each are not counted yet; all that was set would be 100 MB */
    cr_expect_lt(rapt_memory_get_statistics().live_bytes - before, threads * 65536);
    expect_no_error();
}
