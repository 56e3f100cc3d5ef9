/* What the tests use of Criterion, in a few lines: for places where Criterion does not run (ThreadSanitizer, other
 * machines). */
#ifndef RAPT_TESTS_PLAIN_CRITERION_H
#define RAPT_TESTS_PLAIN_CRITERION_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt/base.h>

#ifdef _WIN32
#define setenv(name, value, replaces) _putenv_s(name, value)
#define unsetenv(name) _putenv_s(name, "")
#endif

typedef struct plain_options {
    void (*init)(void), (*fini)(void);
    int exit_code, signal; /* how the test is to end, if not by returning */
    double timeout;        /* in seconds; here it is meson that has patience or not */
} plain_options;

typedef struct plain_test {
    const char *suite, *name;
    void (*run)(void);
    plain_options options;
    struct plain_test *next;
} plain_test;

/* Lists a test, or what the tests of a suite begin and end with (run is then NULL). */
void plain_add(plain_test *test);

/* A statement about the test that runs: counts, prints when it is false, and returns it. */
bool plain_check(bool good, const char *file, int line, const char *what, const char *format, ...)
    __attribute__((format(RAPT_PRINTF, 5, 6)));

/* Leaves the test that runs. */
_Noreturn void plain_leave(bool skipped);

#define PLAIN_ADD_(test_name, function, id, ...)                                                                       \
    static __attribute__((constructor)) void plain_add_##id(void)                                                      \
    {                                                                                                                  \
        static plain_test test = {.name = test_name, .run = function, .options = {__VA_ARGS__}};                       \
        test.suite = id##_suite;                                                                                       \
        plain_add(&test);                                                                                              \
    }

#define Test(suite_name, test_name, ...)                                                                               \
    static const char *const suite_name##_##test_name##_suite = #suite_name;                                           \
    static void suite_name##_##test_name##_run(void);                                                                  \
    PLAIN_ADD_(#test_name, suite_name##_##test_name##_run, suite_name##_##test_name, __VA_ARGS__)                      \
    static void suite_name##_##test_name##_run(void)

#define TestSuite(suite_name, ...)                                                                                     \
    static const char *const suite_name##_all_suite = #suite_name;                                                     \
    PLAIN_ADD_("", NULL, suite_name##_all, __VA_ARGS__)

/* The text of a failure: the caller's, if there is one. */
#define PLAIN_CHECK_(good, what, ...) plain_check((good), __FILE__, __LINE__, what, " " __VA_ARGS__)
#define PLAIN_MUST_(good, what, ...)                                                                                   \
    do {                                                                                                               \
        if (!PLAIN_CHECK_(good, what, __VA_ARGS__)) plain_leave(false);                                                \
    } while (0)

#define cr_expect(good, ...) PLAIN_CHECK_(good, #good, __VA_ARGS__)
#define cr_expect_not(bad, ...) PLAIN_CHECK_(!(bad), "not " #bad, __VA_ARGS__)
#define cr_expect_null(p, ...) PLAIN_CHECK_((p) == NULL, #p " is NULL", __VA_ARGS__)
#define cr_expect_not_null(p, ...) PLAIN_CHECK_((p) != NULL, #p " is not NULL", __VA_ARGS__)
#define cr_expect_eq(a, b, ...) PLAIN_CHECK_((a) == (b), #a " == " #b, __VA_ARGS__)
#define cr_expect_neq(a, b, ...) PLAIN_CHECK_((a) != (b), #a " != " #b, __VA_ARGS__)
#define cr_expect_lt(a, b, ...) PLAIN_CHECK_((a) < (b), #a " < " #b, __VA_ARGS__)
#define cr_expect_leq(a, b, ...) PLAIN_CHECK_((a) <= (b), #a " <= " #b, __VA_ARGS__)
#define cr_expect_gt(a, b, ...) PLAIN_CHECK_((a) > (b), #a " > " #b, __VA_ARGS__)
#define cr_expect_geq(a, b, ...) PLAIN_CHECK_((a) >= (b), #a " >= " #b, __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...) PLAIN_CHECK_(strcmp((a), (b)) == 0, #a " is " #b, __VA_ARGS__)
#define cr_expect_str_neq(a, b, ...) PLAIN_CHECK_(strcmp((a), (b)) != 0, #a " is not " #b, __VA_ARGS__)
#define cr_expect_str_empty(a, ...) PLAIN_CHECK_((a)[0] == 0, #a " is empty", __VA_ARGS__)
#define cr_expect_arr_eq(a, b, n, ...) PLAIN_CHECK_(memcmp((a), (b), (n)) == 0, #a " is " #b, __VA_ARGS__)
#define cr_expect_arr_neq(a, b, n, ...) PLAIN_CHECK_(memcmp((a), (b), (n)) != 0, #a " is not " #b, __VA_ARGS__)
#define cr_expect_float_eq(a, b, most, ...)                                                                            \
    PLAIN_CHECK_((a) - (b) <= (most) && (b) - (a) <= (most), #a " is nearly " #b, __VA_ARGS__)
#define cr_expect_fail(...) PLAIN_CHECK_(false, "never here", __VA_ARGS__)

#define cr_assert(good, ...) PLAIN_MUST_(good, #good, __VA_ARGS__)
#define cr_assert_not(bad, ...) PLAIN_MUST_(!(bad), "not " #bad, __VA_ARGS__)
#define cr_assert_null(p, ...) PLAIN_MUST_((p) == NULL, #p " is NULL", __VA_ARGS__)
#define cr_assert_not_null(p, ...) PLAIN_MUST_((p) != NULL, #p " is not NULL", __VA_ARGS__)
#define cr_assert_eq(a, b, ...) PLAIN_MUST_((a) == (b), #a " == " #b, __VA_ARGS__)
#define cr_assert_lt(a, b, ...) PLAIN_MUST_((a) < (b), #a " < " #b, __VA_ARGS__)
#define cr_assert_leq(a, b, ...) PLAIN_MUST_((a) <= (b), #a " <= " #b, __VA_ARGS__)
#define cr_assert_geq(a, b, ...) PLAIN_MUST_((a) >= (b), #a " >= " #b, __VA_ARGS__)
#define cr_assert_str_neq(a, b, ...) PLAIN_MUST_(strcmp((a), (b)) != 0, #a " is not " #b, __VA_ARGS__)
#define cr_assert_float_eq(a, b, most, ...)                                                                            \
    PLAIN_MUST_((a) - (b) <= (most) && (b) - (a) <= (most), #a " is nearly " #b, __VA_ARGS__)
#define cr_assert_fail(...) PLAIN_MUST_(false, "never here", __VA_ARGS__)

#define cr_skip_test(...) (printf("skipped: " __VA_ARGS__), printf("\n"), plain_leave(true))
#define cr_log_info(...) (printf(__VA_ARGS__), printf("\n"))

#endif
