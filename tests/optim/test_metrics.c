/* Metrics: what is in the files, byte by byte where they are text; event files are read back by read_events.py, too. */
#include "expect.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#ifndef _WIN32
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#endif

#include <rapt/metrics.h>

#include "../../optim/metrics.h"
#include "comma_locale.h"
#include "temporary_file.h"

static char path[32];

static void new_path(void)
{
    write_temporary_file(path, "", 0);
}

static void remove_path(void)
{
    unlink(path);
}

TestSuite(metrics, .init = new_path, .fini = remove_path);

static rapt_metrics *opened(rapt_metrics_format format, bool append)
{
    rapt_metrics *metrics = rapt_metrics_open(path, format, append);
    cr_assert_not_null(metrics, "%s", rapt_error());
    return metrics;
}

static void write_text(const char *text)
{
    FILE *file = fopen(path, "wb");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

Test(metrics, csv)
{
    set_comma_locale();
    rapt_metrics *metrics = opened(RAPT_METRICS_CSV, false);
    cr_expect(rapt_metrics_write(metrics, 0, RAPT_METRIC_ROW({"loss", 0.5}, {"a,\"b\"", -1e-30}, {"c", 1. / 3})));
    cr_expect_str_eq(text_of_file(path), "step,loss,\"a,\"\"b\"\"\",c\n0,0.5,-1e-30,0.3333333333333333\n");
    cr_expect(rapt_metrics_write(metrics, 10, RAPT_METRIC_ROW({"c", (double)NAN}, {"loss", (double)-INFINITY})));
    cr_expect_not(rapt_metrics_write(metrics, 11, RAPT_METRIC_ROW({"other", 1})));
    expect_error(RAPT_ERROR_VALUE, "'other' is none of the 3 names");
    cr_expect(rapt_metrics_close(metrics));

    FILE *file = fopen(path, "ab");
    fputs("12,0.2", file); /* a crash */
    fclose(file);
    metrics = opened(RAPT_METRICS_CSV, true);
    cr_expect(rapt_metrics_write(metrics, 12, RAPT_METRIC_ROW({"a,\"b\"", 3})), "%s", rapt_error());
    cr_expect(rapt_metrics_close(metrics));
    cr_expect_str_eq(text_of_file(path),
                     "step,loss,\"a,\"\"b\"\"\",c\n0,0.5,-1e-30,0.3333333333333333\n10,-inf,,nan\n12,,3,\n");
    metrics = opened(RAPT_METRICS_CSV, false);
    cr_expect(rapt_metrics_write(metrics, 1, RAPT_METRIC_ROW({"x", 100000})));
    cr_expect(rapt_metrics_close(metrics));
    cr_expect_str_eq(text_of_file(path), "step,x\n1,1e+05\n");
    expect_no_error();
}

Test(metrics, json_lines)
{
    rapt_metrics *metrics = opened(RAPT_METRICS_JSON_LINES, false);
    cr_expect(rapt_metrics_write(metrics, -1, RAPT_METRIC_ROW({"loss", 0.1}, {"a\"\\\n\xc3\xa9", (double)INFINITY})));
    cr_expect(rapt_metrics_close(metrics));
    metrics = opened(RAPT_METRICS_JSON_LINES, true);
    cr_expect(rapt_metrics_write(metrics, 2, RAPT_METRIC_ROW({"other", 0}, {"seventeen", 0.30000000000000004})));
    cr_expect(rapt_metrics_close(metrics));
    cr_expect_str_eq(text_of_file(path), "{\"step\": -1, \"loss\": 0.1, \"a\\\"\\\\\\u000a\xc3\xa9\": null}\n"
                                         "{\"step\": 2, \"other\": 0, \"seventeen\": 0.30000000000000004}\n");
    expect_no_error();
}

Test(metrics, rewind)
{
    static const rapt_metrics_format formats[] = {RAPT_METRICS_CSV, RAPT_METRICS_JSON_LINES};
    static const char *const expected[][3] =
        {{"step,\"a\nb\"\n1,0\n2,1\n", "step,\"a\nb\"\n1,0\n2,1\n7,0.5\n", "step,\"a\nb\"\n"},
         {"{\"step\": 1, \"a\\u000ab\": 0}\n{\"step\": 2, \"a\\u000ab\": 1}\n",
          "{\"step\": 1, \"a\\u000ab\": 0}\n{\"step\": 2, \"a\\u000ab\": 1}\n{\"step\": 7, \"a\\u000ab\": 0.5}\n", ""}};
    for (int i = 0; i < 2; i++) {
        rapt_metrics *metrics = opened(formats[i], false);
        for (int row = 0; row < 5; row++)
            cr_expect(rapt_metrics_write(metrics, row + 1, RAPT_METRIC_ROW({"a\nb", row})));
        cr_expect(rapt_metrics_close(metrics));
        metrics = opened(formats[i], true);
        cr_expect(rapt_metrics_rewind(metrics, 100)); /* there are none */
        cr_expect(rapt_metrics_rewind(metrics, 3), "%s", rapt_error());
        cr_expect_str_eq(text_of_file(path), expected[i][0]);
        cr_expect(rapt_metrics_write(metrics, 7, RAPT_METRIC_ROW({"a\nb", 0.5})));
        cr_expect_str_eq(text_of_file(path), expected[i][1]);
        cr_expect(rapt_metrics_rewind(metrics, INT64_MIN));
        cr_expect_str_eq(text_of_file(path), expected[i][2]);
        cr_expect(rapt_metrics_close(metrics));
    }
    rapt_metrics *metrics = opened(RAPT_METRICS_CSV, false);
    cr_expect(rapt_metrics_rewind(metrics, 0), "an empty file: %s", rapt_error());
    cr_expect(rapt_metrics_close(metrics));
    expect_no_error();
    write_text("step,x\n1,2\nx,3\n");
    metrics = opened(RAPT_METRICS_CSV, true);
    cr_expect_not(rapt_metrics_rewind(metrics, 2));
    expect_error(RAPT_ERROR_FORMAT, "at byte 11 does not begin with its step");
    cr_expect_not(rapt_metrics_rewind(NULL, 2));
    expect_error(RAPT_ERROR_NULL, "metrics is NULL");
    cr_expect(rapt_metrics_close(metrics));
}

Test(metrics, formats_by_name)
{
    char name[64];
    static const char *const endings[] = {".csv", ".jsonl"}, *const contents[] = {"step,x\n3,1\n",
                                                                                  "{\"step\": 3, \"x\": 1}\n"};
    for (int i = 0; i < 2; i++) {
        unlink(path);
        snprintf(name, sizeof name, "%s%s", path, endings[i]);
        rapt_metrics *metrics = rapt_metrics_open(name, RAPT_METRICS_BY_NAME, false);
        cr_expect(rapt_metrics_write(metrics, 3, RAPT_METRIC_ROW({"x", 1})), "%s", rapt_error());
        cr_expect(rapt_metrics_close(metrics));
        rename(name, path);
        cr_expect_str_eq(text_of_file(path), contents[i]);
    }
    cr_expect_null(rapt_metrics_open("a/b.c/log.txt", RAPT_METRICS_BY_NAME, false));
    expect_error(RAPT_ERROR_VALUE, "'a/b.c/log.txt' ends in .txt; .csv, .jsonl, or the name of a folder");
    cr_expect_null(rapt_metrics_open("/nowhere.csv/log", RAPT_METRICS_BY_NAME, false));
    expect_error(RAPT_ERROR_FILE, "is no folder");
}

/* The values of RFC 3720, B.4. */
Test(metrics, checksum)
{
    unsigned char bytes[32] = {0};
    cr_expect_eq(rapt_crc32c(bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, 32);
    cr_expect_eq(rapt_crc32c(bytes, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++) bytes[i] = (unsigned char)i;
    cr_expect_eq(rapt_crc32c(bytes, 32), 0x46dd794e);
    cr_expect_eq(rapt_crc32c("123456789", 9), 0xe3069283);
}

/* Removes the files of the folder `path`, and it. */
static int remove_folder(void)
{
    int count = 0;
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char name[512];
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (strstr(name, "events.out.tfevents.") && unlink(name) == 0) count++;
    }
    if (folder) closedir(folder);
    return rmdir(path) == 0 ? count : -1;
}

Test(metrics, events_are_read_by_another_reader)
{
    char command[1024];
    unlink(path);
    rapt_metrics *metrics = opened(RAPT_METRICS_TENSORBOARD, false), *more = opened(RAPT_METRICS_TENSORBOARD, true);
    for (int step = 0; step < 300; step++)
        cr_expect(rapt_metrics_write(metrics, step,
                                     RAPT_METRIC_ROW({"loss/training", 1. / (1 + step)}, {"rate", step})),
                  "%s", rapt_error());
    cr_expect(rapt_metrics_write(metrics, 1000000, RAPT_METRIC_ROW({"loss/training", 0.25})));
    cr_expect(rapt_metrics_rewind(metrics, 500000));
    cr_expect(rapt_metrics_write(metrics, 500000, RAPT_METRIC_ROW({"loss/training", 0.125})));
    cr_expect(rapt_metrics_write(more, 7, RAPT_METRIC_ROW({"more", -2})));
    cr_expect(rapt_metrics_close(metrics) && rapt_metrics_close(more));
    snprintf(command, sizeof command, "python3 '%s/tests/optim/read_events.py' '%s'", RAPT_SOURCE_ROOT, path);
    const int status = system("python3 -c ''") == 0 ? system(command) : 0;
    cr_expect_eq(status, 0, "read_events.py: %d", status);
    cr_expect_eq(remove_folder(), 2);
    expect_no_error();
}

#ifndef _WIN32 /* which has no device that is full */
Test(metrics, full_disk)
{
    unlink(path);
    cr_assert_eq(symlink("/dev/full", path), 0);
    rapt_metrics *metrics = rapt_metrics_open(path, RAPT_METRICS_JSON_LINES, false);
    cr_expect(!metrics || !rapt_metrics_write(metrics, 0, RAPT_METRIC_ROW({"loss", 1})));
    cr_expect_eq(rapt_error_get_code(), RAPT_ERROR_FILE, "%s", rapt_error());
    rapt_metrics_close(metrics);
    rapt_clear_error();
    cr_expect_null(rapt_metrics_open(path, RAPT_METRICS_CSV, true));
    expect_error(RAPT_ERROR_FILE, "is no regular file");
}
#endif

#ifndef _WIN32 /* which has no limit of a file's size, and keeps names of open files */
/* Writes as many rows as go into 64 bytes, and one more. */
static void fill_up(rapt_metrics *metrics)
{
    struct rlimit before;
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){64, before.rlim_max}), 0);
    int rows = 0;
    while (rows < 20 && rapt_metrics_write(metrics, rows, RAPT_METRIC_ROW({"loss", 0.25}))) rows++;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    cr_expect(rows > 1 && rows < 20, "%d", rows);
    expect_error(RAPT_ERROR_FILE, "File too large");
}

/* The file that was opened is the one that is cut and goes on, though another has its name now. */
Test(metrics, a_failed_write_leaves_alone_what_took_the_place_of_the_file)
{
    char moved[40];
    snprintf(moved, sizeof moved, "%s.old", path);
    rapt_metrics *metrics = opened(RAPT_METRICS_CSV, false);
    cr_assert_eq(rename(path, moved), 0);
    static const char others[] = "the rows of another run, which are longer than what was written so far: 0, 1, 2, 3\n";
    FILE *other = fopen(path, "wb");
    cr_assert(other && fputs(others, other) >= 0 && fclose(other) == 0);
    fill_up(metrics);
    cr_expect_str_eq(text_of_file(path), others);
    cr_expect(rapt_metrics_write(metrics, 100, RAPT_METRIC_ROW({"loss", 1})), "%s", rapt_error());
    cr_expect(rapt_metrics_close(metrics));
    const char *text = text_of_file(moved), *end = strstr(text, "\n100,1\n");
    cr_expect(end && strlen(end) == strlen("\n100,1\n"), "%s", text);
    unlink(moved);
}

/* A child that closes what it inherited lets nobody in; one that keeps it keeps nobody out when the parent is done. */
Test(metrics, forks_of_a_writer)
{
    rapt_metrics *metrics = opened(RAPT_METRICS_CSV, false);
    for (int keeps = 0; keeps < 2; keeps++) {
        const pid_t child = fork();
        cr_assert_geq(child, 0);
        if (child == 0 && keeps) pause();
        if (child == 0) _exit(!rapt_metrics_close(metrics));
        if (!keeps) cr_expect_eq(waitpid(child, NULL, 0), child);
        cr_expect_null(rapt_metrics_open(path, RAPT_METRICS_CSV, true));
        expect_error(RAPT_ERROR_FILE, "is being written already");
        if (!keeps) continue;
        cr_expect(rapt_metrics_close(metrics) && rapt_metrics_close(opened(RAPT_METRICS_CSV, true)));
        cr_assert(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    }
}
#endif

/* Whatever an old file holds, going on takes little memory; what was written can go on. */
Test(metrics, longest_line_of_names)
{
    enum { most = 1 << 18, many = 2000 };
    static char names[many][rapt_metrics_name_size];
    static rapt_metric row[many];
    for (int i = 0; i < many; i++) {
        snprintf(names[i], sizeof names[i], "%d%0100d", i, 0);
        row[i] = (rapt_metric){names[i], i};
    }
    rapt_metrics *metrics = opened(RAPT_METRICS_CSV, false);
    cr_expect(rapt_metrics_write(metrics, 0, many, row));
    cr_expect(rapt_metrics_close(metrics));
    metrics = opened(RAPT_METRICS_CSV, true);
    cr_expect(rapt_metrics_write(metrics, 1, many, row));
    cr_expect(rapt_metrics_close(metrics));
    for (int i = 0; i < many; i++) memset(names[i], 'a' + i % 26, 150 + (size_t)i / 26);
    metrics = opened(RAPT_METRICS_CSV, false);
    cr_expect_not(rapt_metrics_write(metrics, 0, many, row));
    expect_error(RAPT_ERROR_VALUE, "the names of 2000 metrics take more than 262144 bytes");
    rapt_metrics_close(metrics);
    for (int whole = 0; whole < 2; whole++) {
        static char text[2 * most + 8] = "step";
        for (int i = 0; i < most; i++) memcpy(text + 4 + 2 * i, ",a", 2);
        text[2 * most + 4] = whole ? '\n' : '\0';
        write_text(text);
        cr_expect_null(rapt_metrics_open(path, RAPT_METRICS_CSV, true), "nothing is cut, though it is no whole line");
        expect_error(RAPT_ERROR_FORMAT, "of at most 262144 bytes");
    }
}

/* What is not ours is left byte for byte, and the row is named where a quote hides what comes behind it. */
Test(metrics, foreign_files_are_left_as_they_are)
{
    static const struct {
        rapt_metrics_format format;
        const char *text, *part;
    } cases[] = {
        {RAPT_METRICS_CSV, "epoch,loss\n1,2\n3,4", "is no list of names"},
        {RAPT_METRICS_CSV, "name;wert", "is no list of names"},
        {RAPT_METRICS_CSV, "steps", "is no list of names"},
        {RAPT_METRICS_CSV, "st,a", "is no list of names"},
        {RAPT_METRICS_CSV, "step,,a", "is no list of names"},
        {RAPT_METRICS_CSV, "step,5\" gun\n1,2\n3,4\n", "is no list of names"},
        {RAPT_METRICS_CSV, "step,\"5\" gun\n1,2\n3,4\n", "is no list of names"},
        {RAPT_METRICS_CSV, "step,loss,note\n1,2,\n2,3,5\" gun\n3,4,\n4,5,\n", "row 2 of '"},
        {RAPT_METRICS_CSV, "step,loss,note\n1,2,\n2,3,\"5\" gun\n3,4,\n4,5,\n", "row 2 of '"},
        {RAPT_METRICS_CSV, "step,loss,note\n1,2,\"gun\n2,3,\n3,4,\n4,5,", "row 1 of '"},
        {RAPT_METRICS_JSON_LINES, "some words", "ends with a part of a line that is no row"},
        {RAPT_METRICS_JSON_LINES, "{\"step\": 1}\n{\"epoch\": 2", "ends with a part of a line that is no row"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text(cases[i].text);
        cr_expect_null(rapt_metrics_open(path, cases[i].format, true), "%s", cases[i].text);
        expect_error(RAPT_ERROR_FORMAT, cases[i].part);
        cr_expect_str_eq(text_of_file(path), cases[i].text);
    }
}

/* Wherever the end of what we write is lost, also between quotes, the rest goes on. */
Test(metrics, files_that_were_cut_anywhere)
{
    static const rapt_metrics_format formats[] = {RAPT_METRICS_CSV, RAPT_METRICS_JSON_LINES};
    static char text[4096];
    for (int i = 0; i < 2; i++) {
        rapt_metrics *metrics = opened(formats[i], false);
        for (int row = 0; row < 2; row++)
            cr_expect(rapt_metrics_write(metrics, row, RAPT_METRIC_ROW({"a,\"\n\"b\n", row}, {"\"", 0.5}, {"\r", -1})));
        cr_expect(rapt_metrics_close(metrics));
        snprintf(text, sizeof text, "%s", text_of_file(path));
        for (size_t length = strlen(text); length-- > 0;) {
            text[length] = '\0';
            write_text(text);
            metrics = opened(formats[i], true);
            cr_expect(rapt_metrics_close(metrics));
            const char *rest = text_of_file(path);
            cr_expect(strncmp(text, rest, strlen(rest)) == 0 && (!*rest || rest[strlen(rest) - 1] == '\n'), "%s", rest);
        }
    }
    expect_no_error();
}

/* Rows of other programs may have texts, with the rules of CSV. */
Test(metrics, rows_with_quotes_go_on)
{
    write_text("step,note,loss\r\n1,\"a \"\"b\"\", c\nd\",2\r\n2,\"\",3\r\n3,\"par");
    rapt_metrics *metrics = opened(RAPT_METRICS_CSV, true);
    cr_expect(rapt_metrics_rewind(metrics, 2), "%s", rapt_error());
    cr_expect(rapt_metrics_write(metrics, 4, RAPT_METRIC_ROW({"loss", 5})));
    cr_expect(rapt_metrics_close(metrics));
    cr_expect_str_eq(text_of_file(path), "step,note,loss\r\n1,\"a \"\"b\"\", c\nd\",2\r\n4,,5\n");
    expect_no_error();
}

Test(metrics, a_file_has_one_writer)
{
    rapt_metrics *metrics = opened(RAPT_METRICS_CSV, false);
    cr_expect(rapt_metrics_write(metrics, 1, RAPT_METRIC_ROW({"x", 2})));
    for (int i = 0; i < 4; i++) {
        cr_expect_null(rapt_metrics_open(path, i / 2 ? RAPT_METRICS_CSV : RAPT_METRICS_JSON_LINES, i % 2));
        expect_error(RAPT_ERROR_FILE, "is being written already, by this program or another one");
    }
    cr_expect_str_eq(text_of_file(path), "step,x\n1,2\n");
    cr_expect(rapt_metrics_close(metrics));
}

Test(metrics, wrong_uses)
{
    cr_expect_null(rapt_metrics_open(NULL, RAPT_METRICS_CSV, false));
    expect_error(RAPT_ERROR_NULL, "path is NULL");
    cr_expect_null(rapt_metrics_open(path, (rapt_metrics_format)9, false));
    expect_error(RAPT_ERROR_VALUE, "9 is not a format");
    cr_expect_null(rapt_metrics_open("/nowhere/at/all", RAPT_METRICS_CSV, false));
    expect_error(RAPT_ERROR_FILE, "'/nowhere/at/all' cannot be written");
    cr_expect_null(rapt_metrics_open(path, RAPT_METRICS_TENSORBOARD, false));
    expect_error(RAPT_ERROR_FILE, "is no folder");
    write_text("some text\n");
    cr_expect_null(rapt_metrics_open(path, RAPT_METRICS_CSV, true));
    expect_error(RAPT_ERROR_FORMAT, "is no list of names that begins with step");
    rapt_metrics *metrics = opened(RAPT_METRICS_JSON_LINES, false);
    cr_expect_not(rapt_metrics_write(NULL, 0, RAPT_METRIC_ROW({"x", 1})));
    expect_error(RAPT_ERROR_NULL, "metrics is NULL");
    cr_expect_not(rapt_metrics_write(metrics, 0, 0, NULL));
    expect_error(RAPT_ERROR_VALUE, "0 metrics");
    cr_expect_not(rapt_metrics_write(metrics, 0, 1, NULL));
    expect_error(RAPT_ERROR_NULL, "list is NULL");
    cr_expect_not(rapt_metrics_write(metrics, 0, RAPT_METRIC_ROW({NULL, 1})));
    expect_error(RAPT_ERROR_NULL, "metric 0 is NULL");
    cr_expect_not(rapt_metrics_write(metrics, 0, RAPT_METRIC_ROW({"", 1})));
    expect_error(RAPT_ERROR_VALUE, "0 bytes");
    cr_expect_not(rapt_metrics_write(metrics, 0, RAPT_METRIC_ROW({"x", 1}, {"loss \xff", 1})));
    expect_error(RAPT_ERROR_VALUE, "the name of metric 1 is not UTF-8");
    cr_expect_not(rapt_metrics_write(metrics, 0, RAPT_METRIC_ROW({"step", 1})));
    expect_error(RAPT_ERROR_VALUE, "is called step");
    cr_expect_not(rapt_metrics_write(metrics, 0, RAPT_METRIC_ROW({"x", 1}, {"y", 1}, {"x", 1})));
    expect_error(RAPT_ERROR_VALUE, "metrics 0 and 2 are both called 'x'");
    cr_expect_str_eq(text_of_file(path), "");
    cr_expect(rapt_metrics_close(metrics));
    cr_expect(rapt_metrics_close(NULL));
    expect_no_error();
}
