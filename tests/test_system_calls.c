/* Calls of the system that fail, one at a time and from one on: what reads and writes files says so, or does without
 * them, and a file is the old one or the new one. The linker puts the functions here before the system's. */
#include "safetensors_file.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <rapt.h>

/* --- the calls --- */

static struct {
    const char *name, *other;
    int at, calls; /* they fail at that call, */
    bool for_good; /* and all later ones */
    int reason;    /* by that of errno; 0: a part is read or written */
    int refused;   /* calls that did */
    bool cannot_read;
} failing;

static bool is_call_to_fail(const char *name)
{
    const bool is_meant = failing.name && (strcmp(name, failing.name) == 0 || strcmp(name, failing.other) == 0);
    if (!is_meant) return false;
    failing.calls++;
    if (failing.calls != failing.at && (!failing.for_good || failing.calls < failing.at)) return false;
    failing.refused++;
    if (failing.reason) errno = failing.reason;
    return true;
}

#define CALL(result, name, in_place, parameters, arguments)                                                            \
    result __real_##name parameters;                                                                                   \
    result __wrap_##name parameters;                                                                                   \
    result __wrap_##name parameters                                                                                    \
    {                                                                                                                  \
        return is_call_to_fail(#name) ? in_place : __real_##name arguments;                                            \
    }

CALL(int, stat64, -1, (const char *file, void *status), (file, status))
CALL(int, fstat64, -1, (int file, void *status), (file, status))
CALL(int, faccessat, -1, (int folder, const char *file, int mode, int flags), (folder, file, mode, flags))
CALL(int, fchmod, -1, (int file, mode_t mode), (file, mode))
CALL(int, fchown, -1, (int file, uid_t owner, gid_t group), (file, owner, group))
CALL(int, fsync, -1, (int file), (file))
CALL(int, renameat, -1, (int from_folder, const char *from, int folder, const char *to),
     (from_folder, from, folder, to))
CALL(int, mkdir, -1, (const char *folder, mode_t mode), (folder, mode))
CALL(int, gethostname, -1, (char *name, size_t size), (name, size))
CALL(int, ftruncate64, -1, (int file, off_t size), (file, size))
CALL(off_t, lseek64, -1, (int file, off_t place, int from), (file, place, from))
CALL(void *, mmap64, (void *)-1, (void *at, size_t size, int access, int flags, int file, off_t place),
     (at, size, access, flags, file, place))
CALL(FILE *, fopen64, NULL, (const char *file, const char *mode), (file, mode))
CALL(int, fflush, EOF, (FILE * stream), (stream))
CALL(int, fseeko64, -1, (FILE * stream, off_t place, int from), (stream, place, from))
CALL(off_t, ftello64, -1, (FILE * stream), (stream))
CALL(size_t, fwrite, __real_fwrite(bytes, size, count / 2, stream),
     (const void *bytes, size_t size, size_t count, FILE *stream), (bytes, size, count, stream))
CALL(ssize_t, write, failing.reason ? -1 : __real_write(file, bytes, (size + 1) / 2),
     (int file, const void *bytes, size_t size), (file, bytes, size))
CALL(ssize_t, read, failing.reason ? -1 : __real_read(file, bytes, (size + 1) / 2),
     (int file, void *bytes, size_t size), (file, bytes, size))
/* What is closed is closed whatever the call says. */
CALL(int, close, (__real_close(file), -1), (int file), (file))
CALL(int, fclose, (__real_fclose(stream), EOF), (FILE * stream), (stream))
CALL(FILE *, freopen64, (__real_fclose(stream), NULL), (const char *file, const char *mode, FILE *stream),
     (file, mode, stream))
/* What cannot be read looks like the end to who does not ask. */
CALL(int, fgetc, (failing.cannot_read = true, EOF), (FILE * stream), (stream))

int __real_ferror(FILE *stream);
int __wrap_ferror(FILE *stream);
int __wrap_ferror(FILE *stream)
{
    return is_call_to_fail("ferror") || failing.cannot_read ? 1 : __real_ferror(stream);
}

int __real_open64(const char *file, int flags, ...);
int __wrap_open64(const char *file, int flags, ...);
int __wrap_open64(const char *file, int flags, ...)
{
    return is_call_to_fail("open64") ? -1 : __real_open64(file, flags, 0666);
}

int __real_openat64(int folder, const char *file, int flags, ...);
int __wrap_openat64(int folder, const char *file, int flags, ...);
int __wrap_openat64(int folder, const char *file, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const mode_t mode = va_arg(more, mode_t);
    va_end(more);
    return is_call_to_fail("openat64") ? -1 : __real_openat64(folder, file, flags, mode);
}

/* --- trials --- */

/* What is done, from what stands there before, and what must hold after. */
typedef struct trial {
    const char *name;
    void (*prepare)(void);
    bool (*succeeds)(void);
    void (*check)(bool good);
    const char *const *calls; /* that may fail, NULL behind the last */
} trial;

typedef struct failure {
    const char *name;
    int reason;
    bool for_good;
} failure;

static const failure failures[] = {{"EIO", EIO, false},
                                   {"EIO from there on", EIO, true},
                                   {"EINVAL", EINVAL, false},
                                   {"EINTR", EINTR, false},
                                   {"a part", 0, false}};

static bool moves_bytes(const char *call)
{
    return strcmp(call, "write") == 0 || strcmp(call, "read") == 0;
}

/* Without these nothing is done: not to tell would be to lie. */
static bool is_needed(const char *call)
{
    static const char *const needed[] = {"fwrite",   "fflush", "write",    "read",
                                         "renameat", "open64", "openat64", "fopen64"};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (strcmp(call, needed[i]) == 0) return true;
    return false;
}

/* False when there are fewer calls. */
static bool try_failure(const trial *t, const char *call, const failure *f, int at)
{
    t->prepare();
    memset(&failing, 0, sizeof failing);
    failing.at = at;
    failing.for_good = f->for_good;
    failing.reason = f->reason;
    failing.name = failing.other = call;
    const bool good = t->succeeds();
    failing.name = NULL;
    const bool goes_on = moves_bytes(call) && (f->reason == 0 || f->reason == EINTR);
    cr_expect(good == !rapt_error(), "%s, %s %d, %s: %s", t->name, call, at, f->name,
              rapt_error() ? rapt_error() : "it fails without an error");
    if (failing.refused > 0 && (goes_on || is_needed(call)))
        cr_expect(good == goes_on, "%s, %s %d, %s: %s", t->name, call, at, f->name,
                  rapt_error() ? rapt_error() : "nobody is told");
    rapt_clear_error();
    t->check(good);
    return failing.refused > 0;
}

static void try_failures(const trial *t)
{
    for (const char *const *call = t->calls; *call; call++) {
        int refused = 0;
        for (size_t k = 0; k < sizeof failures / sizeof *failures; k++) {
            if (!moves_bytes(*call) && (failures[k].reason == EINTR || failures[k].reason == 0)) continue;
            for (int at = 1; try_failure(t, *call, &failures[k], at); at++) refused++;
        }
        cr_expect_gt(refused, 0, "%s: no %s", t->name, *call);
    }
}

static void enter(void)
{
    make_directory();
}

static void leave(void)
{
    remove_directory();
}

TestSuite(system_calls, .init = enter, .fini = leave);

/* --- files of tensors --- */

static bool (*save)(const rapt_archive *archive);
static rapt_archive *(*load_saved)(const char *path);

static bool saves_two(void)
{
    rapt_archive *archive = small_archive(2);
    const bool good = save(archive);
    rapt_archive_free(archive);
    return good;
}

static double saved_number(void)
{
    RAPT_SCOPE;
    rapt_archive *archive = load_saved(path);
    const double number = archive ? rapt_at(rapt_archive_find(archive, "one"), (int64_t[]){0}) : 0;
    rapt_archive_free(archive);
    return number;
}

static void save_one(void)
{
    rapt_archive *archive = small_archive(1);
    cr_assert(save(archive), "%s", rapt_error());
    rapt_archive_free(archive);
}

/* A replaced file is whole, old or new, and a failure leaves nothing beside it. */
static void check_replaced(bool good)
{
    const double number = saved_number();
    cr_expect(number == 2 || (number == 1 && !good), "%g", number);
    cr_expect_eq(files(), 1);
    expect_no_error();
}

static const char *const replacing[] = {"stat64", "faccessat", "open64",   "openat64", "fstat64", "fchmod",
                                        "write",  "fsync",     "renameat", "close",    NULL};

static bool save_safetensors(const rapt_archive *archive)
{
    return rapt_save_safetensors(path, archive);
}

static bool save_npz(const rapt_archive *archive)
{
    return rapt_save_npz(path, archive);
}

Test(system_calls, of_saving)
{
    save = save_safetensors;
    load_saved = rapt_load_safetensors;
    try_failures(&(trial){"safetensors", save_one, saves_two, check_replaced, replacing});
    save = save_npz;
    load_saved = rapt_load_npz;
    try_failures(&(trial){"npz", save_one, saves_two, check_replaced, replacing});
}

static bool saves_npy(void)
{
    return rapt_save_npy(path, rapt_full(RAPT_FLOAT32, RAPT_SHAPE(3), 2));
}

static bool loads_npy(void)
{
    const rapt_tensor *x = rapt_load_npy(path);
    return x && rapt_at(x, (int64_t[]){2}) == 2;
}

static void prepare_npy(void)
{
    cr_assert(saves_npy(), "%s", rapt_error());
}

static void check_npy(bool good)
{
    (void)good;
    cr_expect(loads_npy(), "%s", rapt_error());
    cr_expect_eq(files(), 1);
}

static const char *const reading[] = {"open64", "fstat64", "read", "close", NULL};

Test(system_calls, of_npy)
{
    RAPT_SCOPE;
    try_failures(&(trial){"saving", prepare_npy, saves_npy, check_npy, replacing});
    try_failures(&(trial){"loading", prepare_npy, loads_npy, check_npy, reading});
}

static void save_two(void)
{
    cr_assert(saves_two(), "%s", rapt_error());
}

static bool loads_two(void)
{
    return saved_number() == 2;
}

static void check_loaded(bool good)
{
    (void)good;
    cr_expect(loads_two(), "%s", rapt_error());
}

Test(system_calls, of_loading)
{
    static const char *const seeking[] = {"lseek64", NULL}, *const mapping[] = {"open64", "fstat64", "mmap64", NULL};
    save = save_safetensors;
    load_saved = rapt_load_safetensors;
    try_failures(&(trial){"safetensors", save_two, loads_two, check_loaded, reading});
    load_saved = rapt_map_safetensors;
    try_failures(&(trial){"mapped safetensors", save_two, loads_two, check_loaded, mapping});
    save = save_npz;
    load_saved = rapt_load_npz;
    try_failures(&(trial){"npz", save_two, loads_two, check_loaded, reading});
    try_failures(&(trial){"npz", save_two, loads_two, check_loaded, seeking});
}

/* Of an old file that another owns: the process's group gets no more than everybody where the file's cannot be kept. */
static void save_one_of_others(void)
{
    save_one();
    cr_assert_eq(chown(path, 65534, 65533), 0);
    cr_assert_eq(chmod(path, 0674), 0);
}

static void check_rights(bool good)
{
    struct stat status;
    check_replaced(good);
    cr_assert_eq(stat(path, &status), 0);
    const mode_t mode = status.st_gid == 65533 ? 0674 : 0644;
    cr_expect_eq(status.st_mode & 0777, mode, "%o, not %o", status.st_mode & 0777, mode);
}

Test(system_calls, of_keeping_the_owner)
{
    static const char *const owning[] = {"fchown", "fchmod", NULL};
    if (geteuid() != 0) cr_skip_test("only root can give files away");
    save = save_safetensors;
    load_saved = rapt_load_safetensors;
    try_failures(&(trial){"safetensors", save_one_of_others, saves_two, check_rights, owning});
}

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

static const char *content(void)
{
    static char text[4096];
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
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
    const char *text = content();
    const size_t length = strlen(kept[format]);
    cr_assert(strncmp(text, kept[format], length) == 0, "%s", text);
    const bool is_new = strcmp(text + length, rows[format][1]) == 0;
    const bool is_old = strcmp(text + length, rows[format][0]) == 0, is_cut = text[length] == '\0';
    cr_expect(is_new || (!good && (is_old || is_cut)), "%s", text);
}

static const char *const streaming[] = {"stat64", "fopen64", "fgetc",       "ftello64", "fseeko64",
                                        "fwrite", "fflush",  "ftruncate64", "fclose",   NULL};

Test(system_calls, of_metrics)
{
    static const rapt_metrics_format formats[] = {RAPT_METRICS_CSV, RAPT_METRICS_JSON_LINES};
    for (int i = 0; i < 2; i++) {
        format = formats[i];
        try_failures(&(trial){"metrics that go on", write_rows, goes_on, check_rows, streaming});
    }
}

/* What failed is cut off, the next row goes behind the last whole one; where the file cannot be opened again, no more
 * is written. */
Test(system_calls, of_metrics_that_fail_to_write)
{
    format = RAPT_METRICS_CSV;
    rapt_metrics *metrics = begin_metrics();
    memset(&failing, 0, sizeof failing);
    failing.at = 1;
    failing.reason = EIO;
    failing.name = failing.other = "fwrite";
    cr_expect_not(rapt_metrics_write(metrics, 4, RAPT_METRIC_ROW({"a", 4})));
    expect_error(RAPT_ERROR_FILE, "cannot be written: Input/output error");
    cr_expect(rapt_metrics_write(metrics, 4, RAPT_METRIC_ROW({"a", 5})), "%s", rapt_error());
    cr_expect_str_eq(content(), "step,a,b\n1,1,0.5\n2,2,0.5\n3,3,0.5\n4,5,\n");
    failing.calls = 0;
    failing.for_good = true;
    failing.other = "freopen64";
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

Test(system_calls, of_events)
{
    static const char *const making[] = {"mkdir", "gethostname", "fopen64", "fwrite", "fflush", "fclose", NULL};
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
    if (good) cr_expect_not_null(strstr(content(), "traceEvents"));
    unlink(path);
}

Test(system_calls, of_a_trace)
{
    static const char *const tracing[] = {"fopen64", "fwrite", "fclose", NULL};
    try_failures(&(trial){"a trace", make_none, writes_trace, check_trace, tracing});
}
