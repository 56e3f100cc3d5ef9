/* safetensors: every way a file can be bad is noticed, and nothing of it stays in memory. */
#include "safetensors_file.h"
#include "safetensors_headers.h"

#include <sys/stat.h>

TestSuite(safetensors_bad, .init = make_directory, .fini = remove_directory);

Test(safetensors_bad, bad_headers_are_refused)
{
    for (size_t i = 0; i < sizeof bad_headers / sizeof *bad_headers; i++) {
        write_header(bad_headers[i].header, bad_headers[i].data);
        if (bad_headers[i].code == RAPT_OK)
            rapt_archive_free(load());
        else
            expect_refused(bad_headers[i].code, bad_headers[i].message);
    }
}

Test(safetensors_bad, bad_data_is_refused)
{
    write_header(TENSOR("\"BOOL\"", "[2]", "[0,2]"), 2);
    size_t size;
    char *bytes = read_file(&size);
    bytes[size - 1] = 2;
    write_file(bytes, size);
    expect_refused(RAPT_ERROR_FORMAT, "element 1 of bool tensor 'a' is 2; 0 or 1 expected");
    free(bytes);
}

Test(safetensors_bad, deep_nesting_is_refused)
{
    enum { depth = 200000 };
    static char bytes[8 + depth] = {0};
    uint64_t size = depth;
    memcpy(bytes, as_in_file(&size, 8, 8), 8);
    memset(bytes + 8, '[', depth);
    memcpy(bytes + 8, "{\"a\":", 5);
    write_file(bytes, sizeof bytes);
    expect_refused(RAPT_ERROR_FORMAT, "byte 5 of the JSON header: tensor 'a' is not an object");
}

Test(safetensors_bad, sizes_of_the_header_are_checked)
{
    const char *const messages[] = {"the file is cut short", "a header of 100000001 bytes; at most 100000000 expected",
                                    "a header of 18446744073709551615 bytes", "a header of 9223372036854775808 bytes"};
    const uint64_t sizes[] = {100000000, 100000001, UINT64_MAX, UINT64_C(1) << 63};
    for (int i = 0; i < 4; i++) {
        uint8_t bytes[10] = {0, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
        for (int j = 0; j < 8; j++) bytes[j] = (uint8_t)(sizes[i] >> 8 * j);
        write_file(bytes, sizeof bytes);
        expect_refused(RAPT_ERROR_FORMAT, messages[i]);
    }
}

Test(safetensors_bad, every_truncation_is_noticed)
{
    rapt_archive *archive = small_archive(1);
    cr_assert(rapt_save_safetensors(path, archive));
    rapt_archive_free(archive);
    size_t size;
    char *bytes = read_file(&size);
    for (size_t length = 0; length < size; length++) {
        write_file(bytes, length);
        expect_refused(RAPT_ERROR_FORMAT, length < 8 ? "a safetensors file has 10 at least" : "the file is cut short");
    }
    write_file(bytes, size);
    rapt_archive_free(load());
    free(bytes);
}

/* Whatever happens to a byte, the answer is an archive or an error. */
Test(safetensors_bad, every_changed_byte_is_survived)
{
    rapt_archive *archive = small_archive(1);
    cr_assert(rapt_save_safetensors(path, archive));
    rapt_archive_free(archive);
    size_t size;
    char *bytes = read_file(&size);
    for (size_t i = 0; i < size; i++) {
        for (int change = 1; change < 256; change *= 2) {
            bytes[i] = (char)(bytes[i] ^ change);
            write_file(bytes, size);
            rapt_archive *changed = rapt_load_safetensors(path);
            cr_expect_neq(changed == NULL, rapt_error() == NULL);
            rapt_archive_free(changed);
            rapt_clear_error();
            bytes[i] = (char)(bytes[i] ^ change);
        }
    }
    free(bytes);
}

Test(safetensors_bad, what_is_no_file_is_refused)
{
    expect_refused(RAPT_ERROR_FILE, "No such file");
    cr_expect_null(rapt_load_safetensors(directory));
    expect_error(RAPT_ERROR_FILE, "is not a regular file");
#ifndef _WIN32 /* whose pipes are no files */
    cr_assert_eq(mkfifo(path, 0600), 0);
    expect_refused(RAPT_ERROR_FILE, "is not a regular file");
#endif
    cr_expect_null(rapt_load_safetensors(NULL));
    expect_error(RAPT_ERROR_NULL, "path is NULL");
}
