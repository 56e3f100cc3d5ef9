/* A program that has closed the streams that it prints into: what it prints all the same gets into no file of the
 * library's. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rapt.h>

#include "temporary_file.h"
#include "tensor/replace_file.h"

enum { first = STDOUT_FILENO, streams = STDERR_FILENO + 1 };
static int kept[streams];
static char path[32];

static void close_streams(void)
{
    write_temporary_file(path, "", 0);
    fflush(NULL);
    for (int i = first; i < streams; i++) {
        kept[i] = fcntl(i, F_DUPFD, streams);
        close(i);
    }
}

static void open_streams(void)
{
    for (int i = first; i < streams; i++) {
        if (kept[i] < 0) continue;
        dup2(kept[i], i);
        close(kept[i]);
    }
    unlink(path);
}

/* Says something on both streams; true: nobody heard it. */
static bool nobody_hears(void)
{
    const char text[] = "what a program prints";
    return write(STDOUT_FILENO, text, sizeof text) < 0 && write(STDERR_FILENO, text, sizeof text) < 0;
}

Test(closed_streams, saved_files)
{
    close_streams();
    rapt_replacement replacement;
    const bool begun = rapt_replacement_begin(&replacement, "test", path);
    const bool unheard = nobody_hears();
    const bool written = begun && rapt_replacement_write(&replacement, "saved", 5);
    const bool done = written && rapt_replacement_end(&replacement, true);
    char text[16] = "";
    FILE *file = fopen(path, "rb");
    const size_t count = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) fclose(file);
    open_streams();
    cr_assert(done, "%s", rapt_error());
    cr_expect(unheard);
    cr_expect(count == 5 && strcmp(text, "saved") == 0, "the file has %s", text);
}

/* Then nothing of it stays. */
Test(closed_streams, no_other_descriptor)
{
    const rapt_tensor *saved = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2));
    close_streams();
    char beside[64];
    snprintf(beside, sizeof beside, "%s.npy", path);
    struct rlimit old;
    getrlimit(RLIMIT_NOFILE, &old);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){streams, old.rlim_max});
    const bool done = rapt_save_npy(beside, saved);
    setrlimit(RLIMIT_NOFILE, &old);
    open_streams();
    cr_expect_not(done);
    cr_expect_eq(rapt_error_get_code(), RAPT_ERROR_FILE);
    glob_t found = {0};
    strcat(beside, "*");
    cr_expect_eq(glob(beside, 0, NULL, &found), GLOB_NOMATCH, "something stays at %s", beside);
    globfree(&found);
}

Test(closed_streams, metrics)
{
    close_streams();
    rapt_metrics *metrics = rapt_metrics_open(path, RAPT_METRICS_CSV, false);
    const bool unheard = nobody_hears();
    const bool written = rapt_metrics_write(metrics, 1, RAPT_METRIC_ROW({"loss", 0.5}));
    rapt_metrics_close(metrics);
    open_streams();
    cr_expect(written && unheard, "%s", rapt_error() ? rapt_error() : "heard");
}

Test(closed_streams, metrics_that_go_on)
{
    close_streams();
    rapt_metrics *metrics = rapt_metrics_open(path, RAPT_METRICS_CSV, true);
    const bool unheard = nobody_hears();
    const bool written = rapt_metrics_write(metrics, 1, RAPT_METRIC_ROW({"loss", 0.5}));
    rapt_metrics_close(metrics);
    open_streams();
    cr_expect(written && unheard, "%s", rapt_error() ? rapt_error() : "heard");
}

Test(closed_streams, profile)
{
    close_streams();
    const bool begun = rapt_profile_start(path);
    const bool unheard = nobody_hears();
    const bool done = begun && rapt_profile_stop();
    open_streams();
    cr_expect(done && unheard, "%s", rapt_error() ? rapt_error() : "heard");
}
