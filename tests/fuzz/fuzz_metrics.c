/* What libFuzzer makes up, as a file of metrics that goes on: its whole lines stay, a row comes behind them, and it can
 * go on again; or there is an error. The first byte says which format it is, and whether the run goes on from an
 * earlier step. The file is one of the system's: it is cut and written. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rapt/error.h>
#include <rapt/metrics.h>

#include "fuzz_file.h"

enum { most_bytes = 1 << 16 };

static int file = -1;
static char path[64];

static rapt_metrics *go_on(rapt_metrics_format format)
{
    rapt_metrics *metrics = rapt_metrics_open(path, format, true);
    expect(!metrics == (rapt_error() != NULL), "neither metrics nor an error, or both");
    return metrics;
}

static size_t read_file(unsigned char content[most_bytes])
{
    const ssize_t size = pread(file, content, most_bytes, 0);
    expect(size >= 0, "the file cannot be read");
    return (size_t)size;
}

/* The step, if it is none below 0, is where the run goes on. */
static void check(const unsigned char *bytes, size_t size, rapt_metrics_format format, int64_t step)
{
    static unsigned char content[most_bytes], again[most_bytes];
    rapt_metrics *metrics = go_on(format);
    if (!metrics) return;
    const bool goes_on = step < 0 || rapt_metrics_rewind(metrics, step);
    expect(goes_on == !rapt_error(), "neither a place nor an error, or both");
    rapt_clear_error();
    const size_t kept = read_file(content);
    expect(kept <= size && memcmp(content, bytes, kept) == 0, "whole lines are not what they were");
    expect(kept == 0 || content[kept - 1] == '\n', "a line is not whole");
    const bool done = rapt_metrics_write(metrics, -3, RAPT_METRIC_ROW({"loss", 0.5}, {"é,\"", -1e300}));
    expect(done == !rapt_error(), "neither a row nor an error, or both");
    expect(rapt_metrics_close(metrics), "the file cannot be closed");
    rapt_clear_error();
    const size_t written = read_file(content);
    expect(done ? written > kept && content[written - 1] == '\n' : written == kept, "the row is not whole");
    expect(kept <= size && memcmp(content, bytes, kept) == 0, "whole lines have changed");
    metrics = go_on(format);
    expect(metrics && rapt_metrics_close(metrics), "what was written cannot go on");
    expect(read_file(again) == written && memcmp(again, content, written) == 0, "going on has changed it");
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
    if (size == 0 || size > most_bytes / 2) return 0;
    if (file < 0) {
        file = memfd_create("metrics", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    expect(ftruncate(file, 0) == 0 && pwrite(file, bytes + 1, size - 1, 0) == (ssize_t)size - 1, "no file");
    const fuzz_memory before = fuzz_begin();
    check(bytes + 1, size - 1, bytes[0] % 2 ? RAPT_METRICS_CSV : RAPT_METRICS_JSON_LINES, bytes[0] % 16 / 2 - 1);
    expect_little_memory(before, size);
    fuzz_end(before);
    return 0;
}
