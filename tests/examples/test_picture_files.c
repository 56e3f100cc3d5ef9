/* Tests of examples/common/picture.h: the files of pictures, and what stands where they go. */
#include "picture_file.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

TestSuite(picture_files, .init = enter, .fini = leave);

Test(picture_files, files_that_cannot_be_written)
{
    struct heatmap heatmap = eye();
    expect_error(picture_heatmaps("/nowhere/a.svg", &heatmap, error, sizeof error), "/nowhere/a.svg': No such file");
    expect_error(picture_heatmaps("picture.jpg", &heatmap, error, sizeof error), "must end in .svg or .png");
    expect_error(picture_heatmaps(".svg", &heatmap, error, sizeof error), "must end in .svg or .png");
    expect_error(picture_heatmaps("", &heatmap, error, sizeof error), "must end in .svg or .png");
    cr_assert_eq(mkdir(path, 0700), 0);
    expect_error(picture_heatmaps(path, &heatmap, error, sizeof error), "not a regular file");
    cr_expect_eq(count_files(), 1);
    cr_assert_eq(rmdir(path), 0);
}

/* A row or a column of so many matrices, each of so many keys or queries, whose labels, titles and axes are wide. */
static void expect_room(int64_t matrices, int64_t tokens, bool is_row)
{
    enum { most = 1000 };
    static const float values[most];
    static const char *labels[most], *titles[most];
    for (int i = 0; i < most; i++) {
        labels[i] = "Wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww";
        titles[i] = "Layer 100";
    }
    cr_assert(matrices * tokens <= most);
    const struct heatmap heatmap = {.values = values,
                                    .rows = is_row ? 1 : matrices,
                                    .columns = is_row ? matrices : 1,
                                    .queries = is_row ? 1 : tokens,
                                    .keys = is_row ? tokens : 1,
                                    .titles = titles,
                                    .row_titles = titles,
                                    .query_labels = labels,
                                    .key_labels = labels,
                                    .x_label = "translation",
                                    .y_label = "translation"};
    cr_expect(picture_heatmaps(path, &heatmap, error, sizeof error), "%s", error);
}

Test(picture_files, what_has_room_is_drawn)
{
    const int64_t matrices[] = {1, 2, 3, 7, 20, 38, 39, 40, 41, 60, 70, 78};
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        const int64_t tokens = picture_room(matrices[i]);
        cr_expect_gt(tokens, 0, "%lld matrices", (long long)matrices[i]);
        expect_room(matrices[i], tokens, true);
        expect_room(matrices[i], tokens, false);
    }
    cr_expect_eq(picture_room(1000), 0);
}

Test(picture_files, a_full_disk_leaves_the_old_file)
{
    struct heatmap heatmap = eye();
    cr_assert(picture_heatmaps(path, &heatmap, error, sizeof error), "%s", error);
    char *before = read_picture();
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {2000, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
    identity[1] = 0.5f;
    setrlimit(RLIMIT_FSIZE, &limit);
    bool svg = picture_heatmaps(path, &heatmap, error, sizeof error);
    setrlimit(RLIMIT_FSIZE, &none);
    expect_error(svg, "File too large");
    char *after = read_picture();
    cr_expect_str_eq(before, after);
    free(before);
    free(after);
    char png[sizeof path];
    snprintf(png, sizeof png, "%s/picture.png", directory);
    setrlimit(RLIMIT_FSIZE, &limit);
    bool written = picture_heatmaps(png, &heatmap, error, sizeof error);
    setrlimit(RLIMIT_FSIZE, &none);
    expect_error(written, "File too large");
    cr_expect_eq(count_files(), 1, "only the old one is there");
}

Test(picture_files, what_stands_at_the_path_stays_what_it_is)
{
    struct heatmap heatmap = eye();
    char link[sizeof path], new[sizeof path];
    snprintf(link, sizeof link, "%s/link.svg", directory);
    snprintf(new, sizeof new, "%s/new.svg", directory);
    cr_assert_eq(symlink("picture.svg", link), 0);
    FILE *file = fopen(path, "w");
    cr_assert(file && fchmod(fileno(file), 0600) == 0);
    fclose(file);
    cr_expect(picture_heatmaps(link, &heatmap, error, sizeof error), "%s", error);
    struct stat status;
    cr_expect(lstat(link, &status) == 0 && S_ISLNK(status.st_mode));
    cr_expect(lstat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0);
    cr_expect_eq(status.st_mode & 0777, 0600);
    unlink(link);
    cr_assert_eq(symlink("new.svg", link), 0);
    expect_error(picture_heatmaps(link, &heatmap, error, sizeof error), "leads to nothing");
    unlink(link);
    cr_assert_eq(mkfifo(link, 0600), 0);
    expect_error(picture_heatmaps(link, &heatmap, error, sizeof error), "not a regular file");
    cr_expect(lstat(link, &status) == 0 && S_ISFIFO(status.st_mode));
    unlink(link);
    cr_assert_eq(symlink("/dev/full", link), 0);
    expect_error(picture_heatmaps(link, &heatmap, error, sizeof error), "not a regular file");
    cr_expect(lstat(link, &status) == 0 && S_ISLNK(status.st_mode));
    unlink(link);
}
