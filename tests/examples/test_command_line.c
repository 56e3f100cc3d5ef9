/* Tests of examples/common/command_line.c: option tables. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command_line.h"

static bool quiet, translating, seed_given;
static int64_t seed, epochs;
static double rate;
static const char *out, *text;
static int preset;
static const char *const presets[] = {"book", "small", NULL};

static const struct command_option options[] = {
    {.help = "Training:"},
    {.name = "--seed", .metavar = "N", .help = "seed of all random numbers", .flag = &seed_given, .integer = &seed},
    {.name = "--epochs",
     .metavar = "N",
     .help = "passes over the data",
     .integer = &epochs,
     .integer_range = {1, 1000}},
    {.name = "--learning-rate", .metavar = "RATE", .real = &rate, .real_range = {0, 10}, .help = "step length of Adam"},
    {.name = "--preset", .choice = &preset, .choices = presets, .help = "sizes of everything"},
    {.help = "Other:"},
    {.name = "--out", .metavar = "DIRECTORY", .string = &out, .help = "where every file goes"},
    {.name = "--translate",
     .metavar = "TEXT",
     .string = &text,
     .flag = &translating,
     .is_optional = true,
     .help =
         "translate a text, or the lines of standard input, with the model of an earlier run instead of training one"},
    {.name = "--quiet", .flag = &quiet, .help = "no progress"},
    {0}};

static const struct command_line line = {.program = "translate",
                                         .summary = "Learns to translate.",
                                         .options = options,
                                         .epilogue = "The end."};

static void set_defaults(void)
{
    quiet = translating = seed_given = false;
    seed = 7, epochs = 30, rate = 0.005, out = "out", text = NULL, preset = 1;
}

static void redirect(void)
{
    set_defaults();
    cr_redirect_stdout();
    cr_redirect_stderr();
}

TestSuite(command_line, .init = redirect);

/* Parses words separated by '|', which stay allocated: options point into them. */
static enum command_line_result parse(const char *words)
{
    static char copy[256];
    char *argv[16] = {"translate"};
    int argc = 1;
    strcpy(copy, words);
    for (char *word = copy, *end; *words && word; word = end ? end + 1 : NULL) {
        end = strchr(word, '|');
        if (end) *end = '\0';
        argv[argc++] = word;
    }
    return command_line_parse(&line, argc, argv);
}

static void expect_wrong(const char *words, const char *sentence)
{
    char expected[256];
    snprintf(expected, sizeof expected, "translate: %s (translate --help lists all options)\n", sentence);
    cr_expect_eq(parse(words), COMMAND_LINE_WRONG);
    fflush(stderr);
    cr_assert_stderr_eq_str(expected);
}

Test(command_line, nothing_given_keeps_the_defaults)
{
    cr_expect_eq(parse(""), COMMAND_LINE_RUN);
    cr_expect(!quiet && !translating && !seed_given && seed == 7 && epochs == 30 && rate == 0.005 && !text &&
              preset == 1);
    cr_expect_str_eq(out, "out");
}

Test(command_line, values_apart_and_after_an_equals_sign)
{
    cr_expect_eq(parse("--seed|-12|--epochs=1000|--learning-rate|1e-3|--preset=book|--out=a=b|--quiet"),
                 COMMAND_LINE_RUN);
    cr_expect(seed_given && quiet && seed == -12 && epochs == 1000 && rate == 1e-3 && preset == 0);
    cr_expect_str_eq(out, "a=b");
}

Test(command_line, the_last_of_several_counts)
{
    cr_expect_eq(parse("--seed|1|--seed=2"), COMMAND_LINE_RUN);
    cr_expect_eq(seed, 2);
}

Test(command_line, the_first_of_some_options_that_was_given)
{
    const char *given = NULL;
    const struct command_option some[] = {
        {.name = "--quiet", .flag = &quiet},
        {.name = "--out", .among = &given, .string = &out},
        {.name = "--seed", .among = &given, .integer = &seed},
        {0},
    };
    const struct command_line these = {.program = "translate", .options = some};
    char *none[] = {"translate", "--quiet"}, *two[] = {"translate", "--quiet", "--seed=1", "--out=a"};
    cr_expect_eq(command_line_parse(&these, 2, none), COMMAND_LINE_RUN);
    cr_expect_null(given);
    cr_expect_eq(command_line_parse(&these, 4, two), COMMAND_LINE_RUN);
    cr_expect_str_eq(given, "--seed");
}

Test(command_line, whole_range_of_integers)
{
    cr_expect_eq(parse("--seed=9223372036854775807"), COMMAND_LINE_RUN);
    cr_expect_eq(seed, INT64_MAX);
    cr_expect_eq(parse("--seed=-9223372036854775808"), COMMAND_LINE_RUN);
    cr_expect_eq(seed, INT64_MIN);
}

Test(command_line, optional_values)
{
    cr_expect_eq(parse("--translate"), COMMAND_LINE_RUN);
    cr_expect(translating && !text);
    cr_expect_eq(parse("--translate|seven hundred four"), COMMAND_LINE_RUN);
    cr_expect_str_eq(text, "seven hundred four");
    set_defaults();
    cr_expect_eq(parse("--translate|--quiet"), COMMAND_LINE_RUN);
    cr_expect(translating && quiet && !text);
    cr_expect_eq(parse("--translate=--quiet"), COMMAND_LINE_RUN);
    cr_expect_str_eq(text, "--quiet");
    cr_expect_eq(parse("--out|-"), COMMAND_LINE_RUN);
    cr_expect_str_eq(out, "-");
}

/* Each output is read once in a test process: one sentence for each test. */
#define WRONG(name, words, sentence)                                                                                   \
    Test(command_line, name)                                                                                           \
    {                                                                                                                  \
        expect_wrong(words, sentence);                                                                                 \
    }

WRONG(unknown, "--colour|red", "there is no option '--colour'")
WRONG(unknown_near, "--sede=1", "there is no option '--sede'; did you mean '--seed'?")
WRONG(unknown_one_dash, "-seed|1", "there is no option '-seed'; did you mean '--seed'?")
WRONG(unknown_beginning, "--learn|1", "there is no option '--learn'; did you mean '--learning-rate'?")
WRONG(unknown_underscore, "--learning_rate=1", "there is no option '--learning_rate'; did you mean '--learning-rate'?")
WRONG(unknown_help, "--hlep", "there is no option '--hlep'; did you mean '--help'?")
WRONG(unknown_dashes, "--", "there is no option '--'")
WRONG(stray, "data.tsv", "'data.tsv' stands alone, but every argument belongs to an option")
WRONG(stray_after_flag, "--quiet|yes", "'yes' stands alone, but every argument belongs to an option")
WRONG(missing_number, "--seed", "--seed needs a value: --seed N")
WRONG(missing_before_option, "--epochs|--seed|1", "--epochs needs a value: --epochs N")
WRONG(missing_choice, "--preset", "--preset needs a value: --preset book|small")
WRONG(missing_string, "--out|--quiet", "--out needs a value: --out DIRECTORY")
WRONG(empty_string, "--out=", "--out needs a value that is not empty")
WRONG(flag_with_value, "--quiet=1", "--quiet takes no value, but has '1'")
WRONG(help_with_value, "--help=3", "--help takes no value, but has '3'")
WRONG(integer_garbage, "--seed|12x", "--seed needs a whole number, not '12x'")
WRONG(integer_fraction, "--seed|1.5", "--seed needs a whole number, not '1.5'")
WRONG(integer_empty, "--seed=", "--seed needs a whole number, not ''")
WRONG(integer_space, "--seed= 1", "--seed needs a whole number, not ' 1'")
WRONG(integer_sign, "--seed=-", "--seed needs a whole number, not '-'")
WRONG(integer_large, "--seed=9223372036854775808", "--seed needs a whole number, not '9223372036854775808'")
WRONG(integer_below, "--epochs|0", "--epochs needs a whole number from 1 to 1000, not '0'")
WRONG(integer_above, "--epochs|1001", "--epochs needs a whole number from 1 to 1000, not '1001'")
WRONG(real_garbage, "--learning-rate|0.1f", "--learning-rate needs a number from 0 to 10, not '0.1f'")
WRONG(real_nan, "--learning-rate|nan", "--learning-rate needs a number from 0 to 10, not 'nan'")
WRONG(real_large, "--learning-rate|1e999", "--learning-rate needs a number from 0 to 10, not '1e999'")
WRONG(real_below, "--learning-rate|-0.1", "--learning-rate needs a number from 0 to 10, not '-0.1'")
WRONG(choice_unknown, "--preset|tiny", "--preset needs one of book|small, not 'tiny'")
WRONG(choice_near, "--preset|boko", "--preset has no choice 'boko'; did you mean 'book'?")

Test(command_line, a_wrong_value_changes_nothing_else)
{
    cr_expect_eq(parse("--seed|x"), COMMAND_LINE_WRONG);
    cr_expect(seed == 7 && !seed_given);
}

Test(command_line, help_lists_everything_with_defaults)
{
    cr_expect_eq(parse("--seed|99|--help|--nonsense"), COMMAND_LINE_HELP);
    cr_expect_eq(seed, 7);
    fflush(stdout);
    cr_assert_stdout_eq_str("usage: translate [OPTION]...\n"
                            "\n"
                            "Learns to translate.\n"
                            "\n"
                            "Training:\n"
                            "  --seed N              seed of all random numbers (default: 7)\n"
                            "  --epochs N            passes over the data (default: 30)\n"
                            "  --learning-rate RATE  step length of Adam (default: 0.005)\n"
                            "  --preset book|small   sizes of everything (default: small)\n"
                            "\n"
                            "Other:\n"
                            "  --out DIRECTORY       where every file goes (default: out)\n"
                            "  --translate [TEXT]    translate a text, or the lines of standard input, with\n"
                            "                        the model of an earlier run instead of training one\n"
                            "  --quiet               no progress\n"
                            "  --help                print this text\n"
                            "\n"
                            "The end.\n");
}

Test(command_line, a_program_without_options)
{
    const struct command_line bare = {.program = "layer", .summary = "Learns a wave."};
    char *ask[] = {"layer", "--help", NULL}, *wrong[] = {"layer", "--sed", NULL}, *none[] = {"layer", NULL};
    cr_expect_eq(command_line_parse(&bare, 1, none), COMMAND_LINE_RUN);
    cr_expect_eq(command_line_parse(&bare, 2, ask), COMMAND_LINE_HELP);
    cr_expect_eq(command_line_parse(&bare, 2, wrong), COMMAND_LINE_WRONG);
    fflush(stdout), fflush(stderr);
    cr_assert_stdout_eq_str("usage: layer\n\nLearns a wave.\n\n  --help  print this text\n");
    cr_assert_stderr_eq_str("layer: there is no option '--sed' (layer --help lists all options)\n");
}
