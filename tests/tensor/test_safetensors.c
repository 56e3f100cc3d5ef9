/* safetensors: round trips, the bytes of the format, half floats, archives. */
#include "safetensors_file.h"

#include <math.h>

#include "tensor/core.h"
#include "tensor/memory.h"

TestSuite(safetensors, .init = make_directory, .fini = remove_directory);

static void expect_same(const rapt_tensor *a, const rapt_tensor *b)
{
    cr_assert(a && b);
    cr_expect_eq(rapt_get_dtype(a), rapt_get_dtype(b));
    cr_expect(rapt_same_shape(a, b));
    a = rapt_as_contiguous(a), b = rapt_as_contiguous(b);
    cr_expect_eq(memcmp(rapt_data(a), rapt_data(b), (size_t)rapt_count(a) * rapt_dtype_size(rapt_get_dtype(a))), 0);
}

Test(safetensors, round_trip)
{
    rapt_archive *archive = rapt_archive_new();
    char name[40];
    for (int i = 0; i < 60; i++) {
        const rapt_dtype dtype = (rapt_dtype)(i % RAPT_DTYPE_COUNT);
        const int64_t shape[] = {i % 3, i % 5 + 1, 2, 1, 1, 1, 1, 1};
        rapt_tensor *tensor = rapt_empty(dtype, i % 9, shape);
        cr_assert(rapt_fill_bernoulli(tensor, 0.5));
        if (rapt_dtype_is_floating(dtype)) cr_assert(rapt_fill_normal(tensor, 0, 1));
        snprintf(name, sizeof name, "layers.%d.\"wéight\"\n\\", i);
        cr_assert(rapt_archive_add(archive, name, tensor));
    }
    rapt_tensor *matrix = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(30, 20));
    rapt_archive_add(archive, "transposed",
                     rapt_new_view(matrix, matrix->data, 2, (int64_t[]){20, 30}, (int64_t[]){1, 20}));
    cr_assert(rapt_archive_add_text(archive, "format", "pt"));
    cr_assert(rapt_archive_add_text(archive, "", "line\nzwei: «ß»"));
    cr_assert(rapt_save_safetensors(path, archive), "%s", rapt_error());
    cr_expect_eq(files(), 1, "nothing is left beside the file");

    rapt_archive *again = load();
    cr_assert_eq(rapt_archive_count(again), 61);
    for (int64_t i = 0; i < 61; i++) {
        cr_expect_str_eq(rapt_archive_name(again, i), rapt_archive_name(archive, i));
        expect_same(rapt_archive_tensor(again, i), rapt_archive_tensor(archive, i));
    }
    cr_expect_str_eq(rapt_archive_find_text(again, "format"), "pt");
    cr_expect_str_eq(rapt_archive_find_text(again, ""), "line\nzwei: «ß»");
    rapt_archive_free(archive);
    rapt_archive_free(again);
    expect_no_error();
}

Test(safetensors, bytes_of_a_file)
{
    const float numbers[] = {1, -2};
    const uint8_t truth = 1;
    rapt_archive *archive = rapt_archive_new();
    rapt_archive_add(archive, "b", rapt_from(RAPT_FLOAT32, RAPT_SHAPE(2), numbers));
    rapt_archive_add(archive, "a", rapt_from(RAPT_BOOL, 0, NULL, &truth));
    rapt_archive_add_text(archive, "k", "v");
    cr_assert(rapt_save_safetensors(path, archive));
    rapt_archive_free(archive);
    const char expected[] =
        "\x98\0\0\0\0\0\0\0"
        "{\"__metadata__\":{\"k\":\"v\"},\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
        "\"a\":{\"dtype\":\"BOOL\",\"shape\":[],\"data_offsets\":[8,9]}}"
        "        \0\0\x80\x3f\0\0\0\xc0\x01";
    size_t size;
    char *bytes = read_file(&size);
    const size_t header = (size_t)(unsigned char)bytes[0];
    cr_expect_eq(header % 8, 0);
    cr_assert_eq(size, 8 + header + 9);
    const size_t length = strcspn(expected + 8, " ");
    cr_expect_eq(memcmp(bytes + 8, expected + 8, length), 0);
    cr_expect_eq(strspn(bytes + 8 + length, " "), header - length);
    cr_expect_lt(header - length, 8);
    cr_expect_eq(memcmp(bytes + 8 + header, expected + sizeof expected - 1 - 9, 9), 0);
    free(bytes);
}

Test(safetensors, empty_archives)
{
    rapt_archive *archive = rapt_archive_new();
    cr_assert(rapt_save_safetensors(path, archive));
    rapt_archive_free(archive);
    archive = load();
    cr_expect_eq(rapt_archive_count(archive), 0);
    rapt_archive_free(archive);
    write_header("{}", 0);
    rapt_archive_free(load());
}

Test(safetensors, half_floats_are_widened)
{
    /* of each sort: 1, −2, the largest, the smallest, infinity, not a number */
    uint16_t half[] = {0x3c00, 0xc000, 0x7bff, 0x0001, 0x7c00, 0x7e00};
    uint16_t brain[] = {0x3f80, 0xc000, 0x7f7f, 0x0001, 0xff80, 0x7fc0};
    const double expected[2][6] = {{1, -2, 65504, 0x1p-24, (double)INFINITY, (double)NAN},
                                   {1, -2, 0x1.fep127, 0x1p-133, -(double)INFINITY, (double)NAN}};
    const char header[] = "{\"h\":{\"dtype\":\"F16\",\"shape\":[6],\"data_offsets\":[0,12]},"
                          "\"b\":{\"dtype\":\"BF16\",\"shape\":[6],\"data_offsets\":[12,24]}}";
    char bytes[8 + sizeof header - 1 + 24] = {(char)(sizeof header - 1)};
    memcpy(bytes + 8, header, sizeof header - 1);
    memcpy(bytes + sizeof bytes - 24, as_in_file(half, 12, 2), 12);
    memcpy(bytes + sizeof bytes - 12, as_in_file(brain, 12, 2), 12);
    write_file(bytes, sizeof bytes);
    rapt_archive *archive = load();
    for (int64_t sort = 0; sort < 2; sort++) {
        rapt_tensor *tensor = rapt_archive_tensor(archive, sort);
        cr_expect_eq(rapt_get_dtype(tensor), RAPT_FLOAT32);
        for (int64_t i = 0; i < 6; i++) {
            const double number = rapt_at(tensor, &i);
            cr_expect(number == expected[sort][i] || (isnan(number) && i == 5), "%d %d: %g", (int)sort, (int)i, number);
        }
    }
    rapt_archive_free(archive);
}

Test(safetensors, all_half_floats_agree_with_their_definition)
{
    enum { count = 65536 };
    const char header[] = "{\"h\":{\"dtype\":\"F16\",\"shape\":[65536],\"data_offsets\":[0,131072]}}";
    static char bytes[8 + sizeof header - 1 + 2 * count] = {(char)(sizeof header - 1)};
    memcpy(bytes + 8, header, sizeof header - 1);
    for (int i = 0; i < count; i++) {
        uint16_t half = (uint16_t)i;
        memcpy(bytes + 8 + sizeof header - 1 + 2 * i, as_in_file(&half, 2, 2), 2);
    }
    write_file(bytes, sizeof bytes);
    rapt_archive *archive = load();
    const float *number = rapt_data(rapt_archive_find(archive, "h"));
    for (int i = 0; i < count; i++) {
        const int exponent = i >> 10 & 31, fraction = i & 1023;
        double expected = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
        if (exponent == 31) expected = fraction ? (double)NAN : (double)INFINITY;
        if (isnan(expected))
            cr_assert(isnan(number[i]));
        else
            cr_assert((double)fabsf(number[i]) == expected && !signbit(number[i]) == (i < 32768), "half %04x",
                      (unsigned)i);
    }
    rapt_archive_free(archive);
}

Test(safetensors, order_and_white_space_of_the_header_do_not_matter)
{
    write_header(" {}", 0);
    expect_refused(RAPT_ERROR_FORMAT, "the header does not begin with '{'");
    write_header("{ \"b\" : {\"shape\" : [ 2 ], \"data_offsets\":[4,6], \"dtype\":\"U8\"},\n"
                 "\"e\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[4,4]},"
                 "\"a\":{\"data_offsets\":[0,4],\"dtype\":\"U8\",\"shape\":[2,2]}}   ",
                 6);
    rapt_archive *archive = load();
    cr_expect_str_eq(rapt_archive_name(archive, 0), "a");
    cr_expect_str_eq(rapt_archive_name(archive, 1), "e");
    cr_expect_str_eq(rapt_archive_name(archive, 2), "b");
    cr_expect_eq(rapt_size(rapt_archive_find(archive, "e"), 1), 7);
    cr_expect_eq(rapt_at(rapt_archive_find(archive, "b"), (int64_t[]){1}), 1);
    rapt_archive_free(archive);
}

Test(safetensors, running_out_of_memory)
{
    rapt_archive *archive = small_archive(1);
    rapt_tensor *transposed = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(4, 2));
    transposed = rapt_new_view(transposed, transposed->data, 2, (int64_t[]){2, 4}, (int64_t[]){1, 2});
    cr_assert(rapt_archive_add(archive, "transposed", transposed));
    int failures = 0;
    for (bool saved = false; !saved; failures++) {
        rapt_memory_fail_after(failures);
        saved = rapt_save_safetensors(path, archive);
        rapt_memory_fail_after(-1);
        cr_expect_eq(files(), saved);
        if (!saved) expect_error(RAPT_ERROR_MEMORY, "no memory");
    }
    cr_expect_gt(failures, 1);
    failures = 0;
    for (rapt_archive *again = NULL; !again; failures++) {
        const int64_t live = rapt_memory_get_statistics().live_bytes;
        rapt_memory_fail_after(failures);
        again = rapt_load_safetensors(path);
        rapt_memory_fail_after(-1);
        if (!again) {
            expect_error(RAPT_ERROR_MEMORY, "load_safetensors: no memory");
            cr_expect_eq(rapt_memory_get_statistics().live_bytes, live);
        }
        rapt_archive_free(again);
    }
    const int blocks = 3; /* the archive and its two tensors */
    cr_expect_gt(failures, blocks);
    rapt_archive_free(archive);
}

Test(safetensors, archives)
{
    const int64_t before = rapt_memory_get_statistics().live_bytes;
    rapt_archive *archive = rapt_archive_new();
    {
        RAPT_SCOPE;
        char name[20];
        for (int i = 0; i < 1000; i++) {
            snprintf(name, sizeof name, "%d", i);
            cr_assert(rapt_archive_add(archive, name, rapt_scalar(RAPT_INT64, i)));
        }
        cr_expect_not(rapt_archive_add(archive, "7", rapt_scalar(RAPT_INT64, 0)));
        expect_error(RAPT_ERROR_VALUE, "the name '7' is in use already");
        cr_expect_not(rapt_archive_add(archive, "__metadata__", rapt_scalar(RAPT_INT64, 0)));
        expect_error(RAPT_ERROR_VALUE, "the name '__metadata__' is the format's own");
        cr_expect_not(rapt_archive_add(NULL, "x", rapt_scalar(RAPT_INT64, 0)));
        expect_error(RAPT_ERROR_NULL, "archive is NULL");
        cr_expect_not(rapt_archive_add(archive, NULL, rapt_scalar(RAPT_INT64, 0)));
        expect_error(RAPT_ERROR_NULL, "name is NULL");
        cr_expect_not(rapt_archive_add(archive, "x", NULL));
        expect_error(RAPT_ERROR_NULL, "the tensor for 'x' is NULL");
    }
    cr_expect_eq(rapt_archive_count(archive), 1000);
    cr_expect_eq(rapt_item(rapt_archive_find(archive, "777")), 777);
    cr_expect_str_eq(rapt_archive_name(archive, 999), "999");
    cr_expect_null(rapt_archive_find(archive, "1000"));
    cr_expect_null(rapt_archive_name(archive, 1000));
    cr_expect_null(rapt_archive_tensor(archive, -1));
    cr_expect_null(rapt_archive_find_text(archive, "7"));
    expect_no_error();
    cr_expect(rapt_archive_add_text(archive, "7", "text"));
    cr_expect_not(rapt_archive_add_text(archive, "7", "text"));
    expect_error(RAPT_ERROR_VALUE, "the name '7' is in use already");
    cr_expect_not(rapt_archive_add_text(archive, "8", NULL));
    expect_error(RAPT_ERROR_NULL, "text is NULL");
    cr_expect_null(rapt_archive_find(NULL, "a"));
    expect_error(RAPT_ERROR_NULL, "archive is NULL");
    cr_expect_null(rapt_archive_find_text(archive, NULL));
    expect_error(RAPT_ERROR_NULL, "key is NULL");
    cr_expect_eq(rapt_archive_count(NULL), 0);
    expect_error(RAPT_ERROR_NULL, "archive is NULL");
    rapt_archive_free(archive);
    rapt_archive_free(NULL);
    cr_expect_eq(rapt_memory_get_statistics().live_bytes, before);
}

Test(safetensors, every_character_comes_back)
{
    char text[400] = "";
    for (int i = 1; i < 128; i++) text[i - 1] = (char)i;
    strcpy(text + 127,
           "\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
    rapt_archive *archive = rapt_archive_new();
    cr_assert(rapt_archive_add_text(archive, text, text));
    cr_assert(rapt_archive_add(archive, text, rapt_scalar(RAPT_FLOAT32, 3)));
    cr_assert(rapt_save_safetensors(path, archive), "%s", rapt_error());
    rapt_archive_free(archive);
    archive = load();
    cr_expect_str_eq(rapt_archive_find_text(archive, text), text);
    cr_expect_eq(rapt_item(rapt_archive_find(archive, text)), 3);
    rapt_archive_free(archive);
    size_t size;
    char *bytes = read_file(&size);
    for (size_t i = 8; i < size - 4; i++) cr_expect_geq((unsigned char)bytes[i], 0x20, "a raw control character");
    free(bytes);
}

Test(safetensors, escapes_are_decoded)
{
    write_header("{\"__metadata__\":{\"\\u00e9\\/\\\\\\\"\":\"\\ud834\\udd1e\\uD7FF\\uffff\\b\\f\\n\\r\\t\\u001f\"}}",
                 0);
    rapt_archive *archive = load();
    const char *text = rapt_archive_find_text(archive, "\xc3\xa9/\\\"");
    cr_assert_not_null(text);
    cr_expect_str_eq(text, "\xf0\x9d\x84\x9e\xed\x9f\xbf\xef\xbf\xbf\b\f\n\r\t\x1f");
    rapt_archive_free(archive);
}

/* As long as a buffer, and longer by each of the next bytes. */
Test(safetensors, headers_of_any_length)
{
    for (int length = 3900; length < 4300; length += 1 + (length < 4000 || length > 4200) * 50) {
        rapt_archive *archive = rapt_archive_new();
        char text[4301];
        memset(text, 'x', (size_t)length);
        text[length] = '\0';
        cr_assert(rapt_archive_add_text(archive, "k", text));
        cr_assert(rapt_archive_add(archive, "t", rapt_scalar(RAPT_FLOAT64, length)));
        cr_assert(rapt_save_safetensors(path, archive));
        rapt_archive_free(archive);
        archive = load();
        cr_expect_str_eq(rapt_archive_find_text(archive, "k"), text);
        cr_expect_eq(rapt_item(rapt_archive_find(archive, "t")), length);
        rapt_archive_free(archive);
    }
}

Test(safetensors, names_and_texts_are_utf8)
{
    rapt_archive *archive = rapt_archive_new();
    rapt_archive_add(archive, "\xff", rapt_scalar(RAPT_FLOAT32, 0));
    cr_expect_not(rapt_save_safetensors(path, archive));
    expect_error(RAPT_ERROR_VALUE, "is not UTF-8");
    rapt_archive_free(archive);
    archive = rapt_archive_new();
    rapt_archive_add_text(archive, "a", "\xc0\x80");
    cr_expect_not(rapt_save_safetensors(path, archive));
    expect_error(RAPT_ERROR_VALUE, "the text '");
    rapt_archive_free(archive);
    cr_expect_eq(files(), 0);
}
