/* Runs a program once for each request for memory that it makes, with that one failing, and once more with all from
 * there on, also of those before main. Each run must end with success and all that a run with memory prints and writes,
 * or with status 1, a sentence, and files that are old or whole; never by a signal, by waiting for ever, or with a leak
 * that the leak checker sees. Usage: see below. */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_folder.h"

static const char usage[] = "usage: failing_allocations --preload FAILING_MALLOC [OPTION]... PROGRAM [ARGUMENT]...\n\n"
                            "The program runs in a folder of its own.\n\n"
                            "  --every N        only each N-th request\n"
                            "  --first N        the first request that fails\n"
                            "  --from FOLDER    files that are there when it begins\n"
                            "  --timed TEXT     lines with it print times, which are others in each run\n"
                            "  --leaks LIBRARY  a leak checker, preloaded too\n";

/* A run may compute so long, and wait so long, on a machine that others keep busy. */
enum { SECONDS_OF_A_RUN = 120, SECONDS_OF_WAITING = 1200 };
enum { FAILURES_SHOWN = 10, COMPLAINT_SHOWN = 1500, SUCCESS = 0, FAILURE = 1 };

static struct {
    const char *interposer, *leak_checker, *from, *timed;
    char **program;
    long every, first;
} given = {.every = 1, .first = 1};

/* One failure: of which request, and of all after it, and counted from the first before main. */
struct failure {
    long at;
    bool for_good, early;
};

/* --- runs --- */

static void send_to(const char *path, int stream)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file < 0 || dup2(file, stream) < 0) _exit(126);
    close(file);
}

static void become_program(const struct failure *failure)
{
    char number[32], preloads[8192];
    snprintf(number, sizeof number, "%ld", failure->at);
    snprintf(preloads, sizeof preloads, "%s %s", given.interposer, given.leak_checker ? given.leak_checker : "");
    send_to("/dev/null", STDIN_FILENO);
    send_to(path_of("said", ""), STDOUT_FILENO);
    send_to(path_of("complaint", ""), STDERR_FILENO);
    /* Where a locale cannot be loaded, pictures in the terminal are ASCII as they are in this one. */
    if (setenv("LC_ALL", "C", 1) || setenv("RAPT_FAIL_AT", number, 1) ||
        setenv("RAPT_FAIL_COUNT", path_of("count", ""), 1) || setenv("LD_PRELOAD", preloads, 1) ||
        (failure->for_good && setenv("RAPT_FAIL_ON", "1", 1)) ||
        (failure->early && setenv("RAPT_FAIL_EARLY", "1", 1)) || chdir(path_of("run", "")))
        _exit(126);
    setrlimit(RLIMIT_CPU, &(struct rlimit){SECONDS_OF_A_RUN, SECONDS_OF_A_RUN + 1});
    alarm(SECONDS_OF_WAITING);
    execv(given.program[0], given.program);
    _exit(127);
}

static int run(const struct failure *failure)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) become_program(failure);
    if (child < 0 || waitpid(child, &status, 0) != child) give_up("cannot run a program");
    return status;
}

/* --- what must hold --- */

/* Of files that grow as a run goes, the beginning is whole up to a line's end. */
static bool grows(const char *name)
{
    const char *ending = strrchr(name, '.');
    return ending && (strcmp(ending, ".csv") == 0 || strcmp(ending, ".jsonl") == 0 || strcmp(ending, ".html") == 0);
}

static bool is_whole(const char *part, const char *name)
{
    const char *whole = path_of("reference", name);
    if (!is_there(whole)) return printf("  %s stays behind\n", name), false;
    char old[4096];
    snprintf(old, sizeof old, "%s/%s", given.from ? given.from : ".", name);
    const char *made = path_of(part, name);
    if (is_same(made, whole) || (given.from && is_same(made, old))) return true;
    if (grows(name) && begins_with(whole, made) && ends_with_line(made)) return true;
    return printf("  %s is damaged\n", name), false;
}

static bool is_made(const char *part, const char *name)
{
    return is_same(path_of(part, name), path_of("run", name)) || (printf("  %s is not there\n", name), false);
}

static bool has_good_end(int status)
{
    if (WIFSIGNALED(status)) return printf("  signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status))), false;
    if (WEXITSTATUS(status) > FAILURE) return printf("  status %d\n", WEXITSTATUS(status)), false;
    if (WEXITSTATUS(status) == FAILURE && is_same(path_of("complaint", ""), "/dev/null"))
        return printf("  it fails without a sentence\n"), false;
    return true;
}

/* What a program has printed, without the lines that print times. */
static char *read_printed(const char *part)
{
    char *text = read_file(path_of(part, "")).data, *to = text;
    for (char *line = text; *line;) {
        const size_t length = strcspn(line, "\n") + (strchr(line, '\n') != NULL);
        const char *time = given.timed ? strstr(line, given.timed) : NULL;
        if (!time || time >= line + length) to = (char *)memmove(to, line, length) + length;
        line += length;
    }
    *to = '\0';
    return text;
}

/* Are all lines of a text lines of another, in their order, if with gaps? The last may be cut. */
static bool are_lines_of(const char *text, const char *whole)
{
    while (*text) {
        const size_t length = strcspn(text, "\n") + 1;
        while (*whole && strncmp(text, whole, text[length - 1] ? length : length - 1) != 0) {
            whole += strcspn(whole, "\n");
            whole += *whole == '\n';
        }
        if (!*whole) return false;
        if (!text[length - 1]) return true;
        text += length;
        whole += length;
    }
    return true;
}

static bool has_good_text(int status)
{
    char *expected = read_printed("expected"), *printed = read_printed("said");
    const bool good = WEXITSTATUS(status) == SUCCESS ? strcmp(expected, printed) == 0 : are_lines_of(printed, expected);
    if (!good)
        printf("  status %d, and it prints something else: %.*s\n", WEXITSTATUS(status), COMPLAINT_SHOWN, printed);
    free(expected), free(printed);
    return good;
}

static bool ended_well(int status)
{
    if (!has_good_end(status) || !has_good_text(status)) return false;
    return for_each_file("run", is_whole) == 0 &&
           (WEXITSTATUS(status) != SUCCESS || for_each_file("reference", is_made) == 0);
}

/* --- all failures --- */

static struct {
    long runs;
    int errors, failures;
} counts;

/* The leak checker stops the program where it gets no memory for itself. */
static bool leak_checker_failed(void)
{
    char *complaint = read_file(path_of("complaint", "")).data;
    const bool failed = strstr(complaint, "LeakSanitizer: CHECK failed") != NULL;
    free(complaint);
    return failed;
}

static int run_in(const char *from, const struct failure *failure)
{
    run_folder_fill(from);
    return run(failure);
}

static void try(const struct failure *failure)
{
    char reference[4096];
    snprintf(reference, sizeof reference, "%s", path_of("reference", ""));
    const char *from = failure->for_good ? given.from : reference, *leak_checker = given.leak_checker;
    int status = run_in(from, failure);
    if (leak_checker_failed()) {
        given.leak_checker = NULL;
        status = run_in(from, failure);
        given.leak_checker = leak_checker;
    }
    counts.runs++;
    counts.errors += WIFEXITED(status) && WEXITSTATUS(status) == FAILURE;
    if (ended_well(status)) return;
    if (++counts.failures > FAILURES_SHOWN) return;
    printf("  with request %ld%s%s failing, of %s\n", failure->at, failure->early ? " before main" : "",
           failure->for_good ? " and all after it" : "", given.program[0]);
    const struct bytes complaint = read_file(path_of("complaint", ""));
    printf("%.*s\n", COMPLAINT_SHOWN, complaint.data);
    fflush(stdout);
    free(complaint.data);
}

static void try_all(long first, long last, long step, bool early)
{
    for (long n = first; n <= last; n += step) {
        try(&(struct failure){.at = n, .early = early});
        try(&(struct failure){.at = n, .early = early, .for_good = true});
    }
}

/* Two runs with all memory, which make and print the same; the numbers of requests. */
static void run_with_memory(long *requests, long *before_main)
{
    for (int i = 0; i < 2; i++) {
        const int status = run_in(given.from, &(struct failure){0});
        const struct bytes count = read_file(path_of("count", ""));
        if (status != 0 || sscanf(count.data, "%ld %ld", requests, before_main) != 2 || *requests < 10) {
            printf("%s with all its memory: status %d, %ld requests counted\n", given.program[0], WEXITSTATUS(status),
                   *requests);
            exit(1);
        }
        free(count.data);
        if (i > 0) continue;
        char made[4096];
        snprintf(made, sizeof made, "%s", path_of("reference", ""));
        if (rename(path_of("run", ""), made) != 0) give_up(made);
        snprintf(made, sizeof made, "%s", path_of("said", ""));
        if (rename(made, path_of("expected", "")) != 0) give_up(made);
    }
    if (!ended_well(0)) exit(1);
}

/* The program runs in another folder. */
static char *from_root(const char *path)
{
    char *absolute = realpath(path, NULL);
    if (!absolute) give_up(path);
    return absolute;
}

static bool take_options(int count, char **arguments)
{
    int i = 1;
    for (; i + 1 < count && strncmp(arguments[i], "--", 2) == 0; i += 2) {
        if (strcmp(arguments[i], "--preload") == 0)
            given.interposer = from_root(arguments[i + 1]);
        else if (strcmp(arguments[i], "--every") == 0)
            given.every = atol(arguments[i + 1]);
        else if (strcmp(arguments[i], "--first") == 0)
            given.first = atol(arguments[i + 1]);
        else if (strcmp(arguments[i], "--from") == 0)
            given.from = from_root(arguments[i + 1]);
        else if (strcmp(arguments[i], "--timed") == 0)
            given.timed = arguments[i + 1];
        else if (strcmp(arguments[i], "--leaks") == 0)
            given.leak_checker = arguments[i + 1];
        else
            return false;
    }
    given.program = arguments + i;
    if (i < count) arguments[i] = from_root(arguments[i]);
    return i < count && given.interposer && given.every > 0 && given.first > 0;
}

int main(int count, char **arguments)
{
    long requests = 0, before_main = 0;
    if (!take_options(count, arguments)) return fputs(usage, stderr), 2;
    run_folder_make("failing");
    run_with_memory(&requests, &before_main);
    try_all(1, before_main, 1, true);
    try_all(given.first, requests, given.every, false);
    run_folder_remove();
    printf("%s: %ld requests and %ld before main, %ld runs, %d ended with an error, %d badly\n", given.program[0],
           requests, before_main, counts.runs, counts.errors, counts.failures);
    return counts.failures > 0;
}
