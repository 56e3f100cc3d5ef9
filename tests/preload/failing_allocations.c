/* Runs a program once for each allocation that it makes, with that one failing, and once more with all from there
 * on: each run must end with a status of its own, 0 or 1, and never by a signal or by waiting for ever. Usage:
 * failing_allocations FAILING_MALLOC COUNT_FILE PROGRAM [ARGUMENT]... */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS_OF_A_RUN = 120, FAILURES_SHOWN = 5 };

static const char *interposer, *count_file;
static char **program;

/* Becomes the program, with allocation number fail_at failing (0: none). */
static void become_program(long fail_at, bool and_all_after)
{
    char number[32];
    snprintf(number, sizeof number, "%ld", fail_at);
    const int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0 || dup2(nowhere, STDERR_FILENO) < 0) _exit(126);
    if (setenv("RAPT_FAIL_AT", number, 1) || setenv("RAPT_FAIL_COUNT", count_file, 1) ||
        setenv("LD_PRELOAD", interposer, 1) || (and_all_after && setenv("RAPT_FAIL_ON", "1", 1)))
        _exit(126);
    alarm(SECONDS_OF_A_RUN);
    execv(program[0], program);
    _exit(127);
}

static int run(long fail_at, bool and_all_after)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) become_program(fail_at, and_all_after);
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("cannot run a program");
        exit(1);
    }
    return status;
}

static long counted(void)
{
    long requests = 0;
    FILE *file = fopen(count_file, "r");
    if (!file || fscanf(file, "%ld", &requests) != 1) requests = 0;
    if (file) fclose(file);
    return requests;
}

/* Whether the program ended as a program ends that met an error or needed no memory. */
static bool ended_well(long fail_at, bool and_all_after, int status, int failures)
{
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 1)) return true;
    if (failures >= FAILURES_SHOWN) return false;
    printf("with allocation %ld%s failing, %s ended by ", fail_at, and_all_after ? " and all after it" : "",
           program[0]);
    if (WIFSIGNALED(status))
        printf("signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        printf("status %d\n", WEXITSTATUS(status));
    return false;
}

int main(int count, char **arguments)
{
    if (count < 4) {
        fprintf(stderr, "usage: %s FAILING_MALLOC COUNT_FILE PROGRAM [ARGUMENT]...\n", arguments[0]);
        return 2;
    }
    interposer = arguments[1];
    count_file = arguments[2];
    program = arguments + 3;
    unlink(count_file);
    const int status = run(0, false);
    const long requests = counted();
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || requests < 10) {
        printf("%s with all its memory: status %d, %ld allocations counted\n", program[0], WEXITSTATUS(status),
               requests);
        return 1;
    }
    int failures = 0, errors = 0;
    for (long n = 1; n <= requests; n++)
        for (int and_all_after = 0; and_all_after <= 1; and_all_after++) {
            const int result = run(n, and_all_after);
            failures += !ended_well(n, and_all_after, result, failures);
            errors += WIFEXITED(result) && WEXITSTATUS(result) == 1;
        }
    printf("%s: %ld allocations, %ld runs, %d ended with an error, %d badly\n", program[0], requests, 2 * requests,
           errors, failures);
    return failures > 0;
}
