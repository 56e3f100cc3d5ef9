/* A library for LD_PRELOAD, under which the main of a program runs elsewhere than it thinks: RAPT_MAIN=region, in one
 * thread of a parallel region of OpenMP whose others wait; RAPT_MAIN=child, in a forked child. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { threads = 4 };

typedef int main_function(int count, char **arguments, char **environment);
typedef int start_function(main_function *main, int count, char **arguments, void (*begin)(void), void (*end)(void),
                           void (*loader_end)(void), void *stack_end);

start_function __libc_start_main;

static main_function *main_of_program;

static int main_in_region(int count, char **arguments, char **environment)
{
    int status = EXIT_FAILURE;
#pragma omp parallel num_threads(threads)
#pragma omp single
    status = main_of_program(count, arguments, environment);
    return status;
}

static int main_in_child(int count, char **arguments, char **environment)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) return main_of_program(count, arguments, environment);
    if (child < 0 || waitpid(child, &status, 0) != child) return EXIT_FAILURE;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int __libc_start_main(main_function *main, int count, char **arguments, void (*begin)(void), void (*end)(void),
                      void (*loader_end)(void), void *stack_end)
{
    const char *where = getenv("RAPT_MAIN");
    start_function *start;
    *(void **)&start = dlsym(RTLD_NEXT, "__libc_start_main");
    if (!start || !where || (strcmp(where, "region") != 0 && strcmp(where, "child") != 0)) {
        fputs("main_elsewhere: RAPT_MAIN is region or child\n", stderr);
        _exit(EXIT_FAILURE);
    }
    main_of_program = main;
    return start(strcmp(where, "child") == 0 ? main_in_child : main_in_region, count, arguments, begin, end, loader_end,
                 stack_end);
}
