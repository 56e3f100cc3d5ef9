/* Runs the tests of a program one after the other, each in a process of its own, and counts as Criterion does. */
#include <criterion/redirect.h>

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "apart.h"

enum { exit_skipped = 77 };

static plain_test *tests;
static jmp_buf end_of_test;
static int failures;

void plain_add(plain_test *test)
{
    plain_test **last = &tests;
    while (*last) last = &(*last)->next;
    *last = test;
}

bool plain_check(bool good, const char *file, int line, const char *what, const char *format, ...)
{
    if (good) return true;
    failures++;
    fprintf(stderr, "%s:%d: %s:", file, line, what);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return false;
}

_Noreturn void plain_leave(bool skipped)
{
    longjmp(end_of_test, skipped ? exit_skipped : 1);
}

static const plain_test *suite_of(const plain_test *test)
{
    for (const plain_test *other = tests; other; other = other->next)
        if (!other->run && strcmp(other->suite, test->suite) == 0) return other;
    return test;
}

void plain_redirect(FILE *stream)
{
    FILE *kept = tmpfile();
    fflush(stream);
    if (!kept || dup2(fileno(kept), fileno(stream)) < 0) perror("redirect");
}

bool plain_was_written(FILE *stream, const char *expected)
{
    static char text[1 << 16];
    fflush(stream);
    lseek(fileno(stream), 0, SEEK_SET);
    const ssize_t size = read(fileno(stream), text, sizeof text - 1);
    lseek(fileno(stream), 0, SEEK_END);
    return size == (ssize_t)strlen(expected) && memcmp(text, expected, (size_t)size) == 0;
}

static void call(void (*function)(void), void (*otherwise)(void))
{
    if (function)
        function();
    else if (otherwise)
        otherwise();
}

/* In its process: the exit status. */
static int run(const plain_test *test)
{
    const int left = setjmp(end_of_test);
    if (left == exit_skipped) return exit_skipped;
    if (left == 0) {
        call(test->options.init, suite_of(test)->options.init);
        test->run();
        call(test->options.fini, suite_of(test)->options.fini);
    }
    return failures > 0;
}

static int run_alone(const char *suite, const char *name)
{
    for (const plain_test *test = tests; test; test = test->next)
        if (test->run && strcmp(test->suite, suite) == 0 && strcmp(test->name, name) == 0) return run(test);
    return -1;
}

static bool is_right(const plain_options *expected, const plain_end *end)
{
    if (end->signal || expected->signal) return end->signal == expected->signal;
    return end->status == expected->exit_code || end->status == exit_skipped;
}

int main(int count, char **arguments)
{
    if (count == 4 && strcmp(arguments[1], "--alone") == 0) return run_alone(arguments[2], arguments[3]);
    int all = 0, good = 0, crashed = 0;
    for (const plain_test *test = tests; test; test = test->next) {
        if (!test->run || (count > 1 && !strstr(test->name, arguments[1]))) continue;
        const plain_end end = plain_run_apart(test, run, arguments[0]);
        const bool passed = is_right(&test->options, &end);
        if (!passed) fprintf(stderr, "[FAIL] %s::%s\n", test->suite, test->name);
        all++;
        good += passed;
        crashed += !passed && end.signal;
    }
    printf("Synthesis: Tested: %d | Passing: %d | Failing: %d | Crashing: %d\n", all, good, all - good, crashed);
    return good != all;
}
