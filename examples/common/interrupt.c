/* The signals that end a run. */
#include "interrupt.h"

#include <signal.h>

#include "system.h"

static volatile sig_atomic_t received, watched[SYSTEM_ENDINGS];
static bool watches_pipes;

static void reset(void)
{
    for (int i = 0; i < SYSTEM_ENDINGS; i++) {
        if (watched[i]) system_on_signal(system_endings[i], SIG_DFL);
        watched[i] = 0;
    }
}

static void receive(int number)
{
    received = number;
    reset();
}

void interrupt_watch(void)
{
    received = 0;
    for (int i = 0; i < SYSTEM_ENDINGS; i++) watched[i] = system_on_signal(system_endings[i], receive);
    watches_pipes = system_ends_by_pipes(false);
}

int interrupt_signal(void)
{
    return received;
}

void interrupt_release(void)
{
    reset();
    if (watches_pipes) system_ends_by_pipes(true);
    watches_pipes = false;
}
