/* The streams of a test, kept to be compared. */
#ifndef RAPT_TESTS_PLAIN_REDIRECT_H
#define RAPT_TESTS_PLAIN_REDIRECT_H

#include <criterion/criterion.h>

/* What is written to the stream from now on is kept. */
void plain_redirect(FILE *stream);

/* Was that written since? */
bool plain_was_written(FILE *stream, const char *expected);

#define cr_redirect_stdout() plain_redirect(stdout)
#define cr_redirect_stderr() plain_redirect(stderr)
#define cr_assert_stdout_eq_str(expected) PLAIN_MUST_(plain_was_written(stdout, expected), "standard output")
#define cr_assert_stderr_eq_str(expected) PLAIN_MUST_(plain_was_written(stderr, expected), "standard error")

#endif
