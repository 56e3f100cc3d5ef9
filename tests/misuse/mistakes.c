/* Makes every mistake in a process of its own, and compares what happens with what the table says: mistakes. With
 * --page it prints the tables of docs/mistakes.md. RAPT_DEBUG=1 or 0 in the environment says which mode is meant. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mistakes.h"

static const mistake_family families[] = {
    {"Scopes and shares", scope_mistakes},
    {"Gradients", graph_mistakes},
    {"Modules", module_mistakes},
    {"Attention and masks", attention_mistakes},
    {"Data", data_mistakes},
    {"Training", optimizer_mistakes},
    {"Files", file_mistakes},
    {"One's own ops", own_op_mistakes},
    {"Threads and processes", process_mistakes},
};
enum { family_count = sizeof families / sizeof *families };

static char warning[1024];

static void take_warning(const char *message)
{
    snprintf(warning, sizeof warning, "%s", message);
}

static bool is_debugging(void)
{
    const char *mode = getenv("RAPT_DEBUG");
    return mode && *mode == '1';
}

/* What is not as the row says; NULL: nothing. */
static const char *judge(const mistake *m, bool good)
{
    const char *error = rapt_error();
    if (m->end == FAILS || m->end == GONE) {
        if (!error) return "there is no error";
        if (rapt_error_get_code() != m->code) return "the error has another code";
        if (!strstr(error, m->words)) return "the error has other words";
    } else if (error)
        return "there is an error";
    if (m->end == WARNS && !strstr(warning, m->words)) return "there is no such warning";
    return good ? NULL : "something beside the error is wrong";
}

/* In the child. */
static int make(const mistake *m)
{
    alarm(60);
    rapt_on_warning(take_warning);
    const bool good = m->make();
    const char *complaint = judge(m, good);
    if (complaint)
        fprintf(stderr, "%s: %s; code %d: %s\n", m->what, complaint, (int)rapt_error_get_code(),
                rapt_error() ? rapt_error() : warning);
    return complaint != NULL;
}

static bool run(const mistake *m)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) _exit(make(m));
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child) perror("fork");
    if (WIFSIGNALED(status)) fprintf(stderr, "%s: signal %d\n", m->what, WTERMSIG(status));
    return status == 0;
}

static void print_row(const mistake *m)
{
    static const char *const begins[] =
        {[FAILS] = "error: `", [GONE] = "undefined; in debug mode: `", [WARNS] = "warning: `", [WORKS] = "works: "};
    printf("| %s | %s%s%s | %s |\n", m->what, begins[m->end], m->words, m->end == WORKS ? "" : "`", m->cure);
}

static void print_page(void)
{
    for (int i = 0; i < family_count; i++) {
        printf("%s## %s\n\n| mistake | what you see | cure |\n|---|---|---|\n", i > 0 ? "\n" : "", families[i].title);
        for (const mistake *m = families[i].mistakes; m->what; m++) print_row(m);
    }
}

int main(int count, char **arguments)
{
    int made = 0, wrong = 0, undefined = 0;
    if (count > 1 && strcmp(arguments[1], "--page") == 0) {
        print_page();
        return 0;
    }
    for (int i = 0; i < family_count; i++)
        for (const mistake *m = families[i].mistakes; m->what; m++) {
            const bool skipped = m->end == GONE && !is_debugging();
            made += !skipped;
            undefined += skipped;
            if (!skipped) wrong += !run(m);
        }
    printf("%s: %d mistakes made, %d not as the table says; %d undefined here and not made\n",
           is_debugging() ? "debugging" : "release", made, wrong, undefined);
    return wrong > 0;
}
