/* The signals that end a run. */
#include "interrupt.h"

#include <signal.h>
#include <stddef.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { NUM_SIGNALS = sizeof signals / sizeof signals[0] };

static volatile sig_atomic_t received, watched[NUM_SIGNALS];
static bool watches_pipe;

static void set_action(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(number, &action, NULL);
}

static void reset(void)
{
    for (int i = 0; i < NUM_SIGNALS; i++) {
        if (watched[i]) set_action(signals[i], SIG_DFL);
        watched[i] = 0;
    }
}

static void receive(int number)
{
    received = number;
    reset();
}

static bool is_ignored(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

void interrupt_watch(void)
{
    received = 0;
    for (int i = 0; i < NUM_SIGNALS; i++) {
        watched[i] = !is_ignored(signals[i]);
        if (watched[i]) set_action(signals[i], receive);
    }
    watches_pipe = !is_ignored(SIGPIPE);
    set_action(SIGPIPE, SIG_IGN);
}

int interrupt_signal(void)
{
    return received;
}

void interrupt_release(void)
{
    reset();
    if (watches_pipe) set_action(SIGPIPE, SIG_DFL);
    watches_pipe = false;
}
