/* The tables of a profile. */
#include <stdlib.h>

#include "profile.h"

typedef struct line {
    const char *name;
    rapt_doing doing;               /* of an op */
    double own[RAPT_DOINGS], below; /* of a module: seconds, and those of all modules below it */
    rapt_profile_row sum;
} line;

typedef bool is_same(const rapt_profile_row *a, const rapt_profile_row *b);

static bool is_same_op(const rapt_profile_row *a, const rapt_profile_row *b)
{
    return a->name == b->name && a->doing == b->doing;
}

static bool is_same_module(const rapt_profile_row *a, const rapt_profile_row *b)
{
    return a->path == b->path;
}

/* One line for rows that are the same; their number. */
static int64_t merge(const rapt_profile_row *rows, int64_t count, is_same *same, line *lines)
{
    int64_t used = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = 0;
        while (at < used && !same(&lines[at].sum, &rows[i])) at++;
        if (at == used)
            lines[used++] = (line){.sum = {.doing = rows[i].doing, .name = rows[i].name, .path = rows[i].path}};
        rapt_profile_row *sum = &lines[at].sum;
        sum->calls += rows[i].calls;
        sum->seconds += rows[i].seconds;
        sum->bytes += rows[i].bytes;
        sum->flops += rows[i].flops;
        lines[at].own[rows[i].doing] += rows[i].seconds;
    }
    return used;
}

static int by_time(const void *a, const void *b)
{
    const line *x = a, *y = b;
    return (x->sum.seconds < y->sum.seconds) - (x->sum.seconds > y->sum.seconds);
}

static int by_path(const void *a, const void *b)
{
    const line *x = a, *y = b;
    return strcmp(x->sum.path ? x->sum.path : "", y->sum.path ? y->sum.path : "");
}

static double percent(double seconds, const rapt_profile_times *times)
{
    return times->all > 0 ? 100 * seconds / times->all : 0;
}

/* A number that is there, in 9 columns. */
static void print_number(FILE *stream, double number)
{
    if (number > 0)
        fprintf(stream, " %9.4g", number);
    else
        fprintf(stream, " %9s", "-");
}

static void print_ops(FILE *stream, line *lines, int64_t count, const rapt_profile_times *times)
{
    qsort(lines, (size_t)count, sizeof *lines, by_time);
    fprintf(stream, "%-36s %-8s %9s %10s %7s %9s %9s %9s %9s\n", "op", "", "calls", "seconds", "share", "MB", "GB/s",
            "GFLOP", "GFLOP/s");
    for (int64_t i = 0; i < count; i++) {
        const rapt_profile_row *sum = &lines[i].sum;
        fprintf(stream, "%-36s %-8s %9lld %10.6f %6.1f%%", sum->name, rapt_doing_name(sum->doing),
                (long long)sum->calls, sum->seconds, percent(sum->seconds, times));
        print_number(stream, sum->bytes * 1e-6);
        print_number(stream, sum->seconds > 0 ? sum->bytes / sum->seconds * 1e-9 : 0);
        print_number(stream, sum->flops * 1e-9);
        print_number(stream, sum->seconds > 0 ? sum->flops / sum->seconds * 1e-9 : 0);
        fputc('\n', stream);
    }
}

static bool is_below(const char *path, const char *above)
{
    const size_t length = strlen(above);
    return strncmp(path, above, length) == 0 && (path[length] == '.' || path[length] == ' ');
}

static void print_modules(FILE *stream, line *lines, int64_t count, const rapt_profile_times *times)
{
    qsort(lines, (size_t)count, sizeof *lines, by_path);
    fprintf(stream, "\n%-45s %10s %10s %7s %16s\n", "module", "forward", "backward", "share", "with those below");
    for (int64_t i = 0; i < count; i++) {
        const line *l = &lines[i];
        const char *path = l->sum.path;
        double below = l->sum.seconds;
        for (int64_t j = 0; path && j < count; j++)
            if (lines[j].sum.path && is_below(lines[j].sum.path, path)) below += lines[j].sum.seconds;
        fprintf(stream, "%-45s %10.6f %10.6f %6.1f%% %15.1f%%\n", path ? path : "(none)", l->own[RAPT_DOING_FORWARD],
                l->own[RAPT_DOING_BACKWARD], percent(l->sum.seconds, times), percent(below, times));
    }
}

static void print_sums(FILE *stream, const rapt_profile_times *t)
{
    const struct {
        const char *name;
        double seconds;
    } sums[] = {{"ops, forward", t->forward},
                {"ops, backward", t->backward},
                {"walks through graphs", t->walk},
                {"steps of optimizers", t->step},
                {"the profile itself", t->own},
                {"outside", t->outside},
                {"all", t->all}};
    fprintf(stream, "\n%d thread%s, %lld calls\n", t->threads, t->threads == 1 ? "" : "s", (long long)t->calls);
    for (int i = 0; i < (int)(sizeof sums / sizeof *sums); i++)
        fprintf(stream, "%-45s %10.6f %18s %6.1f%%\n", sums[i].name, sums[i].seconds, "", percent(sums[i].seconds, t));
    if (t->lost > 0) fprintf(stream, "%lld calls are missing: there was no memory for them\n", (long long)t->lost);
}

bool rapt_profile_report(FILE *stream)
{
    const char *op = "profile_report";
    if (!stream) return rapt_fail_null(op, "stream");
    int64_t count;
    rapt_profile_times times;
    rapt_profile_row *rows = rapt_profile_copy(&count, &times);
    if (!rows) return false;
    line *lines = malloc((size_t)(count + 1) * sizeof *lines);
    if (lines) {
        print_ops(stream, lines, merge(rows, count, is_same_op, lines), &times);
        print_modules(stream, lines, merge(rows, count, is_same_module, lines), &times);
        print_sums(stream, &times);
    } else
        rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for its tables");
    const bool good = lines != NULL;
    free(lines);
    free(rows);
    if (good && (fflush(stream) != 0 || ferror(stream)))
        return rapt_fail(RAPT_ERROR_FILE, op, "the stream cannot be written to");
    return good;
}
