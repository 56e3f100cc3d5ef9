/* Tests of examples/translate/numbers.c: number names. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"
#include "text.h"

struct named_number {
    int64_t value;
    const char *name;
};

static const struct named_number english[] = {
    {0, "zero"},
    {1, "one"},
    {10, "ten"},
    {13, "thirteen"},
    {15, "fifteen"},
    {18, "eighteen"},
    {19, "nineteen"},
    {20, "twenty"},
    {40, "forty"},
    {80, "eighty"},
    {99, "ninety-nine"},
    {100, "one hundred"},
    {101, "one hundred one"},
    {110, "one hundred ten"},
    {704, "seven hundred four"},
    {999, "nine hundred ninety-nine"},
    {1000, "one thousand"},
    {1001, "one thousand one"},
    {1100, "one thousand one hundred"},
    {12012, "twelve thousand twelve"},
    {80000, "eighty thousand"},
    {100000, "one hundred thousand"},
    {345678, "three hundred forty-five thousand six hundred seventy-eight"},
    {999999, "nine hundred ninety-nine thousand nine hundred ninety-nine"},
};

static const struct named_number french[] = {
    {0, "zéro"},
    {1, "un"},
    {2, "deux"},
    {11, "onze"},
    {16, "seize"},
    {17, "dix-sept"},
    {18, "dix-huit"},
    {19, "dix-neuf"},
    {20, "vingt"},
    {21, "vingt et un"},
    {22, "vingt-deux"},
    {30, "trente"},
    {31, "trente et un"},
    {41, "quarante et un"},
    {51, "cinquante et un"},
    {60, "soixante"},
    {61, "soixante et un"},
    {69, "soixante-neuf"},
    {70, "soixante-dix"},
    {71, "soixante et onze"},
    {72, "soixante-douze"},
    {76, "soixante-seize"},
    {77, "soixante-dix-sept"},
    {79, "soixante-dix-neuf"},
    {80, "quatre-vingts"},
    {81, "quatre-vingt-un"},
    {82, "quatre-vingt-deux"},
    {89, "quatre-vingt-neuf"},
    {90, "quatre-vingt-dix"},
    {91, "quatre-vingt-onze"},
    {96, "quatre-vingt-seize"},
    {97, "quatre-vingt-dix-sept"},
    {99, "quatre-vingt-dix-neuf"},
    {100, "cent"},
    {101, "cent un"},
    {111, "cent onze"},
    {121, "cent vingt et un"},
    {171, "cent soixante et onze"},
    {180, "cent quatre-vingts"},
    {181, "cent quatre-vingt-un"},
    {200, "deux cents"},
    {201, "deux cent un"},
    {280, "deux cent quatre-vingts"},
    {300, "trois cents"},
    {999, "neuf cent quatre-vingt-dix-neuf"},
    {1000, "mille"},
    {1001, "mille un"},
    {1080, "mille quatre-vingts"},
    {1100, "mille cent"},
    {1200, "mille deux cents"},
    {2000, "deux mille"},
    {2021, "deux mille vingt et un"},
    {10000, "dix mille"},
    {17000, "dix-sept mille"},
    {21000, "vingt et un mille"},
    {71000, "soixante et onze mille"},
    {71071, "soixante et onze mille soixante et onze"},
    {80000, "quatre-vingt mille"},
    {80080, "quatre-vingt mille quatre-vingts"},
    {81000, "quatre-vingt-un mille"},
    {90000, "quatre-vingt-dix mille"},
    {100000, "cent mille"},
    {101000, "cent un mille"},
    {101001, "cent un mille un"},
    {180000, "cent quatre-vingt mille"},
    {200000, "deux cent mille"},
    {200200, "deux cent mille deux cents"},
    {280000, "deux cent quatre-vingt mille"},
    {300080, "trois cent mille quatre-vingts"},
    {671671, "six cent soixante et onze mille six cent soixante et onze"},
    {999999, "neuf cent quatre-vingt-dix-neuf mille neuf cent quatre-vingt-dix-neuf"},
};

Test(numbers, english_names)
{
    char name[NUMBER_NAME_SIZE];
    for (size_t i = 0; i < sizeof english / sizeof *english; i++) {
        cr_assert(number_in_english(english[i].value, name));
        cr_expect_str_eq(name, english[i].name);
    }
}

Test(numbers, french_names)
{
    char name[NUMBER_NAME_SIZE];
    for (size_t i = 0; i < sizeof french / sizeof *french; i++) {
        cr_assert(number_in_french(french[i].value, name));
        cr_expect_str_eq(name, french[i].name);
    }
}

Test(numbers, no_name_outside_the_range)
{
    char name[NUMBER_NAME_SIZE] = "kept";
    cr_expect(!number_in_english(-1, name) && !number_in_english(1000000, name) && !number_in_english(INT64_MIN, name));
    cr_expect(!number_in_french(-1, name) && !number_in_french(1000000, name) && !number_in_french(INT64_MAX, name));
    cr_expect_str_eq(name, "kept");
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names all numbers: each name differs from all others, and the longest has this many words. */
static void expect_distinct(bool (*number_in_language)(int64_t, char *), size_t expected_words)
{
    char *names = malloc((size_t)NUMBER_LIMIT * NUMBER_NAME_SIZE);
    char **sorted = calloc(NUMBER_LIMIT, sizeof *sorted);
    size_t most_words = 0;
    cr_assert(names != NULL && sorted != NULL);
    for (int64_t value = 0; value < NUMBER_LIMIT; value++) {
        sorted[value] = names + value * NUMBER_NAME_SIZE;
        cr_assert(number_in_language(value, sorted[value]));
        cr_assert_lt(strlen(sorted[value]), NUMBER_NAME_SIZE);
        size_t num_words = text_count_tokens(sorted[value]);
        most_words = num_words > most_words ? num_words : most_words;
    }
    cr_expect_eq(most_words, expected_words, "%zu words", most_words);
    qsort(sorted, NUMBER_LIMIT, sizeof *sorted, compare_names);
    for (size_t i = 1; i < NUMBER_LIMIT; i++) cr_assert_str_neq(sorted[i - 1], sorted[i]);
    free(sorted);
    free(names);
}

Test(numbers, english_names_are_distinct)
{
    expect_distinct(number_in_english, 7);
}

Test(numbers, french_names_are_distinct)
{
    expect_distinct(number_in_french, 11);
}
