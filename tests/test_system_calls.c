/* Calls of the system that fail while tensors are saved and loaded. */
#include "system_call_trials.h"

#include <rapt.h>

TestSuite(system_calls, .init = make_directory, .fini = remove_directory);

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

static const char *const reading[] = {"open64", "fstat64", "read", "close", NULL};

static bool save_safetensors(const rapt_archive *archive)
{
    return rapt_save_safetensors(path, archive);
}

static bool save_npz(const rapt_archive *archive)
{
    return rapt_save_npz(path, archive);
}

/* The folder of the file that is written gets the number that is free then. */
Test(system_calls, that_do_not_fail_where_standard_input_is_closed)
{
    save = save_safetensors;
    load_saved = rapt_load_safetensors;
    close(0);
    save_one();
    cr_expect_eq(saved_number(), 1);
    check_replaced(false);
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

/* What cannot be written must not get the name: the first call is of the new file, and comes before that. */
Test(system_calls, of_syncing_the_new_file)
{
    save = save_safetensors;
    load_saved = rapt_load_safetensors;
    for (int i = 0; i < 2; i++) {
        save_one();
        fail_call("fsync", 1, i == 0 ? EIO : EINVAL, false);
        cr_expect_not(saves_two());
        failing.name = NULL;
        cr_expect(rapt_error() && strstr(rapt_error(), "sync"), "%s", rapt_error() ? rapt_error() : "no error");
        rapt_clear_error();
        check_replaced(false);
        cr_expect_eq(saved_number(), 1);
    }
}

static char index_path[96];

static bool save_shards(const rapt_archive *archive)
{
    return rapt_save_safetensors_shards(index_path, archive, 12);
}

static void save_one_alone(void)
{
    remove_directory();
    cr_assert(rapt_system_make_folder(directory));
    save_one();
}

/* The index leads to one set. A failure behind its change leaves the older one, too. */
static void check_shards(bool good)
{
    RAPT_SCOPE;
    rapt_archive *archive = rapt_load_safetensors(index_path);
    cr_assert(archive, "%s", rapt_error());
    const double one = rapt_at(rapt_archive_find(archive, "one"), (int64_t[]){2});
    cr_expect(one == 2 || (one == 1 && !good), "%g", one);
    cr_expect_eq(rapt_at(rapt_archive_find(archive, "two"), (int64_t[]){1, 1}), one);
    rapt_archive_free(archive);
    cr_expect(files() == 3 || (files() <= 5 && !good), "%d files", files());
}

Test(system_calls, of_saving_shards)
{
    snprintf(index_path, sizeof index_path, "%s/m.safetensors.index.json", directory);
    save = save_shards;
    try_failures(&(trial){"shards", save_one_alone, saves_two, check_shards, replacing});
    try_failures(&(trial){"shards beside an index", save_one_alone, saves_two, check_shards, reading});
}

static bool save_one_shard(const rapt_archive *archive)
{
    return rapt_save_safetensors_shards(index_path, archive, 1000);
}

/* What was read of the older set is whole here, and need not be: its names may be those of a newer one. */
Test(system_calls, of_a_set_that_is_replaced_while_it_is_read)
{
    snprintf(index_path, sizeof index_path, "%s/m.safetensors.index.json", directory);
    save = save_one_shard;
    save_one();
    failing.meanwhile = save_one;
    cr_expect_null(rapt_map_safetensors(index_path));
    expect_error(RAPT_ERROR_FILE, "m.safetensors.index.json' was replaced while it was read");
}

static int seen;

static void look(rapt_error_code code, const char *message)
{
    (void)code, (void)message;
    seen = files();
}

static void check_seen(bool good)
{
    cr_expect(good || seen == files(), "%d files, then %d", seen, files());
}

/* A handler may end the program: what is to be removed is gone when it is called. */
Test(system_calls, are_cleaned_up_behind_before_the_handler_is_called)
{
    snprintf(index_path, sizeof index_path, "%s/m.safetensors.index.json", directory);
    rapt_error_handler *const before = rapt_on_error(look);
    save = save_safetensors;
    try_failures(&(trial){"safetensors", save_one_alone, saves_two, check_seen, replacing});
    save = save_npz;
    try_failures(&(trial){"npz", save_one_alone, saves_two, check_seen, replacing});
    save = save_shards;
    try_failures(&(trial){"shards", save_one_alone, saves_two, check_seen, replacing});
    rapt_on_error(before);
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
