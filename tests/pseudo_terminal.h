/* A terminal of a size of the test's choice, and what is written to it. */
#ifndef RAPT_TESTS_PSEUDO_TERMINAL_H
#define RAPT_TESTS_PSEUDO_TERMINAL_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

static inline void resize_terminal(FILE *terminal, unsigned short columns)
{
    const struct winsize size = {.ws_row = 24, .ws_col = columns};
    cr_assert_eq(ioctl(fileno(terminal), TIOCSWINSZ, &size), 0);
}

/* *reader gets what is written; both are the caller's to close. Skips the test where there are no such terminals. */
static inline FILE *open_terminal(unsigned short columns, int *reader)
{
    *reader = posix_openpt(O_RDWR | O_NOCTTY);
    if (*reader < 0 || grantpt(*reader) != 0 || unlockpt(*reader) != 0)
        cr_skip_test("this machine has no pseudo-terminals");
    FILE *terminal = fdopen(open(ptsname(*reader), O_RDWR | O_NOCTTY), "r+");
    cr_assert_not_null(terminal);
    resize_terminal(terminal, columns);
    return terminal;
}

#endif
