/* safetensors files in memory: tensors lie in the file, halves stay halves. */
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include <rapt.h>

#include "safetensors_file.h"
#include "tensor/core.h"
#include "tensor/memory.h"

TestSuite(safetensors_map, .init = make_directory, .fini = remove_directory);

static int64_t live(void)
{
    return rapt_memory_get_statistics().live_bytes;
}

static rapt_archive *map(void)
{
    rapt_archive *archive = rapt_map_safetensors(path);
    cr_assert_not_null(archive, "%s", rapt_error());
    return archive;
}

/* A file of that header, filled with spaces to a size that leaves the data aligned but for `shift` bytes. */
static void write_parts(const char *header, size_t shift, const void *data, size_t size)
{
    char bytes[1024] = {0};
    const size_t length = strlen(header), padded = (length + 7) / 8 * 8 + shift;
    memset(bytes + 8, ' ', padded);
    memcpy(bytes + 8, header, length);
    bytes[0] = (char)padded, bytes[1] = (char)(padded >> 8);
    memcpy(bytes + 8 + padded, data, size);
    write_file(bytes, 8 + padded + size);
}

Test(safetensors_map, tensors_lie_in_the_file_and_outlive_the_archive)
{
    if (!is_little_endian) cr_skip_test("numbers of more than a byte are copied");
    RAPT_SCOPE;
    rapt_archive *small = rapt_archive_new(), *large = rapt_archive_new();
    cr_assert(rapt_archive_add(small, "one", rapt_full(RAPT_FLOAT32, RAPT_SHAPE(4), 3)) &&
              rapt_archive_add(small, "two", rapt_full(RAPT_FLOAT64, RAPT_SHAPE(2, 2), 3)));
    cr_assert(rapt_archive_add(large, "large", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1 << 16))));
    cr_assert(rapt_save_safetensors(path, large));
    rapt_archive_free(large);
    const int64_t before = live();
    large = map();
    cr_expect_lt(live() - before, 4096, "the elements were copied");
    cr_expect_eq(rapt_item(rapt_sum(rapt_archive_find(large, "large"), RAPT_ALL_AXES, false)), 1 << 16);
    rapt_archive_free(large);
    cr_assert(rapt_save_safetensors(path, small));
    rapt_archive_free(small);
    rapt_archive *archive = map();
    cr_expect_eq(rapt_archive_count(archive), 2);
    rapt_tensor *one = rapt_retain(rapt_archive_find(archive, "one")), *two = rapt_archive_find(archive, "two");
    cr_expect_eq((const char *)rapt_data(two) - (const char *)rapt_data(one), 16, "not the places of the file");
    cr_expect_str_eq(rapt_archive_stored_type(archive, 1), "F64");
    cr_expect_null(rapt_archive_stored_type(archive, 2));
    cr_expect_not(rapt_fill(one, 0));
    expect_error(RAPT_ERROR_VALUE, "memory that may only be read");
    rapt_archive_free(archive);
    cr_expect_eq(rapt_at(one, (int64_t[]){2}), 3);
    rapt_release(one);
    expect_no_error();
}

static const char halves[] = "{\"b\":{\"dtype\":\"BF16\",\"shape\":[2,2],\"data_offsets\":[0,8]},"
                             "\"f\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[8,14]},"
                             "\"n\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[14,16]}}";
static uint16_t bits[] = {0x3f80, 0xc000, 0x4049, 0x7f80, 0x3c00, 0xc000, 0x0001, 0x4040};

Test(safetensors_map, halves_are_kept_as_stored)
{
    RAPT_SCOPE;
    as_in_file(bits, sizeof bits, 2);
    for (size_t shift = 0; shift < 2; shift++) { /* at an odd address, too */
        write_parts(halves, shift, bits, sizeof bits);
        rapt_archive *archive = map();
        rapt_tensor *b = rapt_archive_find(archive, "b"), *f = rapt_archive_find(archive, "f");
        cr_expect(rapt_get_dtype(b) == RAPT_FLOAT32 && rapt_rank(b) == 2 && rapt_size(b, 1) == 2);
        cr_expect(rapt_at(b, (int64_t[]){0, 1}) == -2 && rapt_at(b, (int64_t[]){1, 0}) == 3.140625);
        cr_expect(isinf(rapt_at(b, (int64_t[]){1, 1})));
        cr_expect(rapt_at(f, (int64_t[]){1}) == -2 && rapt_at(f, (int64_t[]){2}) == 0x1p-24);
        cr_expect_eq(rapt_item(rapt_archive_tensor(archive, 2)), 3);
        cr_expect_neq(rapt_archive_find(archive, "b"), b, "each time a new one");
        cr_expect_not(rapt_fill(b, 0));
        expect_error(RAPT_ERROR_VALUE, "memory that may only be read");
        const char *const types[] = {"BF16", "F16", "BF16"};
        for (int64_t i = 0; i < 3; i++) cr_expect_str_eq(rapt_archive_stored_type(archive, i), types[i]);
        char other[80]; /* Windows replaces no file that is mapped */
        snprintf(other, sizeof other, "%s/b.safetensors", directory);
        cr_assert(rapt_save_safetensors(other, archive), "%s", rapt_error());
        rapt_archive_free(archive);
        cr_assert(remove(path) == 0 && rename(other, path) == 0);
        size_t size;
        char *saved = read_file(&size);
        cr_expect(size > sizeof bits && memcmp(saved + size - sizeof bits, bits, sizeof bits) == 0, "other bytes");
        free(saved);
        archive = map();
        cr_expect_str_eq(rapt_archive_stored_type(archive, 0), "BF16");
        rapt_archive_free(archive);
    }
    expect_no_error();
}

/* A module takes its weights from halves; what is not asked for is not widened. */
Test(safetensors_map, modules_load_from_a_mapped_file)
{
    RAPT_SCOPE;
    write_parts("{\"bias\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[0,2]},"
                "\"other\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[2,8]},"
                "\"weight\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[8,16]}}",
                0, as_in_file((float[]){0, 0, 1.5f, 2}, 16, 4), 16);
    rapt_linear *linear = rapt_linear_new(2, 1, RAPT_BIAS);
    rapt_archive *archive = map();
    const int64_t before = live();
    cr_expect(rapt_module_from_archive(&linear->module, NULL, archive), "%s", rapt_error());
    cr_expect_eq(live(), before);
    cr_expect(rapt_at(linear->weight, (int64_t[]){0, 1}) == 2 && rapt_item(linear->bias) == 0);
    if (is_little_endian) {
        cr_expect_not(rapt_module_average(&linear->module, archive, 0.5));
        expect_error(RAPT_ERROR_VALUE, "memory that may only be read");
    }
    rapt_archive_free(archive);
    rapt_module_free(&linear->module);
}

Test(safetensors_map, what_is_not_aligned_is_copied)
{
    RAPT_SCOPE;
    double numbers[] = {1, 2};
    as_in_file(numbers, sizeof numbers, 8);
    write_parts("{\"x\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[0,16]}}", 3, numbers, sizeof numbers);
    rapt_archive *archive = map();
    cr_expect_eq(rapt_at(rapt_archive_find(archive, "x"), (int64_t[]){1}), 2);
    rapt_archive_free(archive);
    expect_no_error();
}

Test(safetensors_map, a_file_that_is_replaced_stays_as_it_was)
{
#ifdef _WIN32
    cr_skip_test("Windows replaces no file that is mapped");
#endif
    RAPT_SCOPE;
    rapt_archive *first = small_archive(1), *second = small_archive(2);
    cr_assert(rapt_save_safetensors(path, first));
    rapt_archive *archive = map();
    cr_assert(rapt_save_safetensors(path, second));
    cr_expect_eq(rapt_at(rapt_archive_find(archive, "two"), (int64_t[]){1, 1}), 1);
    cr_assert(rapt_save_safetensors(path, archive), "onto itself");
    rapt_archive_free(archive);
    archive = map();
    cr_expect_eq(rapt_at(rapt_archive_find(archive, "two"), (int64_t[]){1, 1}), 1);
    rapt_archive_free(archive);
    rapt_archive_free(first);
    rapt_archive_free(second);
    expect_no_error();
}

Test(safetensors_map, bad_files_are_refused)
{
    const int64_t before = live();
    write_file("", 0);
    cr_expect_null(rapt_map_safetensors(path));
    expect_error(RAPT_ERROR_FORMAT, "has 0 bytes");
    write_parts("{\"x\":{\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[0,2]}}", 0, "\1\2", 2);
    cr_expect_null(rapt_map_safetensors(path));
    expect_error(RAPT_ERROR_FORMAT, "is 2; 0 or 1 expected");
    write_parts("{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 0, "1234", 4);
    cr_expect_null(rapt_map_safetensors(path));
    expect_error(RAPT_ERROR_FORMAT, "cut short");
    cr_expect_null(rapt_map_safetensors(NULL));
    expect_error(RAPT_ERROR_NULL, "path is NULL");
    cr_expect_null(rapt_map_safetensors("/no/such/file"));
    expect_error(RAPT_ERROR_FILE, "cannot read '/no/such/file'");
    write_parts(halves, 0, bits, sizeof bits);
    for (int failures = 0; failures < 8; failures++) {
        rapt_memory_fail_after(failures);
        rapt_archive *archive = rapt_map_safetensors(path);
        RAPT_SCOPE;
        rapt_tensor *x = archive ? rapt_archive_find(archive, "b") : NULL;
        rapt_memory_fail_after(-1);
        cr_expect_eq(!x, rapt_error() != NULL);
        rapt_clear_error();
        rapt_archive_free(archive);
    }
    cr_expect_eq(live(), before);
}
