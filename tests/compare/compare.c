/* Runs random programs in PyTorch and in rapt and compares all values and gradients.
 *
 *     compare [COUNT [FIRST_SEED]]        300 programs from seed 1 on, unless told otherwise
 *
 * RAPT_TORCH_PYTHON is the command of a Python that has PyTorch, python3 unless it is set. Without PyTorch the status
 * is 77 (skipped), unless a Python was named: then it is 1. random_programs.py makes the programs; expected.py says how
 * large a difference may be. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "judge.h"

enum { enough_for_all = 1000 }; /* programs, among which are all ops */

static struct {
    int64_t programs, graphs, large, trainings, changing, both_refuse, rapt_refuses, torch_refuses;
} totals;

static const program *now; /* for the signal handler */

static void say_where(int signal_number)
{
    char text[96];
    long long seed = now ? (long long)record_integer(&now->records[0], "seed") : 0;
    int length = snprintf(text, sizeof text, "compare: signal %d in the program of seed %lld\n", signal_number, seed);
    signal(signal_number, SIG_DFL);
    if (write(STDERR_FILENO, text, (size_t)length) > 0) raise(signal_number);
}

static void judge_values(run *r)
{
    for (int i = 0; i < r->program->count; i++) {
        const record *e = &r->program->records[i];
        if (record_is(e, "expect") && record_says(e, "what", "value"))
            judge(r, e, r->values[record_integer(e, "value")]);
    }
}

static const record *find_record(const program *p, const char *kind)
{
    for (int i = 0; i < p->count; i++)
        if (record_is(&p->records[i], kind)) return &p->records[i];
    return NULL;
}

typedef outcome way(run *r);

static void run_one_way(const program *p, rapt_dtype dtype, way *differentiation)
{
    RAPT_SCOPE;
    run r = {.program = p, .dtype = dtype};
    const record *training = find_record(p, "train");
    if (run_forward(&r, false) && (!training || run_training(&r, training))) {
        judge_values(&r);
        outcome is = find_record(p, "root") && !training ? differentiation(&r) : agreed;
        bool torch_refuses = record_integer(&p->records[0], "refused");
        totals.both_refuse += is == refused && torch_refuses;
        totals.rapt_refuses += is == refused && !torch_refuses;
        totals.torch_refuses += is == agreed && torch_refuses;
    }
    run_end(&r);
    rapt_clear_error();
}

static void run_program(const program *p)
{
    now = p;
    int64_t live = rapt_memory_get_statistics().live_bytes;
    run_one_way(p, RAPT_FLOAT32, differentiate_into_leaves);
    run_one_way(p, RAPT_FLOAT64, differentiate);
    if (find_record(p, "direction")) run_one_way(p, RAPT_FLOAT64, differentiate_twice);
    int64_t leak = rapt_memory_get_statistics().live_bytes - live;
    if (leak != 0) {
        char what[64];
        snprintf(what, sizeof what, "%lld bytes of tensors are left", (long long)leak);
        report(&(run){.program = p, .step = &p->records[0]}, what);
    }
    const record *head = &p->records[0];
    totals.programs++;
    totals.graphs += record_says(head, "kind", "graph");
    totals.trainings += record_says(head, "kind", "training");
    totals.changing += record_says(head, "kind", "changing");
    totals.large += record_integer(head, "large");
    now = NULL;
}

/* The first line of the stream: the version of PyTorch, and the names of all steps that programs may have. */
static bool knows_all_ops(const char *names)
{
    bool all = true;
    EACH_OP(row)
    {
        char word[64];
        snprintf(word, sizeof word, " %s ", row->name);
        if (strstr(names, word)) continue;
        printf("random_programs.py knows no op %s: it belongs into random_ops.py\n", row->name);
        all = false;
    }
    return all;
}

/* The names after "ops". */
static bool all_were_compared(const char *names)
{
    bool all = true;
    char name[64];
    for (int length; sscanf(names, "%63s%n", name, &length) == 1; names += length) {
        bool derivatives = false;
        EACH_OP(row)
        derivatives |= strcmp(row->name, name) == 0 && row->differentiable;
        if (judge_saw(name, derivatives)) continue;
        printf("%s was not compared%s\n", name, derivatives ? " with both derivatives" : "");
        all = false;
    }
    return all;
}

static void print_totals(const char *torch, long long first, double seconds)
{
    judge_print();
    printf("\n%lld programs from seed %lld on, %lld tensors compared with PyTorch %s in %.0f s: %lld differences\n",
           (long long)totals.programs, first, (long long)judge_compared(), torch, seconds, (long long)judge_reports());
    printf("%lld graphs with second derivatives (%lld of large tensors), %lld trainings, %lld changed in place; %lld "
           "wrong calls were refused\n",
           (long long)totals.graphs, (long long)totals.large, (long long)totals.trainings, (long long)totals.changing,
           (long long)run_refusals());
    printf("gradients after a change in place were refused by both %lld times, by rapt alone %lld, by PyTorch alone "
           "%lld\n",
           (long long)totals.both_refuse, (long long)totals.rapt_refuses, (long long)totals.torch_refuses);
}

/* −1 when PyTorch does not answer. */
static int compare(FILE *stream, long long count, long long first)
{
    char *head = NULL, torch[64] = "";
    size_t size = 0;
    int names = 0;
    time_t start = time(NULL);
    if (getline(&head, &size, stream) <= 0 || sscanf(head, "PyTorch %63s ops%n", torch, &names) != 1 || names == 0) {
        free(head);
        return -1;
    }
    bool good = knows_all_ops(head + names);
    for (program p; program_read(stream, &p); program_free(&p)) run_program(&p);
    print_totals(torch, first, difftime(time(NULL), start));
    if (totals.programs >= enough_for_all) good &= all_were_compared(head + names);
    if (totals.programs != count) printf("%lld of %lld programs came\n", (long long)totals.programs, count);
    free(head);
    return good && totals.programs == count && judge_reports() == 0 ? 0 : 1;
}

/* The shell's statuses of a command that is not there or does not run: no Python either. */
static bool has_no_torch(int status)
{
    return WIFEXITED(status) && (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 126 || WEXITSTATUS(status) == 127);
}

int main(int argument_count, char **arguments)
{
    char command[4096];
    const char *python = getenv("RAPT_TORCH_PYTHON");
    long long count = argument_count > 1 ? atoll(arguments[1]) : 300,
              first = argument_count > 2 ? atoll(arguments[2]) : 1;
    if (argument_count > 3 || count < 1) {
        fprintf(stderr, "usage: compare [COUNT [FIRST_SEED]]\n");
        return 2;
    }
    if (chdir(RAPT_SOURCE_ROOT) != 0) return 1;
    snprintf(command, sizeof command, "%s tests/compare/random_programs.py %lld %lld", python ? python : "python3",
             count, first);
    FILE *stream = popen(command, "r");
    const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL};
    for (int i = 0; i < 5; i++) signal(signals[i], say_where);
    int status = stream ? compare(stream, count, first) : 1, end = stream ? pclose(stream) : 0;
    if (status < 0 && has_no_torch(end)) {
        printf("%s: %s has no PyTorch 2.5 or newer (RAPT_TORCH_PYTHON names a Python that has it)\n",
               python ? "failed" : "skipped", python ? python : "python3");
        return python ? 1 : 77;
    }
    return status != 0 || end != 0;
}
