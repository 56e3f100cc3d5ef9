/* Parsing of command lines. */
#include "command_line.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "system.h"

/* The first row of the table; that of a program without options has only its end. */
static const struct command_option *rows(const struct command_line *line)
{
    static const struct command_option none;
    return line->options ? line->options : &none;
}

/* Does another process speak for this one? mpirun of OpenMPI, of MPICH and others tell each its number. */
static bool is_silent(void)
{
    static const char *const numbers[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const char *number = getenv(numbers[i]);
        if (number) return strcmp(number, "0") != 0;
    }
    return false;
}

static int complain(const char *program, const char *format, va_list arguments, const char *end)
    __attribute__((format(printf, 2, 0), nonnull(2)));

static int complain(const char *program, const char *format, va_list arguments, const char *end)
{
    if (is_silent()) return COMMAND_LINE_HELP;
    fprintf(stderr, "%s: ", program);
    vfprintf(stderr, format, arguments);
    fputs(end, stderr);
    return COMMAND_LINE_WRONG;
}

int command_line_wrong(const char *program, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int status = complain(program, format, arguments, "\n");
    va_end(arguments);
    return status;
}

static bool wrong(const struct command_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool wrong(const struct command_line *line, const char *format, ...)
{
    char end[128];
    va_list arguments;
    snprintf(end, sizeof end, " (%s --help lists all options)\n", line->program);
    va_start(arguments, format);
    complain(line->program, format, arguments, end);
    va_end(arguments);
    return false;
}

/* How many characters must be inserted, deleted, replaced or swapped with the next one to turn one name into the other
   (optimal string alignment); names of more than 63 characters are far from all others. */
static int name_distance(const char *a, const char *b)
{
    enum { LIMIT = 64 };
    size_t rows = strlen(a), columns = strlen(b);
    if (rows >= LIMIT || columns >= LIMIT) return LIMIT;
    int distance[LIMIT][LIMIT];
    for (size_t i = 0; i <= rows; i++) {
        for (size_t j = 0; j <= columns; j++) {
            int best = (int)(i + j);
            if (i > 0 && j > 0) {
                best = distance[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
                if (distance[i - 1][j] + 1 < best) best = distance[i - 1][j] + 1;
                if (distance[i][j - 1] + 1 < best) best = distance[i][j - 1] + 1;
                bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                if (swapped && distance[i - 2][j - 2] + 1 < best) best = distance[i - 2][j - 2] + 1;
            }
            distance[i][j] = best;
        }
    }
    return distance[rows][columns];
}

static bool is_near(const char *given, const char *name, int *best)
{
    int distance = name_distance(given, name), length = (int)strlen(name);
    /* A beginning is near, too: --learn for --learning-rate. */
    if (strlen(given) >= 4 && strncmp(given, name, strlen(given)) == 0) distance = 1;
    if (distance >= *best || distance > 1 + length / 5) return false;
    *best = distance;
    return true;
}

static bool wrong_name(const struct command_line *line, const char *given)
{
    if (given[0] != '-') return wrong(line, "'%s' stands alone, but every argument belongs to an option", given);
    const char *nearest = NULL;
    int best = 64;
    if (is_near(given, "--help", &best)) nearest = "--help";
    for (const struct command_option *option = rows(line); option->name || option->help; option++)
        if (option->name && is_near(given, option->name, &best)) nearest = option->name;
    if (nearest) return wrong(line, "there is no option '%s'; did you mean '%s'?", given, nearest);
    return wrong(line, "there is no option '%s'", given);
}

static bool takes_number(const struct command_option *option)
{
    return option->integer || option->real;
}

static bool takes_value(const struct command_option *option)
{
    return takes_number(option) || option->string || option->choice;
}

/* " from 1 to 8", " of at least 1" or "", for sentences about what an option needs. */
static void describe_range(const struct command_option *option, char *text, size_t size)
{
    const int64_t *integers = option->integer_range;
    const double *reals = option->real_range;
    text[0] = '\0';
    if (option->integer && integers[1] == INT64_MAX)
        snprintf(text, size, " of at least %" PRId64, integers[0]);
    else if (option->integer && (integers[0] != 0 || integers[1] != 0))
        snprintf(text, size, " from %" PRId64 " to %" PRId64, integers[0], integers[1]);
    else if (option->real && isinf(reals[1]))
        snprintf(text, size, " of at least %g", reals[0]);
    else if (option->real && (reals[0] < 0 || reals[1] > 0))
        snprintf(text, size, " from %g to %g", reals[0], reals[1]);
}

static bool set_number(const struct command_line *line, const struct command_option *option, const char *value)
{
    char range[96], *end;
    describe_range(option, range, sizeof range);
    const char *characters = option->integer ? "+-0123456789" : "+-0123456789.eE"; /* no spaces, hexadecimals, nan */
    bool number = value[0] != '\0' && value[strspn(value, characters)] == '\0', inside;
    errno = 0;
    if (option->integer) {
        int64_t integer = strtoimax(value, &end, 10);
        inside =
            errno == 0 && (!range[0] || (integer >= option->integer_range[0] && integer <= option->integer_range[1]));
        if (number && *end == '\0' && inside) return *option->integer = integer, true;
    } else {
        double real = strtod(value, &end);
        inside = isfinite(real) && (!range[0] || (real >= option->real_range[0] && real <= option->real_range[1]));
        if (number && *end == '\0' && inside) return *option->real = real, true;
    }
    return wrong(line, "%s needs a %snumber%s, not '%s'", option->name, option->integer ? "whole " : "", range, value);
}

/* "a|b|c" */
static void join_choices(const struct command_option *option, char *text, size_t size)
{
    size_t used = 0;
    for (int i = 0; option->choices[i] && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? "|" : "", option->choices[i]);
}

static bool set_choice(const struct command_line *line, const struct command_option *option, const char *value)
{
    int nearest = -1, best = 64;
    for (int i = 0; option->choices[i]; i++) {
        if (strcmp(value, option->choices[i]) == 0) return *option->choice = i, true;
        if (is_near(value, option->choices[i], &best)) nearest = i;
    }
    if (nearest >= 0)
        return wrong(line, "%s has no choice '%s'; did you mean '%s'?", option->name, value, option->choices[nearest]);
    char choices[256] = "";
    join_choices(option, choices, sizeof choices);
    return wrong(line, "%s needs one of %s, not '%s'", option->name, choices, value);
}

static bool set_value(const struct command_line *line, const struct command_option *option, const char *value)
{
    if (takes_number(option)) return set_number(line, option, value);
    if (option->choice) return set_choice(line, option, value);
    if (value[0] == '\0') return wrong(line, "%s needs a value that is not empty", option->name);
    *option->string = value;
    return true;
}

/* The option whose name is the first `length` bytes of the argument. */
static const struct command_option *find(const struct command_line *line, const char *argument, size_t length)
{
    for (const struct command_option *option = rows(line); option->name || option->help; option++)
        if (option->name && strlen(option->name) == length && memcmp(option->name, argument, length) == 0)
            return option;
    return NULL;
}

static void describe_value(const struct command_option *option, char *text, size_t size)
{
    if (option->metavar || !option->choice)
        snprintf(text, size, "%s", option->metavar ? option->metavar : "VALUE");
    else
        join_choices(option, text, size);
}

/* Takes the option at argv[*i], and its value, which may be the next argument; moves *i to the last one taken. */
static bool take(const struct command_line *line, int argc, char **argv, int *i)
{
    const char *argument = argv[*i], *equals = strchr(argument, '=');
    size_t length = equals ? (size_t)(equals - argument) : strlen(argument);
    const struct command_option *option = find(line, argument, length);
    if (!option) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), argument);
        if (strcmp(name, "--help") == 0) return wrong(line, "--help takes no value, but has '%s'", equals + 1);
        return wrong_name(line, name);
    }
    if (equals && !takes_value(option)) return wrong(line, "%s takes no value, but has '%s'", option->name, equals + 1);
    const char *value = equals ? equals + 1 : NULL;
    if (!equals && takes_value(option) && *i + 1 < argc) {
        const char *next = argv[*i + 1];
        bool is_value = next[0] != '-' || next[1] == '\0' || (takes_number(option) && next[1] != '-');
        if (is_value) value = next, ++*i;
    }
    if (!value && takes_value(option) && !option->is_optional) {
        char metavar[128];
        describe_value(option, metavar, sizeof metavar);
        return wrong(line, "%s needs a value: %s %s", option->name, option->name, metavar);
    }
    if (value && !set_value(line, option, value)) return false;
    if (option->flag) *option->flag = true;
    if (option->among && !*option->among) *option->among = option->name;
    return true;
}

static const char *program_name;

/* At the end of the program: what was printed must have arrived. */
static void close_output(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout) && (fclose(stdout) == 0 || errno == EBADF)) return;
    fprintf(stderr, "%s: cannot write to standard output%s%s\n", program_name, errno ? ": " : "",
            errno ? strerror(errno) : "");
    _exit(EXIT_FAILURE);
}

enum command_line_result command_line_parse(const struct command_line *line, int argc, char **argv)
{
    system_fill_streams();
    if (!program_name) atexit(close_output);
    program_name = line->program;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") != 0 && strcmp(argv[i], "-h") != 0) continue;
        if (!is_silent()) command_line_help(line, stdout);
        return COMMAND_LINE_HELP;
    }
    for (int i = 1; i < argc; i++)
        if (!take(line, argc, argv, &i)) return is_silent() ? COMMAND_LINE_HELP : COMMAND_LINE_WRONG;
    return COMMAND_LINE_RUN;
}

enum { HELP_WIDTH = 80, WIDEST_NAMES = 30 };

/* "  --name VALUE" */
static int describe_option(const struct command_option *option, char *text, size_t size)
{
    char value[128];
    if (!takes_value(option)) return snprintf(text, size, "  %s", option->name);
    describe_value(option, value, sizeof value);
    return snprintf(text, size, option->is_optional ? "  %s [%s]" : "  %s %s", option->name, value);
}

/* Where a range is given, what lies outside of it is no default but the mark of an option that was not given. */
static bool is_within(double value, double smallest, double largest)
{
    return (smallest == 0 && largest == 0) || (value >= smallest && value <= largest);
}

static void describe_default(const struct command_option *option, char *text, size_t size)
{
    const int64_t *integers = option->integer_range;
    const double *reals = option->real_range;
    text[0] = '\0';
    if (option->integer && is_within((double)*option->integer, (double)integers[0], (double)integers[1]))
        snprintf(text, size, " (default: %" PRId64 ")", *option->integer);
    if (option->real && is_within(*option->real, reals[0], reals[1]))
        snprintf(text, size, " (default: %g)", *option->real);
    if (option->string && *option->string) snprintf(text, size, " (default: %s)", *option->string);
    if (option->choice && *option->choice >= 0)
        snprintf(text, size, " (default: %s)", option->choices[*option->choice]);
}

/* Breaks the text between words; later lines start at the indent. Returns the column where it ended. */
static int print_wrapped(FILE *stream, const char *text, int indent, int column)
{
    while (*text) {
        int spaces = (int)strspn(text, " "), word = (int)strcspn(text + spaces, " ");
        if (column > indent && column + spaces + word > HELP_WIDTH) {
            fprintf(stream, "\n%*s", indent, "");
            column = indent;
            text += spaces, spaces = 0;
        }
        fprintf(stream, "%.*s", spaces + word, text);
        column += spaces + word;
        text += spaces + word;
    }
    return column;
}

void command_line_help(const struct command_line *line, FILE *stream)
{
    char text[512];
    int indent = (int)strlen("  --help");
    for (const struct command_option *option = rows(line); option->name || option->help; option++) {
        int width = option->name ? describe_option(option, text, sizeof text) : 0;
        if (width > indent && width <= WIDEST_NAMES) indent = width;
    }
    indent += 2;
    fprintf(stream, "usage: %s%s\n\n", line->program, line->options ? " [OPTION]..." : "");
    print_wrapped(stream, line->summary, 0, 0);
    fputs("\n\n", stream);
    for (const struct command_option *option = rows(line); option->name || option->help; option++) {
        if (!option->name) {
            fprintf(stream, "%s%s\n", option == rows(line) ? "" : "\n", option->help);
            continue;
        }
        int width = describe_option(option, text, sizeof text);
        fprintf(stream, width + 2 > indent ? "%s\n%*s" : "%s%*s", text, width + 2 > indent ? indent : indent - width,
                "");
        int column = print_wrapped(stream, option->help ? option->help : "", indent, indent);
        describe_default(option, text, sizeof text);
        print_wrapped(stream, text, indent, column);
        fputc('\n', stream);
    }
    fprintf(stream, "  %-*sprint this text\n", indent - 2, "--help");
    if (line->epilogue) fprintf(stream, "\n%s\n", line->epilogue);
}

struct command_option command_line_seed(int64_t *seed)
{
    return (struct command_option){"--seed", .metavar = "N", .help = "of all that is random", .integer = seed,
                                   .integer_range = {0, INT64_MAX}};
}

struct command_option command_line_threads(int64_t *threads)
{
    return (struct command_option){"--threads", .metavar = "N", .help = "threads; default: one for each processor",
                                   .integer = threads, .integer_range = {1, 1024}};
}

struct command_option command_line_parts(int64_t *parts)
{
    return (struct command_option){"--parts", .metavar = "N",
                                   .help =
                                       "cut batches in N: with mpirun the same bits for 1, 2, 4 ... ranks that N is "
                                       "a multiple of; without it one part for each rank",
                                   .integer = parts, .integer_range = {1, 65536}};
}
