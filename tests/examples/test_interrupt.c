/* Tests of examples/common/interrupt.c: how a training run is stopped. */
#include <criterion/criterion.h>
#include <signal.h>
#include <unistd.h>

#include "interrupt.h"

Test(interrupt, the_first_signal_is_noted)
{
    interrupt_watch();
    cr_expect_eq(interrupt_signal(), 0);
    raise(SIGINT);
    cr_expect_eq(interrupt_signal(), SIGINT);
    interrupt_watch();
    cr_expect_eq(interrupt_signal(), 0);
    raise(SIGTERM);
    cr_expect_eq(interrupt_signal(), SIGTERM);
}

Test(interrupt, the_second_signal_ends_the_program, .signal = SIGTERM)
{
    interrupt_watch();
    raise(SIGINT);
    raise(SIGTERM);
}

Test(interrupt, released_signals_end_the_program, .signal = SIGINT)
{
    interrupt_watch();
    interrupt_release();
    raise(SIGINT);
}

Test(interrupt, ignored_signals_stay_ignored)
{
    signal(SIGHUP, SIG_IGN);
    interrupt_watch();
    raise(SIGHUP);
    cr_expect_eq(interrupt_signal(), 0);
    interrupt_release();
    raise(SIGHUP);
}

Test(interrupt, a_closed_pipe_does_not_end_a_watched_run)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    close(ends[0]);
    interrupt_watch();
    cr_expect_eq(write(ends[1], "x", 1), -1);
}

Test(interrupt, a_closed_pipe_ends_a_released_run, .signal = SIGPIPE)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    close(ends[0]);
    interrupt_watch();
    interrupt_release();
    cr_expect_eq(write(ends[1], "x", 1), 1);
}
