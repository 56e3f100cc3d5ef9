/* Tests of examples/translate/sentences.c: reading sentence pairs and making them from numbers. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "numbers.h"
#include "sentences.h"
#include "temporary_file.h"

static void expect_refused(const char *bytes, size_t size, const char *part_of_message)
{
    struct translate_error error = {""};
    struct sentences sentences;
    char path[32];
    write_temporary_file(path, bytes, size);
    cr_expect(!sentences_read(&sentences, path, INT64_MAX, INT64_MAX, &error));
    unlink(path);
    cr_expect_not_null(strstr(error.message, part_of_message), "'%s' lacks '%s'", error.message, part_of_message);
}

#define EXPECT_REFUSED(bytes, part_of_message) expect_refused(bytes, sizeof(bytes) - 1, part_of_message)

Test(sentences, refuses_malformed_files)
{
    EXPECT_REFUSED("", "the file is empty");
    EXPECT_REFUSED("a\tb\nno tab here\na\tb\n", ": line 2: no tab");
    EXPECT_REFUSED("a\tb\n\na\tb\n", ": line 2: no tab");
    EXPECT_REFUSED("a\tb\na\tb\n\tb\n", ": line 3: nothing before the tab");
    EXPECT_REFUSED("a\t\n", ": line 1: nothing after the tab");
    EXPECT_REFUSED("a\t\r\n", ": line 1: nothing after the tab");
    EXPECT_REFUSED("a\t\tb\n", ": line 1: nothing after the tab");
    EXPECT_REFUSED("a\t \u00a0\u202f\n", ": line 1: nothing after the tab");
    EXPECT_REFUSED("a\tb\ncaf\xE9\tb\n", ": line 2: byte 4 (0xE9) is not valid UTF-8");
    EXPECT_REFUSED("a\tb\tin the \xC3 third column\n", ": line 1: byte 12 (0xC3) is not valid UTF-8");
    EXPECT_REFUSED("\xEF\xBB\xBF\xFF\tb\n", ": line 1: byte 4 (0xFF) is not valid UTF-8");
    EXPECT_REFUSED("a\tb\nx\0y\tb\n", ": line 2: byte 2 is a NUL");
    EXPECT_REFUSED("\xEF\xBB\xBF", ": line 1: no tab");
    EXPECT_REFUSED("\n \r\n", "the file is empty");
    EXPECT_REFUSED("a\tb\n\t\n", ": line 2: nothing before the tab");
}

Test(sentences, blank_lines_at_the_end_are_passed_over)
{
    const char *const files[] = {"a\tb\n\n", "a\tb\r\n\r\n\r\n", "a\tb\n \n\n  "};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct translate_error error = {""};
        struct sentences sentences;
        char path[32];
        write_temporary_file(path, files[i], strlen(files[i]));
        cr_expect(sentences_read(&sentences, path, INT64_MAX, INT64_MAX, &error), "%s", error.message);
        unlink(path);
        cr_expect_eq(sentences.count, 1);
        sentences_free(&sentences);
    }
}

Test(sentences, refuses_what_is_no_file)
{
    struct sentences sentences;
    struct translate_error error = {""};
    cr_expect(!sentences_read(&sentences, "/nonexistent/pairs.tsv", INT64_MAX, INT64_MAX, &error));
    cr_expect_str_eq(error.message, "/nonexistent/pairs.tsv: cannot be read: No such file or directory");
    cr_expect(!sentences_read(&sentences, "/tmp", INT64_MAX, INT64_MAX, &error));
    cr_expect_str_eq(error.message, "/tmp: cannot be read: Is a directory");
    cr_expect(!sentences_read(&sentences, "/nonexistent/pairs.tsv", INT64_MAX, INT64_MAX, NULL));
}

static int compare_numbers(const void *a, const void *b)
{
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

/* The number with this English name, by counting through a table made once. */
static int number_named(const char *name)
{
    static char names[1000][NUMBER_NAME_SIZE];
    if (names[0][0] == '\0')
        for (int value = 0; value < 1000; value++) number_in_english(value, names[value]);
    char head[NUMBER_NAME_SIZE];
    strcpy(head, name);
    char *thousand = strstr(head, " thousand");
    const char *tail = thousand == NULL ? name : thousand[9] == '\0' ? "zero" : name + (thousand - head) + 10;
    if (thousand != NULL)
        *thousand = '\0';
    else
        strcpy(head, "zero");
    int value = 0;
    for (int i = 0; i < 1000; i++)
        value += (strcmp(names[i], head) == 0) * 1000 * i + (strcmp(names[i], tail) == 0) * i;
    return value;
}

Test(sentences, numbers_are_distinct_and_small_ones_are_covered)
{
    struct sentences sentences;
    cr_assert(sentences_from_numbers(&sentences, 6000, 11, 0, NULL));
    cr_assert_eq(sentences.count, 6000);
    cr_expect_eq(sentences.num_left_out, 0);
    cr_expect_str_eq(sentences.sources[0], "zero");
    int values[6000], num_of_digits[7] = {0}, num_small_in_last_half = 0;
    for (int i = 0; i < 6000; i++) {
        char french[NUMBER_NAME_SIZE], digits[16];
        values[i] = number_named(sentences.sources[i]);
        number_in_french(values[i], french);
        cr_expect_str_eq(sentences.targets[i], french);
        num_of_digits[sprintf(digits, "%d", values[i])]++;
        num_small_in_last_half += i >= 3000 && values[i] < 100;
    }
    cr_expect(num_small_in_last_half > 30 && num_small_in_last_half < 70, "%d of 100", num_small_in_last_half);
    qsort(values, 6000, sizeof *values, compare_numbers);
    for (int i = 1; i < 6000; i++) cr_expect_neq(values[i - 1], values[i]);
    cr_expect_eq(num_of_digits[1], 10);
    cr_expect_eq(num_of_digits[2], 90);
    cr_expect_gt(num_of_digits[3], 800);
    for (int digits = 4; digits <= 6; digits++)
        cr_expect(num_of_digits[digits] > 1500 && num_of_digits[digits] < 1850, "%d numbers of %d digits",
                  num_of_digits[digits], digits);
    sentences_free(&sentences);
}

Test(sentences, numbers_depend_on_the_seed_alone)
{
    struct sentences first, again, other;
    cr_assert(sentences_from_numbers(&first, 300, 11, 0, NULL));
    cr_assert(sentences_from_numbers(&again, 300, 11, 0, NULL));
    cr_assert(sentences_from_numbers(&other, 300, 11, 1, NULL));
    int num_equal_to_other = 0;
    for (int i = 0; i < 300; i++) {
        cr_expect_str_eq(first.sources[i], again.sources[i]);
        num_equal_to_other += strcmp(first.sources[i], other.sources[i]) == 0;
    }
    cr_expect_lt(num_equal_to_other, 30);
    sentences_free(&first);
    sentences_free(&again);
    sentences_free(&other);
}

Test(sentences, every_short_number_and_no_more)
{
    /* 196 numbers have names of one or two tokens in both languages. */
    struct sentences sentences;
    struct translate_error error = {""};
    cr_assert(sentences_from_numbers(&sentences, 196, 2, 0, &error), "%s", error.message);
    cr_expect_eq(sentences.count, 196);
    cr_expect_gt(sentences.num_left_out, 0);
    sentences_free(&sentences);
    cr_expect(!sentences_from_numbers(&sentences, 197, 2, 0, &error));
    cr_expect_not_null(strstr(error.message, "only 196 have names of at most 2 tokens"), "%s", error.message);
    cr_expect(!sentences_from_numbers(&sentences, NUMBER_LIMIT + 1, 11, 0, &error));
    cr_expect_not_null(strstr(error.message, "between 1 and 1000000"), "%s", error.message);
    cr_expect(!sentences_from_numbers(&sentences, 0, 11, 0, &error));
}

Test(sentences, reads_up_to_a_limit_and_leaves_out_long_ones)
{
    static const char bytes[] = "a\tb\nc c c\td\ne\tf f f\ng g\th h\ni\tj\nno tab, but behind the limit\n";
    struct sentences sentences;
    struct translate_error error = {""};
    char path[32];
    write_temporary_file(path, bytes, sizeof bytes - 1);
    cr_assert(sentences_read(&sentences, path, 3, 2, &error), "%s", error.message);
    cr_assert_eq(sentences.count, 3);
    cr_expect_eq(sentences.num_left_out, 2);
    cr_expect_str_eq(sentences.sources[1], "g g");
    cr_expect_str_eq(sentences.targets[1], "h h");
    cr_expect_str_eq(sentences.targets[2], "j");
    sentences_free(&sentences);
    cr_expect(!sentences_read(&sentences, path, 4, 2, &error));
    cr_expect_not_null(strstr(error.message, ": line 6: no tab"), "%s", error.message);
    unlink(path);
}
