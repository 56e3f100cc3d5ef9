/* Sets of pointers. */
#include "expect.h"

#include "tensor/memory.h"
#include "tensor/pointer_set.h"

static char place[3000];

Test(pointer_set, numbers_are_in_the_order_of_adding)
{
    rapt_pointer_set set = {0};
    const int64_t before = rapt_memory_get_statistics().live_bytes;
    cr_expect_eq(rapt_pointer_set_find(&set, place), -1);
    for (int i = 0; i < 3000; i++) {
        const int64_t j = i * INT64_C(1009) % 3000; /* each once, in no order */
        cr_assert_eq(rapt_pointer_set_find(&set, &place[j]), -1);
        cr_assert_eq(rapt_pointer_set_add(&set, &place[j]), RAPT_SET_NEW);
        cr_assert_eq(rapt_pointer_set_add(&set, &place[j]), RAPT_SET_KNOWN);
    }
    cr_expect_eq(set.count, 3000);
    for (int i = 0; i < 3000; i++) {
        const int64_t j = i * INT64_C(1009) % 3000;
        cr_assert_eq(rapt_pointer_set_find(&set, &place[j]), i);
        cr_assert_eq(set.pointers[i], &place[j]);
    }
    rapt_pointer_set_free(&set);
    cr_expect_eq(rapt_memory_get_statistics().live_bytes, before);
}

Test(pointer_set, without_memory_it_stays_as_it_was)
{
    rapt_pointer_set set = {0};
    rapt_memory_fail_after(0);
    cr_expect_eq(rapt_pointer_set_add(&set, place), RAPT_SET_NO_MEMORY);
    rapt_memory_fail_after(-1);
    int added = 0;
    while (set.count < set.capacity || added == 0) rapt_pointer_set_add(&set, &place[added++]);
    rapt_memory_fail_after(0);
    cr_expect_eq(rapt_pointer_set_add(&set, &place[added]), RAPT_SET_NO_MEMORY);
    cr_expect_eq(rapt_pointer_set_add(&set, &place[added - 1]), RAPT_SET_KNOWN);
    rapt_memory_fail_after(-1);
    cr_expect_eq(set.count, added);
    cr_expect_eq(rapt_pointer_set_add(&set, &place[added]), RAPT_SET_NEW);
    expect_no_error();
    rapt_pointer_set_free(&set);
}
