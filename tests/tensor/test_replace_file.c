/* What saving does to what stands at its path: files, links, permissions, and what is no file at all. */
#include "safetensors_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "tensor/replace_file.h"

static rapt_archive *archive;

static void enter(void)
{
    make_directory();
    archive = small_archive(2);
}

static void leave(void)
{
    rapt_archive_free(archive);
    cr_assert_eq(chdir("/"), 0);
    remove_directory();
}

TestSuite(replace_file, .init = enter, .fini = leave);

enum { nobody = 65534 };

/* From here on a process that is not root. */
static void become_nobody(void)
{
    if (geteuid() != 0) return;
    cr_assert_eq(chown(directory, nobody, nobody), 0);
    cr_assert_eq(setegid(nobody), 0);
    cr_assert_eq(seteuid(nobody), 0);
}

static void become_root_again(void)
{
    if (getuid() != 0) return;
    cr_assert_eq(seteuid(0), 0);
    cr_assert_eq(setegid(0), 0);
}

/* The path of a name in the directory of the test. */
static const char *in_directory(const char *name)
{
    static char paths[4][PATH_MAX];
    static int next;
    char *text = paths[next++ % 4];
    snprintf(text, PATH_MAX, "%s/%s", directory, name);
    return text;
}

static struct stat status_of(const char *name)
{
    struct stat status;
    cr_assert_eq(lstat(name, &status), 0, "%s: %s", name, strerror(errno));
    return status;
}

static void save(const char *to)
{
    cr_assert(rapt_save_safetensors(to, archive), "%s", rapt_error());
}

static void expect_saved(const char *where)
{
    cr_expect(S_ISREG(status_of(where).st_mode), "%s is no file", where);
    rapt_archive *again = rapt_load_safetensors(where);
    cr_assert_not_null(again, "%s", rapt_error());
    cr_expect_eq(rapt_at(rapt_archive_find(again, "one"), (int64_t[]){0}), 2);
    rapt_archive_free(again);
}

static void refuse(const char *to, const char *message)
{
    const int before = files();
    cr_expect_not(rapt_save_safetensors(to, archive), "%s", to);
    expect_error(RAPT_ERROR_FILE, message);
    cr_expect_eq(files(), before, "%s: something is left", to);
}

Test(replace_file, what_is_no_file_is_refused_and_stays)
{
    cr_assert_eq(mkfifo(path, 0600), 0);
    refuse(path, "is not a regular file");
    cr_expect(S_ISFIFO(status_of(path).st_mode));

    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", directory);
    int socket_file = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert_eq(bind(socket_file, (struct sockaddr *)&address, sizeof address), 0);
    refuse(address.sun_path, "is not a regular file");
    cr_expect(S_ISSOCK(status_of(address.sun_path).st_mode));
    close(socket_file);

    const char *folder = in_directory("folder");
    cr_assert_eq(mkdir(folder, 0700), 0);
    refuse(folder, "is not a regular file");
    refuse(in_directory("folder/"), "is not a regular file");
    refuse(in_directory("folder/.."), "is not a regular file");
    cr_expect(S_ISDIR(status_of(folder).st_mode));

    const char *link = in_directory("link");
    cr_assert_eq(symlink("/dev/full", link), 0);
    refuse(link, "link' is not a regular file");
    cr_expect(S_ISLNK(status_of(link).st_mode));
    cr_expect(S_ISCHR(status_of("/dev/full").st_mode));
}

Test(replace_file, a_device_stays)
{
    if (mknod(path, S_IFCHR | 0666, makedev(1, 7)) != 0)
        cr_skip_test("this process may not make devices: %s", strerror(errno));
    refuse(path, "is not a regular file");
    cr_expect(S_ISCHR(status_of(path).st_mode));
}

Test(replace_file, links_stay_and_their_target_is_replaced)
{
    cr_assert_eq(mkdir(in_directory("folder"), 0700), 0);
    cr_assert_eq(symlink("folder/second", path), 0);
    cr_assert_eq(symlink("../third", in_directory("folder/second")), 0);
    save(path); /* leads to what is not there yet */
    expect_saved(in_directory("third"));
    write_file("old", 3);
    save(path);
    expect_saved(in_directory("third"));
    cr_expect(S_ISLNK(status_of(path).st_mode));
    cr_expect(S_ISLNK(status_of(in_directory("folder/second")).st_mode));

    char absolute[PATH_MAX];
    snprintf(absolute, sizeof absolute, "%s", in_directory("fourth"));
    cr_assert_eq(symlink(absolute, in_directory("folder/absolute")), 0);
    save(in_directory("folder/absolute"));
    expect_saved(absolute);
    cr_assert_eq(chdir(in_directory("folder")), 0);
    cr_assert_eq(unlink(absolute), 0);
    save("absolute");
    expect_saved(absolute);
}

Test(replace_file, links_that_lead_nowhere)
{
    cr_assert_eq(symlink("b", in_directory("a")), 0);
    cr_assert_eq(symlink("a", in_directory("b")), 0);
    refuse(in_directory("a"), strerror(ELOOP));
    cr_assert_eq(symlink("missing/file", in_directory("c")), 0);
    refuse(in_directory("c"), "/missing': No such file or directory");
    cr_assert_eq(symlink("missing/", in_directory("d")), 0);
    refuse(in_directory("d"), "/missing': No such file or directory");
    /* a file that has lost its name is seen through /proc, but there is nothing to rename over */
    write_file("old", 3);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file);
    unlink(path);
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fileno(file));
    if (access(link, F_OK) == 0) refuse(link, "leads to a file without a name");
    fclose(file);
}

Test(replace_file, permissions_are_kept)
{
    const mode_t modes[] = {0600, 0640, 0644, 0666, 0755, 0200};
    umask(022);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        write_file("old", 3);
        cr_assert_eq(chmod(path, modes[i]), 0);
        save(path);
        cr_expect_eq(status_of(path).st_mode & 07777, modes[i], "%03o became %03o", modes[i],
                     status_of(path).st_mode & 07777);
        unlink(path);
    }
    write_file("old", 3);
    cr_assert_eq(chmod(path, 06755), 0);
    save(path);
    cr_expect_eq(status_of(path).st_mode & 07777, 0755, "as any writing would, it drops set-user-ID");
}

Test(replace_file, a_new_file_follows_the_umask)
{
    const mode_t masks[] = {022, 027, 077, 0};
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        umask(masks[i]);
        save(path);
        cr_expect_eq(status_of(path).st_mode & 07777, 0666 & ~masks[i]);
        unlink(path);
    }
}

Test(replace_file, what_is_written_is_never_more_open_than_the_old_file)
{
    umask(0);
    write_file("old", 3);
    cr_assert_eq(chmod(path, 0600), 0);
    rapt_replacement replacement;
    cr_assert(rapt_replacement_begin(&replacement, "test", path));
    cr_expect_eq(files(), 2);
    struct stat status;
    cr_assert_eq(fstat(replacement.file, &status), 0);
    cr_expect_eq(status.st_mode & 07777, 0600);
    cr_expect_not(rapt_replacement_end(&replacement, false));
    cr_expect_eq(files(), 1);
}

Test(replace_file, owner_and_group_are_kept)
{
    if (geteuid() != 0) cr_skip_test("only root can give files away");
    write_file("old", 3);
    cr_assert_eq(chown(path, nobody, nobody - 1), 0);
    cr_assert_eq(chmod(path, 0640), 0);
    save(path);
    cr_expect_eq(status_of(path).st_uid, nobody);
    cr_expect_eq(status_of(path).st_gid, nobody - 1);
    cr_expect_eq(status_of(path).st_mode & 07777, 0640);
}

/* A group that the process cannot give the file to must not hand its rights to the process's own group. */
Test(replace_file, another_group_gets_no_more_than_everybody)
{
    if (geteuid() != 0) cr_skip_test("only root can make a file of another owner");
    write_file("old", 3);
    cr_assert_eq(chmod(path, 0676), 0);
    become_nobody();
    save(path);
    cr_expect_eq(status_of(path).st_uid, nobody);
    cr_expect_eq(status_of(path).st_gid, nobody);
    cr_expect_eq(status_of(path).st_mode & 07777, 0666);
    become_root_again();
}

Test(replace_file, what_may_not_be_written_stays)
{
    write_file("old", 3);
    cr_assert_eq(chmod(path, 0444), 0);
    become_nobody();
    refuse(path, "cannot write '"); /* though its folder would let it be replaced */
    expect_no_error();
    become_root_again();
    size_t size;
    char *bytes = read_file(&size);
    cr_expect(size == 3 && memcmp(bytes, "old", 3) == 0);
    free(bytes);
}

Test(replace_file, a_folder_that_may_not_be_written)
{
    write_file("old", 3);
    cr_assert_eq(chmod(path, 0666), 0);
    become_nobody();
    cr_assert_eq(chmod(directory, 0500), 0);
    refuse(path, "Permission denied");
    refuse(in_directory("new"), "Permission denied");
    cr_assert_eq(chmod(directory, 0700), 0);
    become_root_again();
}

#ifdef O_PATH
Test(replace_file, a_folder_that_may_not_be_listed)
{
    become_nobody();
    cr_assert_eq(chmod(directory, 0300), 0);
    cr_expect(rapt_can_save(path), "%s", rapt_error());
    for (int i = 0; i < 2; i++) save(path);
    expect_saved(path);
    cr_assert_eq(chmod(directory, 0700), 0);
    cr_expect_eq(files(), 1);
    become_root_again();
    expect_no_error();
}
#endif

/* As in /tmp: whoever may write the file may not give its name to another. */
Test(replace_file, a_file_of_others_in_a_sticky_folder)
{
    if (geteuid() != 0) cr_skip_test("only root can make a file of another owner");
    const char *folder = in_directory("sticky"), *file = in_directory("sticky/file");
    const char *own = in_directory("sticky/new");
    cr_assert(mkdir(folder, 0700) == 0 && chmod(folder, 01777) == 0);
    save(file);
    cr_assert_eq(chmod(file, 0666), 0);
    cr_expect(rapt_can_save(file), "root may");
    become_nobody();
    refuse(file, "cannot replace '");
    cr_expect_not(rapt_can_save(file));
    expect_error(RAPT_ERROR_FILE, "can_save: cannot replace '");
    cr_expect(rapt_can_save(own));
    save(own);
    cr_expect(rapt_can_save(own), "one's own");
    become_root_again();
    cr_expect(unlink(file) == 0 && unlink(own) == 0 && rmdir(folder) == 0);
}

Test(replace_file, other_hard_links_keep_the_old_content)
{
    write_file("old", 3);
    cr_assert_eq(link(path, in_directory("other")), 0);
    save(path);
    expect_saved(path);
    cr_expect_eq(status_of(in_directory("other")).st_size, 3);
}

Test(replace_file, long_names)
{
    char name[300];
    memset(name, 'n', sizeof name);
    name[NAME_MAX] = '\0';
    save(in_directory(name));
    expect_saved(in_directory(name));
    save(in_directory(name));
    memcpy(name + 99, "é", 2); /* the name beside it is cut, but not within a character */
    save(in_directory(name));
    expect_saved(in_directory(name));
    name[NAME_MAX] = 'n', name[NAME_MAX + 1] = '\0';
    refuse(in_directory(name), strerror(ENAMETOOLONG));

    char long_path[PATH_MAX + 100] = "";
    while (strlen(long_path) < PATH_MAX) strcat(long_path, "./");
    strcat(long_path, "x");
    refuse(long_path, strerror(ENAMETOOLONG));
    /* as long as a path may be */
    cr_assert_eq(chdir(directory), 0);
    long_path[0] = '\0';
    while (strlen(long_path) < PATH_MAX - 3) strcat(long_path, "./");
    strcat(long_path, "x");
    save(long_path);
    expect_saved("x");
}

Test(replace_file, relative_paths)
{
    cr_assert_eq(mkdir(in_directory("folder"), 0700), 0);
    cr_assert_eq(chdir(in_directory("folder")), 0);
    save("here");
    expect_saved(in_directory("folder/here"));
    save("../there");
    expect_saved(in_directory("there"));
    save("./../folder/here");
    refuse("", "No such file or directory");
    refuse("missing/", "directory 'missing': No such file");
    refuse("here/file", "Not a directory");
}

Test(replace_file, several_processes_save_at_once)
{
    enum { processes = 4, times = 50 };
    pid_t children[processes];
    for (int i = 0; i < processes; i++) {
        children[i] = fork();
        cr_assert_geq(children[i], 0);
        if (children[i] > 0) continue;
        int failed = 0;
        for (int j = 0; j < times; j++) failed += !rapt_save_safetensors(path, archive);
        _exit(failed);
    }
    for (int i = 0; i < processes; i++) {
        int status;
        waitpid(children[i], &status, 0);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    expect_saved(path);
    cr_expect_eq(files(), 1);
}

Test(replace_file, asking_first)
{
    cr_expect(rapt_can_save(path));
    cr_expect_eq(files(), 0);
    write_file("old", 3);
    const struct stat before = status_of(path);
    cr_expect(rapt_can_save(path));
    const struct stat after = status_of(path);
    cr_expect(after.st_ino == before.st_ino && after.st_size == 3 && after.st_mtim.tv_nsec == before.st_mtim.tv_nsec);
    cr_expect_eq(files(), 1);
    expect_no_error();
    cr_expect_not(rapt_can_save(directory));
    expect_error(RAPT_ERROR_FILE, "can_save: '/tmp/");
    cr_expect_not(rapt_can_save(in_directory("missing/file")));
    expect_error(RAPT_ERROR_FILE, "/missing': No such file");
    if (access("/proc/self", F_OK) == 0) { /* where not even root can make a file */
        cr_expect_not(rapt_can_save("/proc/file"));
        expect_error(RAPT_ERROR_FILE, "cannot create a file beside '/proc/file'");
    }
    cr_expect_not(rapt_can_save(NULL));
    expect_error(RAPT_ERROR_NULL, "path is NULL");
}
