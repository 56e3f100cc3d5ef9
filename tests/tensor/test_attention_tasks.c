/* Tasks of fused attention: they cover each row and key once, whatever the shape and the number of threads. */
#include <criterion/criterion.h>

#include <rapt/runtime.h>

#include "tensor/attention_tasks.h"

/* How often the pieces have each row and key of each group. */
static void expect_covered(const rapt_attention_tasks *tasks)
{
    enum { most = 1 << 17 };
    static int covered[most];
    const int64_t of_group = tasks->rows * tasks->keys, all = tasks->items * tasks->groups * of_group;
    cr_assert_leq(all, most);
    memset(covered, 0, sizeof covered);
    for (int64_t task = 0; task < tasks->count; task++) {
        const rapt_attention_piece piece = rapt_attention_piece_of(tasks, task);
        cr_expect_lt(piece.item, tasks->items);
        cr_expect_lt(piece.group, tasks->groups);
        cr_expect_eq(rapt_attention_part_of(tasks, &piece), piece.first_key / tasks->part_keys);
        for (int64_t row = piece.first_row; row < piece.last_row; row++)
            for (int64_t key = piece.first_key; key < piece.last_key; key++)
                covered[((piece.item * tasks->groups + piece.group) * tasks->rows + row - tasks->first_row) *
                            tasks->keys +
                        key]++;
    }
    for (int64_t i = 0; i < all; i++) cr_expect_eq(covered[i], 1, "%lld of %lld", (long long)i, (long long)all);
}

Test(attention_tasks, cover_each_row_and_key_once)
{
    for (int64_t rows = 1; rows < 40; rows += 6)
        for (int64_t keys = 1; keys < 300; keys += 74) {
            rapt_attention_tasks tasks = rapt_attention_tasks_of(2, 3, rows, keys);
            cr_expect_eq(tasks.count, 6);
            expect_covered(&tasks);
            rapt_attention_cut_rows(&tasks, 8);
            cr_expect_eq(tasks.count, 6 * ((rows + 7) / 8));
            expect_covered(&tasks);
            rapt_attention_cut_keys(&tasks, 100, 20, 16);
            cr_expect_geq(tasks.part_keys, keys < 20 ? keys : 20);
            expect_covered(&tasks);
        }
}

Test(attention_tasks, begin_with_any_row)
{
    rapt_attention_tasks tasks = rapt_attention_tasks_of(1, 2, 37, 5);
    tasks.first_row = 100;
    rapt_attention_cut_rows(&tasks, 16);
    expect_covered(&tasks);
    const rapt_attention_piece piece =
        rapt_attention_piece_of(&tasks, 0); /* the last chunk: of causal ones the longest */
    cr_expect_eq(piece.first_row, 132);
    cr_expect_eq(piece.last_row, 137);
}

Test(attention_tasks, are_as_many_at_any_number_of_threads)
{
    int64_t counts[2], part_keys[2];
    for (int i = 0; i < 2; i++) {
        rapt_set_threads(i ? 7 : 1);
        rapt_attention_tasks tasks = rapt_attention_tasks_of(1, 1, 4, 5000);
        rapt_attention_cut_keys(&tasks, 8, 256, 64);
        counts[i] = tasks.count;
        part_keys[i] = tasks.part_keys;
    }
    cr_expect_eq(counts[0], 8);
    cr_expect_eq(part_keys[0], 640);
    cr_expect_eq(counts[0], counts[1]);
    cr_expect_eq(part_keys[0], part_keys[1]);
}

Test(attention_tasks, nothing_is_no_task)
{
    const int64_t shapes[][4] = {{0, 2, 3, 4}, {2, 0, 3, 4}, {2, 2, 0, 4}};
    for (int i = 0; i < 3; i++) {
        rapt_attention_tasks tasks = rapt_attention_tasks_of(shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3]);
        rapt_attention_cut_rows(&tasks, 16);
        rapt_attention_cut_keys(&tasks, 8, 256, 64);
        cr_expect_eq(tasks.count, 0);
    }
}

/* The next piece is the one behind; behind the last of a thread's tasks it is that of its next round. */
Test(attention_tasks, foretell_the_next_piece)
{
    rapt_set_threads(2);
    if (rapt_get_threads() < 2) cr_skip_test("built without OpenMP");
    const rapt_attention_tasks tasks = rapt_attention_tasks_of(8, 1, 1, 1);
    rapt_attention_piece next;
    cr_expect_eq(rapt_attention_piece_before(&tasks, 2, 2, 4, &next).next, &next);
    cr_expect_eq(next.item, 3);
    cr_expect_eq(rapt_attention_piece_before(&tasks, 3, 2, 4, &next).next, &next);
    cr_expect_eq(next.item, 6);
    cr_expect_null(rapt_attention_piece_before(&tasks, 7, 6, 8, &next).next);
}
