/* Calls of the system that fail while metrics, events and traces are written. */
#include "system_call_trials.h"

#include <signal.h>
#include <sys/resource.h>

#include <rapt.h>

#include "temporary_file.h"

TestSuite(system_calls_of_logs, .init = make_directory, .fini = remove_directory);

/* --- metrics --- */

static rapt_metrics_format format;

static rapt_metrics *begin_metrics(void)
{
    unlink(path);
    rapt_metrics *metrics = rapt_metrics_open(path, format, false);
    for (int step = 1; step <= 3; step++)
        cr_assert(rapt_metrics_write(metrics, step, RAPT_METRIC_ROW({"a", step}, {"b", 0.5})), "%s", rapt_error());
    return metrics;
}

static void write_rows(void)
{
    cr_assert(rapt_metrics_close(begin_metrics()));
}

/* Steps 1 and 2 stay, 3 is taken back and written anew. */
static bool goes_on(void)
{
    rapt_metrics *metrics = rapt_metrics_open(path, format, true);
    bool good = metrics && rapt_metrics_rewind(metrics, 3);
    if (good) good = rapt_metrics_write(metrics, 3, RAPT_METRIC_ROW({"a", 7}, {"b", 0.25}));
    return rapt_metrics_close(metrics) && good;
}

/* The rows of before, or those of them that were not taken back; behind them no other than the new one, whole. */
static void check_rows(bool good)
{
    static const char *const kept[] = {[RAPT_METRICS_CSV] = "step,a,b\n1,1,0.5\n2,2,0.5\n",
                                       [RAPT_METRICS_JSON_LINES] = "{\"step\": 1, \"a\": 1, \"b\": 0.5}\n"
                                                                   "{\"step\": 2, \"a\": 2, \"b\": 0.5}\n"};
    static const char *const rows[][2] = {[RAPT_METRICS_CSV] = {"3,3,0.5\n", "3,7,0.25\n"},
                                          [RAPT_METRICS_JSON_LINES] = {"{\"step\": 3, \"a\": 3, \"b\": 0.5}\n",
                                                                       "{\"step\": 3, \"a\": 7, \"b\": 0.25}\n"}};
    const char *text = text_of_file(path);
    const size_t length = strlen(kept[format]);
    cr_assert(strncmp(text, kept[format], length) == 0, "%s", text);
    const bool is_new = strcmp(text + length, rows[format][1]) == 0;
    const bool is_old = strcmp(text + length, rows[format][0]) == 0, is_cut = text[length] == '\0';
    cr_expect(is_new || (!good && (is_old || is_cut)), "%s", text);
}

static const char *const streaming[] = {"stat64", "open64", "fgetc",       "ftello64", "fseeko64",
                                        "fwrite", "fflush", "ftruncate64", "fclose",   NULL};

Test(system_calls_of_logs, of_metrics)
{
    static const rapt_metrics_format formats[] = {RAPT_METRICS_CSV, RAPT_METRICS_JSON_LINES};
    for (int i = 0; i < 2; i++) {
        format = formats[i];
        try_failures(&(trial){"metrics that go on", write_rows, goes_on, check_rows, streaming});
    }
}

/* What failed is cut off, the next row goes behind the last whole one; where the file cannot be opened again, no more
 * is written. */
Test(system_calls_of_logs, of_metrics_that_fail_to_write)
{
    format = RAPT_METRICS_CSV;
    rapt_metrics *metrics = begin_metrics();
    fail_call("fwrite", 1, EIO, false);
    cr_expect_not(rapt_metrics_write(metrics, 4, RAPT_METRIC_ROW({"a", 4})));
    cr_expect_null(strstr(rapt_error(), "; it may end"), "%s", rapt_error());
    expect_error(RAPT_ERROR_FILE, "cannot be written: Input/output error");
    cr_expect(rapt_metrics_write(metrics, 4, RAPT_METRIC_ROW({"a", 5})), "%s", rapt_error());
    cr_expect_str_eq(text_of_file(path), "step,a,b\n1,1,0.5\n2,2,0.5\n3,3,0.5\n4,5,\n");
    fail_call("fwrite", 1, EIO, true);
    failing.other = "fdopen";
    cr_expect_not(rapt_metrics_write(metrics, 5, RAPT_METRIC_ROW({"a", 4})));
    expect_error(RAPT_ERROR_FILE, "cannot be written: Input/output error; it may end with a part of a row");
    failing.name = NULL;
    cr_expect_not(rapt_metrics_write(metrics, 5, RAPT_METRIC_ROW({"a", 4})));
    expect_error(RAPT_ERROR_FILE, "was closed, since it could not be written");
    cr_expect_not(rapt_metrics_rewind(metrics, 1));
    expect_error(RAPT_ERROR_FILE, "was closed, since it could not be written");
    cr_expect(rapt_metrics_close(metrics));
}

/* --- TensorBoard's files, traces --- */

/* Ends with the folder as it was made, and empty. */
static int remove_events(void)
{
    char name[320];
    int count = 0;
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (strstr(entry->d_name, "events.out.tfevents.") && unlink(name) == 0) count++;
    }
    if (folder) closedir(folder);
    return count;
}

static void make_folder(void)
{
    cr_assert(rapt_system_make_folder(path));
}

static void make_none(void)
{
}

static bool writes_events(void)
{
    rapt_metrics *metrics = rapt_metrics_open(path, RAPT_METRICS_TENSORBOARD, false);
    bool good = metrics && rapt_metrics_write(metrics, 1, RAPT_METRIC_ROW({"a", 1}));
    if (good) good = rapt_metrics_rewind(metrics, 1);
    return rapt_metrics_close(metrics) && good;
}

static void check_events(bool good)
{
    const int count = remove_events();
    cr_expect(count == 1 || !good, "%d files", count);
    rmdir(path);
}

Test(system_calls_of_logs, of_events)
{
    static const char *const making[] = {"mkdir", "gethostname", "open64", "fwrite", "fflush", "fclose", NULL};
    static const char *const looking[] = {"stat64", NULL};
    try_failures(&(trial){"events in a new folder", make_none, writes_events, check_events, making});
    try_failures(&(trial){"events in a folder", make_folder, writes_events, check_events, looking});
}

static bool writes_trace(void)
{
    RAPT_SCOPE;
    const bool good = rapt_profile_start(path);
    for (int i = 0; good && i < 500; i++) rapt_ones_like(rapt_neg(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2))));
    return good && rapt_profile_stop();
}

static void check_trace(bool good)
{
    if (good) cr_expect_not_null(strstr(text_of_file(path), "traceEvents"));
    unlink(path);
}

Test(system_calls_of_logs, of_a_trace)
{
    static const char *const tracing[] = {"open64", "fwrite", "fclose", NULL};
    try_failures(&(trial){"a trace", make_none, writes_trace, check_trace, tracing});
}

/* Nothing can be written, as on a full disk. */
Test(system_calls_of_logs, of_a_trace_of_which_nothing_is_written)
{
    struct rlimit before;
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){0, before.rlim_max}), 0);
    cr_expect_not(writes_trace());
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    expect_error(RAPT_ERROR_FILE, "could not be written whole: File too large");
    cr_expect_eq(files(), 0);
}

/* The empty file that has the name now is another's. */
Test(system_calls_of_logs, of_a_trace_whose_file_was_moved)
{
    char moved[320];
    snprintf(moved, sizeof moved, "%s.moved", path);
    struct rlimit before;
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    cr_assert(rapt_profile_start(path), "%s", rapt_error());
    cr_assert_eq(rename(path, moved), 0);
    cr_assert(rapt_system_make_file(path));
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){0, before.rlim_max}), 0);
    cr_expect_not(rapt_profile_stop());
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    expect_error(RAPT_ERROR_FILE, "could not be written whole: File too large");
    cr_expect_str_eq(text_of_file(path), "");
    cr_expect_eq(files(), 2);
}
