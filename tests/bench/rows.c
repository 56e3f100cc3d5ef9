/* What the benchmark programs share: families of rows, each of which is timed in its phases. */
#include "rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt.h>

#include "peak.h"

static const void *row_at(const row_family *family, int i)
{
    return (const char *)family->rows + (size_t)i * family->row_size;
}

static const char *name_of(const void *row)
{
    return *(const char *const *)row;
}

static double cost_of(const row_family *family, const void *made, int phase)
{
    return family->cost ? family->cost(made, phase) : 0;
}

/* The most of it that the machine can do in a second. */
static double peak_of(const row_family *family)
{
    return family->is_bytes ? peak_bandwidth() : peak_flops(false);
}

/* --- the table --- */

static void report(const row_family *family, const char *name, void *made, int phase)
{
    const double long_enough = 1;
    timing_work *work = family->work[phase];
    work(made);
    peak_memory_reset();
    work(made);
    const double memory = peak_memory(), before = peak_of(family);
    const double median = timing_measure(work, made, long_enough), after = peak_of(family);
    printf("%-24s %-10s %11.3f ms", name, family->phases[phase], 1e3 * median);
    const double rate = cost_of(family, made, phase) / median;
    if (rate > 0)
        printf(" %8.1f %-7s %4.0f %% of the peak", 1e-9 * rate, family->is_bytes ? "GB/s" : "GFLOP/s",
               100 * rate / (before > after ? before : after));
    else
        printf("%34s", "");
    printf(" %9.1f MB\n", 1e-6 * memory);
    fflush(stdout);
}

static void print_table(const row_family *family)
{
    if (family->note) puts(family->note);
    for (int i = 0; i < family->row_count; i++) {
        RAPT_SCOPE;
        void *made = family->make(row_at(family, i), family->context);
        for (int phase = 0; phase < rows_most_phases && family->phases[phase]; phase++)
            report(family, name_of(row_at(family, i)), made, phase);
        family->end(made);
    }
}

/* --- one row in one phase --- */

/* The largest memory of the process in MB, since it was reset where the system lets us do that. */
static double process_memory(void)
{
    long kibibytes = 0;
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %ld", &kibibytes) == 1) break;
    if (status) fclose(status);
    return (double)kibibytes * 1024e-6;
}

static void reset_process_memory(void)
{
    FILE *reset = fopen("/proc/self/clear_refs", "w");
    if (!reset) return;
    fputs("5", reset);
    fclose(reset);
}

static void serve(const row_family *family, void *made, int phase)
{
    enum { warm_up = 2 };
    timing_work *work = family->work[phase];
    for (int i = 0; i < warm_up; i++) work(made);
    rapt_memory_trim();
    reset_process_memory();
    work(made);
    const double megabytes = process_memory();
    puts(rapt_describe_runtime());
    fflush(stdout);
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        const double milliseconds = 1e3 * timing_measure(work, made, strtod(line, NULL));
        const double cost = cost_of(family, made, phase);
        printf("%.6f %.1f %.9g %.9g %s\n", milliseconds, megabytes, cost, cost > 0 ? peak_of(family) : 0,
               family->is_bytes ? "B" : "FLOP");
        fflush(stdout);
    }
}

static bool serve_named(const row_family *family, const char *name, const char *phase)
{
    for (int i = 0; i < family->row_count; i++) {
        if (strcmp(name_of(row_at(family, i)), name) != 0) continue;
        for (int p = 0; p < rows_most_phases && family->phases[p]; p++) {
            if (strcmp(family->phases[p], phase) != 0) continue;
            RAPT_SCOPE;
            void *made = family->make(row_at(family, i), family->context);
            serve(family, made, p);
            family->end(made);
            return true;
        }
    }
    return false;
}

int rows_main(int count, char **arguments, const row_family *families, int family_count)
{
    rapt_on_error(rapt_exit_on_error);
    rapt_seed(1);
    /* all of them, however crowded the machine is */
    rapt_set_threads(rapt_get_threads());
    const bool serves = count == 5 && strcmp(arguments[1], "--row") == 0 && strcmp(arguments[3], "--phase") == 0;
    if (count != 1 && !serves) {
        fprintf(stderr, "usage: %s [--row NAME --phase PHASE]\n", arguments[0]);
        return 2;
    }
    if (!serves) puts(rapt_describe_runtime());
    for (int i = 0; i < family_count; i++) {
        if (!serves) print_table(&families[i]);
        if (serves && serve_named(&families[i], arguments[2], arguments[4])) return EXIT_SUCCESS;
    }
    if (serves) fprintf(stderr, "%s: there is no row %s with a phase %s\n", arguments[0], arguments[2], arguments[4]);
    return serves ? 2 : EXIT_SUCCESS;
}
