/* safetensors: a file is never half written, whatever stops its writing. */
#include "safetensors_file.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

TestSuite(safetensors_save, .init = make_directory, .fini = remove_directory);

static void expect_content(double value)
{
    rapt_archive *archive = load();
    cr_expect_eq(rapt_at(rapt_archive_find(archive, "one"), (int64_t[]){2}), value);
    cr_expect_eq(rapt_at(rapt_archive_find(archive, "two"), (int64_t[]){1, 1}), value);
    rapt_archive_free(archive);
}

Test(safetensors_save, failing_writes_leave_the_old_file)
{
    rapt_archive *old = small_archive(1), *large = small_archive(2);
    cr_assert(rapt_save_safetensors(path, old));
    cr_assert(rapt_archive_add(large, "large", rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(100000))));
    signal(SIGXFSZ, SIG_IGN);
    const rlim_t limits[] = {0, 5, 100, 300, 5000, 800000};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit limit;
        getrlimit(RLIMIT_FSIZE, &limit);
        limit.rlim_cur = limits[i];
        cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
        const bool saved = rapt_save_safetensors(path, large);
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_FSIZE, &limit);
        cr_expect_not(saved);
        expect_error(RAPT_ERROR_FILE, "save_safetensors: cannot write");
        expect_content(1);
        cr_expect_eq(files(), 1);
    }
    cr_expect(rapt_save_safetensors(path, large));
    expect_content(2);
    rapt_archive_free(old);
    rapt_archive_free(large);
}

Test(safetensors_save, paths_that_cannot_be_written)
{
    rapt_archive *archive = small_archive(1);
    char inside[100];
    snprintf(inside, sizeof inside, "%s/no/such", directory);
    cr_expect_not(rapt_save_safetensors(inside, archive));
    expect_error(RAPT_ERROR_FILE, "/no': No such file");
    cr_expect_not(rapt_save_safetensors(directory, archive));
    expect_error(RAPT_ERROR_FILE, "is not a regular file");
    cr_expect_not(rapt_save_safetensors("", archive));
    expect_error(RAPT_ERROR_FILE, "cannot write ''");
    cr_expect_eq(files(), 0);
    cr_expect_not(rapt_save_safetensors(NULL, archive));
    expect_error(RAPT_ERROR_NULL, "path is NULL");
    cr_expect_not(rapt_save_safetensors(path, NULL));
    expect_error(RAPT_ERROR_NULL, "archive is NULL");
    cr_assert_eq(chdir(directory), 0);
    cr_expect(rapt_save_safetensors("here.safetensors", archive));
    cr_expect_eq(files(), 1);
    rapt_archive_free(archive);
}

/* A process that saves without end is killed at some moment; what it leaves is whole. */
Test(safetensors_save, kill_leaves_the_old_file_or_the_new_one)
{
    rapt_archive *archives[] = {small_archive(1), small_archive(2)};
    cr_assert(rapt_save_safetensors(path, archives[0]));
    for (int i = 0; i < 40; i++) {
        const pid_t child = fork();
        cr_assert_geq(child, 0);
        if (child == 0)
            for (int turn = 1;; turn = !turn) rapt_save_safetensors(path, archives[turn]);
        usleep((useconds_t)(i * 211));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        rapt_archive *archive = load();
        const double value = rapt_at(rapt_archive_find(archive, "one"), (int64_t[]){0});
        cr_expect(value == 1 || value == 2);
        rapt_archive_free(archive);
        expect_content(value);
    }
    rapt_archive_free(archives[0]);
    rapt_archive_free(archives[1]);
}
