/* The test's process is the program once more, told to run that test alone: work in a fork is left to one thread.
 * Programs that the system does not start are started by the emulator that meson names; without one, it is a fork. */
#include "apart.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

plain_end plain_run_apart(const plain_test *test, int (*run)(const plain_test *test), const char *program)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        execl(program, program, "--alone", test->suite, test->name, (char *)NULL);
        if (getenv("MESON_EXE_WRAPPER"))
            execl("/bin/sh", "sh", "-c", "exec $MESON_EXE_WRAPPER \"$@\"", "sh", program, "--alone", test->suite,
                  test->name, (char *)NULL);
        exit(run(test));
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child) perror("fork");
    if (WIFSIGNALED(status)) return (plain_end){.signal = WTERMSIG(status)};
    return (plain_end){.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}
