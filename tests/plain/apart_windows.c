/* The test's process is the program once more, told to run that test alone. */
#include "apart.h"

#include <process.h>
#include <signal.h>
#include <stdint.h>

plain_end plain_run_apart(const plain_test *test, int (*run)(const plain_test *test), const char *program)
{
    enum { status_of_abort = 3 };
    (void)run;
    fflush(NULL);
    const intptr_t status = _spawnl(_P_WAIT, program, program, "--alone", test->suite, test->name, NULL);
    if (status == status_of_abort) return (plain_end){.signal = SIGABRT};
    if (status < 0) return (plain_end){.signal = SIGSEGV}; /* an exception that nobody caught */
    return (plain_end){.status = (int)status};
}
