/* Tests of examples/common/idx.c: what IDX files hold, and sentences for what is none. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdlib.h>
#include <unistd.h>

#include "idx.h"
#include "temporary_file.h"

#define HEADER(rank) "\0\0\x08" rank

static unsigned char *read_bytes(const char *bytes, size_t size, int rank, int64_t *sizes)
{
    char path[32];
    write_temporary_file(path, bytes, size);
    unsigned char *read = idx_read("test", path, rank, sizes);
    unlink(path);
    return read;
}

Test(idx, pictures_and_labels)
{
    static const char pictures[] = HEADER("\x03") "\0\0\0\2\0\0\0\1\0\0\0\3"
                                                  "abcdef",
                      labels[] = HEADER("\x01") "\0\0\0\2"
                                                "xy";
    int64_t sizes[3];
    unsigned char *bytes = read_bytes(pictures, sizeof pictures - 1, 3, sizes);
    cr_assert_not_null(bytes);
    cr_expect_eq(sizes[0], 2);
    cr_expect_eq(sizes[1], 1);
    cr_expect_eq(sizes[2], 3);
    cr_expect_arr_eq(bytes, "abcdef", 6);
    free(bytes);
    bytes = read_bytes(labels, sizeof labels - 1, 1, sizes);
    cr_assert_not_null(bytes);
    cr_expect_eq(sizes[0], 2);
    cr_expect_arr_eq(bytes, "xy", 2);
    free(bytes);
}

Test(idx, others)
{
    static const struct {
        const char *bytes;
        size_t size;
    } files[] = {
        {"", 0},
        {HEADER("\x01") "\0\0\0", 7},
        {HEADER("\x02") "\0\0\0\1\0\0\0\1x", 13},
        {"\0\0\x0d\x01"
         "\0\0\0\1x",
         9},
        {HEADER("\x01") "\0\0\0\2x", 9},
        {HEADER("\x01") "\0\0\0\1xy", 10},
        {HEADER("\x01") "\0\0\0\0", 8},
        {HEADER("\x01") "\xff\xff\xff\xffx", 9},
    };
    cr_redirect_stderr();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        int64_t sizes[1];
        cr_expect_null(read_bytes(files[i].bytes, files[i].size, 1, sizes), "file %zu", i);
    }
    /* whose product is more than any number has, and 0 modulo 2^64 */
    int64_t sizes[3];
    cr_expect_null(read_bytes(HEADER("\x03") "\x80\0\0\0\x80\0\0\0\0\0\0\4", 16, 3, sizes));
    cr_expect_null(idx_read("test", "/nowhere", 1, sizes));
}

Test(idx, sentence)
{
    int64_t size;
    cr_redirect_stderr();
    cr_expect_null(idx_read("test", "/nowhere", 1, &size));
    fflush(stderr);
    cr_assert_stderr_eq_str("test: cannot read /nowhere: No such file or directory\n");
}
