/* numpy's files: what is written is what numpy reads, and nothing but arrays is read. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include <rapt.h>

#include "expect.h"
#include "temporary_file.h"
#include "tensor/memory.h"

static char path[32];

static void begin(void)
{
    write_temporary_file(path, "", 0);
}

static void end(void)
{
    unlink(path);
}

TestSuite(npy, .init = begin, .fini = end);

static void write_bytes(const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    cr_assert(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

static size_t read_bytes(char *bytes, size_t most)
{
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file);
    const size_t size = fread(bytes, 1, most, file);
    fclose(file);
    return size;
}

/* An npy file of that header and those elements. */
static void write_array(int version, const char *header, const void *elements, size_t size)
{
    char bytes[1024] = "\x93NUMPY";
    const size_t length = strlen(header), prefix = version == 1 ? 10 : 12;
    bytes[6] = (char)version;
    bytes[8] = (char)length;
    memcpy(bytes + prefix, header, length);
    if (size) memcpy(bytes + prefix + length, elements, size);
    write_bytes(bytes, prefix + length + size);
}

static rapt_tensor *counted(rapt_dtype dtype)
{
    return rapt_cast(rapt_reshape(rapt_arange(RAPT_INT64, 0, 6, 1), RAPT_SHAPE(2, 3)), dtype);
}

Test(npy, every_dtype_comes_back)
{
    RAPT_SCOPE;
    for (int dtype = 0; dtype < RAPT_DTYPE_COUNT; dtype++) {
        rapt_tensor *x = counted((rapt_dtype)dtype);
        cr_expect(rapt_save_npy(path, x));
        rapt_tensor *y = rapt_load_npy(path);
        cr_assert_not_null(y, "%s", rapt_error());
        cr_expect(rapt_get_dtype(y) == (rapt_dtype)dtype && rapt_same_shape(x, y) && rapt_is_contiguous(y));
        cr_expect_arr_eq(rapt_data(y), rapt_data(x), 6 * rapt_dtype_size((rapt_dtype)dtype));
    }
    for (int rank = 0; rank <= RAPT_MAX_RANK; rank++) {
        const int64_t shape[RAPT_MAX_RANK] = {1, 2, 1, 3, 1, 1, 2, 1};
        rapt_tensor *x = rapt_randn(RAPT_FLOAT64, rank, shape), *y;
        cr_expect(rapt_save_npy(path, x) && (y = rapt_load_npy(path)) && rapt_same_shape(x, y));
    }
    rapt_tensor *empty = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(3, 0)), *back;
    cr_expect(rapt_save_npy(path, empty) && (back = rapt_load_npy(path)) && rapt_same_shape(back, empty));
    expect_no_error();
}

Test(npy, the_bytes_are_those_of_the_format)
{
    RAPT_SCOPE;
    char bytes[256];
    cr_expect(rapt_save_npy(path, rapt_transpose(counted(RAPT_FLOAT32), 0, 1)));
    cr_assert_eq(read_bytes(bytes, sizeof bytes), 128 + 24);
    cr_expect_arr_eq(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }  ";
    cr_expect_arr_eq(bytes + 10, header, sizeof header - 1);
    cr_expect_eq(bytes[127], '\n');
    const uint8_t elements[] = {0, 0, 0,    0,    0, 0, 0x40, 0x40, 0, 0, 0x80, 0x3f,  /* 0, 3, 1, */
                                0, 0, 0x80, 0x40, 0, 0, 0,    0x40, 0, 0, 0xa0, 0x40}; /* 4, 2, 5 */
    cr_expect_arr_eq(bytes + 128, elements, sizeof elements);
    cr_expect(rapt_save_npy(path, rapt_ones(RAPT_BOOL, RAPT_SHAPE(1))));
    read_bytes(bytes, sizeof bytes);
    cr_expect_arr_eq(bytes + 10, "{'descr': '|b1', 'fortran_order': False, 'shape': (1,), }", 57);
    cr_expect(rapt_save_npy(path, rapt_scalar(RAPT_INT64, 1)));
    read_bytes(bytes, sizeof bytes);
    cr_expect_arr_eq(bytes + 10, "{'descr': '<i8', 'fortran_order': False, 'shape': (), }", 55);
}

Test(npy, orders_of_axes_and_of_bytes)
{
    RAPT_SCOPE;
    const uint8_t swapped[] = {0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 1, 0, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff};
    write_array(1, "{'shape': (2, 3), \"descr\": '>i4', 'fortran_order': True}", swapped, sizeof swapped);
    rapt_tensor *x = rapt_load_npy(path);
    cr_assert_not_null(x, "%s", rapt_error());
    const int64_t expected[2][3] = {{1, 3, 5}, {2, 256, -1}};
    for (int64_t i = 0; i < 6; i++) cr_expect_eq(rapt_at_int64(x, (int64_t[]){i / 3, i % 3}), expected[i / 3][i % 3]);
    cr_expect(rapt_stride(x, 0) == 1 && rapt_stride(x, 1) == 2);
    const uint8_t wide[] = {0x3f, 0xf8, 0, 0, 0, 0, 0, 0};
    write_array(2, "{'descr': '>f8', 'fortran_order': False, 'shape': (), }", wide, sizeof wide);
    cr_expect_eq(rapt_item(rapt_load_npy(path)), 1.5);
    expect_no_error();
}

#define DESCR "'descr': '<f4', "
#define ORDER "'fortran_order': False, "

Test(npy, bad_headers_are_refused)
{
    static const struct {
        const char *header;
        rapt_error_code code;
        const char *part;
    } bad[] = {
        {"", RAPT_ERROR_FORMAT, "'{' expected"},
        {"{}", RAPT_ERROR_FORMAT, "each of descr, fortran_order and shape once"},
        {"{" DESCR ORDER "}", RAPT_ERROR_FORMAT, "each of descr"},
        {"{" DESCR DESCR ORDER "'shape': (1,)}", RAPT_ERROR_FORMAT, "each of descr"},
        {"{" DESCR ORDER "'shape': (1,), 'more': 1}", RAPT_ERROR_FORMAT, "each of descr"},
        {"{" DESCR ORDER "'shape': (1)}", RAPT_ERROR_FORMAT, "',' behind the only size"},
        {"{" DESCR ORDER "'shape': (1 2)}", RAPT_ERROR_FORMAT, "',' or ')'"},
        {"{" DESCR ORDER "'shape': (,)}", RAPT_ERROR_FORMAT, "a size"},
        {"{" DESCR ORDER "'shape': (-1,)}", RAPT_ERROR_FORMAT, "a size"},
        {"{" DESCR ORDER "'shape': (1", RAPT_ERROR_FORMAT, "',' or ')'"},
        {"{" DESCR ORDER "'shape': 1}", RAPT_ERROR_FORMAT, "a shape in parentheses"},
        {"{" DESCR ORDER "'shape': (9223372036854775808,)}", RAPT_ERROR_FORMAT, "a size below 2^63"},
        {"{" DESCR ORDER "'shape': (4294967296, 4294967296)}", RAPT_ERROR_MEMORY, TOO_MANY_BYTES},
        {"{" DESCR ORDER "'shape': (1,1,1,1,1,1,1,1,1)}", RAPT_ERROR_SHAPE, "more than 8 axes"},
        {"{" DESCR ORDER "'shape': (1,)} x", RAPT_ERROR_FORMAT, "nothing more"},
        {"{" DESCR "'fortran_order': 0, 'shape': (1,)}", RAPT_ERROR_FORMAT, "True or False"},
        {"{'descr': '<f2', " ORDER "'shape': (1,)}", RAPT_ERROR_DTYPE, "numpy's type '<f2'"},
        {"{'descr': '|f4', " ORDER "'shape': (1,)}", RAPT_ERROR_DTYPE, "numpy's type '|f4'"},
        {"{'descr': '|O', " ORDER "'shape': (1,)}", RAPT_ERROR_DTYPE, "numpy's type '|O'"},
        {"{'descr': '', " ORDER "'shape': (1,)}", RAPT_ERROR_DTYPE, "numpy's type ''"},
        {"{'descr': [('a', '<f4')], " ORDER "'shape': (1,)}", RAPT_ERROR_DTYPE, "records"},
        {"{'descr: 1}", RAPT_ERROR_FORMAT, "the end of a string"},
        {"{" DESCR ORDER "'shape': (2,)}", RAPT_ERROR_FORMAT, "4 bytes of elements where shape [2] of float32 needs 8"},
        {"{" DESCR ORDER "'shape': ()", RAPT_ERROR_FORMAT, "',' or '}'"},
    };
    RAPT_SCOPE;
    const float one = 1;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_array(1, bad[i].header, &one, sizeof one);
        cr_expect_null(rapt_load_npy(path), "%s", bad[i].header);
        expect_error(bad[i].code, bad[i].part);
    }
    write_array(1, "{'descr': '|b1', " ORDER "'shape': (4,)}", &one, sizeof one);
    cr_expect_null(rapt_load_npy(path));
    expect_error(RAPT_ERROR_FORMAT, "0 or 1 expected");
    write_bytes("\x93NUMPX\x01\0\0\0", 10);
    cr_expect_null(rapt_load_npy(path));
    expect_error(RAPT_ERROR_FORMAT, "no npy file");
    write_array(4, "{}", NULL, 0);
    cr_expect_null(rapt_load_npy(path));
    expect_error(RAPT_ERROR_FORMAT, "npy version 4.0");
    write_bytes("\x93NUMPY\x02\0\xff\xff\xff\xff", 12);
    cr_expect_null(rapt_load_npy(path));
    expect_error(RAPT_ERROR_FORMAT, "header of 4294967295 bytes");
    write_bytes("", 0);
    cr_expect_null(rapt_load_npy(path));
    expect_error(RAPT_ERROR_FORMAT, "cut short");
}

static rapt_archive *some(void)
{
    rapt_archive *archive = rapt_archive_new();
    cr_assert(rapt_archive_add(archive, "layer.weight", rapt_transpose(counted(RAPT_FLOAT32), 0, 1)) &&
              rapt_archive_add(archive, "é", rapt_full(RAPT_INT64, 0, NULL, -7)) &&
              rapt_archive_add(archive, "", rapt_zeros(RAPT_BOOL, RAPT_SHAPE(0))));
    return archive;
}

Test(npy, archives_come_back)
{
    RAPT_SCOPE;
    rapt_archive *archive = some();
    cr_expect(rapt_save_npz(path, archive), "%s", rapt_error());
    rapt_archive *back = rapt_load_npz(path);
    cr_assert_not_null(back, "%s", rapt_error());
    cr_expect_eq(rapt_archive_count(back), 3);
    for (int64_t i = 0; i < 3; i++) cr_expect_str_eq(rapt_archive_name(back, i), rapt_archive_name(archive, i));
    cr_expect_eq(rapt_at(rapt_archive_find(back, "layer.weight"), (int64_t[]){2, 1}), 5);
    cr_expect_eq(rapt_item_int64(rapt_archive_find(back, "é")), -7);
    cr_expect_eq(rapt_count(rapt_archive_find(back, "")), 0);
    rapt_archive_free(back);
    rapt_archive_free(archive);
    archive = rapt_archive_new();
    cr_expect(rapt_save_npz(path, archive) && (back = rapt_load_npz(path)) && rapt_archive_count(back) == 0);
    rapt_archive_free(back);
    rapt_archive_free(archive);
    char bytes[100];
    cr_expect_eq(read_bytes(bytes, sizeof bytes), 22);
    cr_expect_arr_eq(bytes, "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22, "as numpy writes and reads it");
    expect_no_error();
}

/* A zip file of nothing has its last record alone; what comes before it, or behind, is looked for. */
Test(npy, archives_of_nothing)
{
    static const char nothing[] = "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    cr_assert_eq(sizeof nothing, 22 + 1);
    for (size_t cut = 0; cut < 2; cut++) {
        FILE *file = fopen(path, "wb");
        cr_assert(file && fwrite(nothing, 1, 22 - cut, file) == 22 - cut && fclose(file) == 0);
        rapt_archive *archive = rapt_load_npz(path);
        cr_expect(cut ? !archive : archive && rapt_archive_count(archive) == 0, "%s", rapt_error());
        if (cut) expect_error(RAPT_ERROR_FORMAT, "cut short");
        rapt_archive_free(archive);
    }
    expect_no_error();
}

/* Whatever byte is damaged: an error, or what was there (a date, say), and nothing stays in memory. */
Test(npy, damaged_archives)
{
    char bytes[2048];
    {
        RAPT_SCOPE;
        rapt_archive *archive = some();
        cr_expect(rapt_save_npz(path, archive));
        rapt_archive_free(archive);
    }
    const size_t size = read_bytes(bytes, sizeof bytes);
    const int64_t live = rapt_memory_get_statistics().live_bytes;
    int errors = 0;
    for (size_t i = 0; i < 2 * size; i++) {
        RAPT_SCOPE;
        const char before = bytes[i / 2];
        bytes[i / 2] = (char)(i % 2 ? ~before : before ^ 1);
        write_bytes(bytes, size);
        bytes[i / 2] = before;
        rapt_archive *archive = rapt_load_npz(path);
        cr_expect_eq(!archive, rapt_error() != NULL);
        if (archive && rapt_archive_find(archive, "layer.weight"))
            cr_expect_eq(rapt_at(rapt_archive_find(archive, "layer.weight"), (int64_t[]){2, 1}), 5);
        errors += !archive;
        rapt_archive_free(archive);
        rapt_clear_error();
    }
    cr_expect_gt(errors, (int)size, "%d of %d", errors, 2 * (int)size);
    for (size_t i = 0; i < size; i++) {
        RAPT_SCOPE;
        write_bytes(bytes, i);
        cr_expect_null(rapt_load_npz(path), "cut after %zu bytes", i);
        rapt_clear_error();
    }
    cr_expect_eq(rapt_memory_get_statistics().live_bytes, live);
}

/* Behind the bytes so far: a number of so many bytes. */
static void put_number(char *bytes, size_t *size, uint32_t number, size_t count)
{
    for (size_t i = 0; i < count; i++) bytes[(*size)++] = (char)(number >> 8 * i);
}

static void put_bytes(char *bytes, size_t *size, const void *more, size_t count)
{
    memcpy(bytes + *size, more, count);
    *size += count;
}

/* The end of a record, from its flags on: a member "a.npy" or "b.npy" of so many bytes. */
static void put_member(char *bytes, size_t *size, const char sum[4], uint32_t length)
{
    put_number(bytes, size, 0, 4); /* flags, method */
    put_number(bytes, size, 0x210000, 4);
    put_bytes(bytes, size, sum, 4);
    put_number(bytes, size, length, 4);
    put_number(bytes, size, length, 4);
    put_number(bytes, size, 5, 2);
    put_number(bytes, size, 0, 2);
}

/* A zip file of a.npy and b.npy, whose records stand where those say; the directory has the places instead, b.npy's
 * first if it is turned. What is between them are zeros. */
static void write_zip(const uint32_t records[2], const uint32_t places[2], bool turned)
{
    enum { length = 128 + 8, directory = 900 };
    char npy[256], sum[4], bytes[2048] = "";
    size_t size;
    {
        RAPT_SCOPE;
        cr_assert(rapt_save_npy(path, rapt_arange(RAPT_FLOAT32, 0, 2, 1)));
        cr_assert_eq(read_bytes(npy, sizeof npy), length);
        rapt_archive *archive = rapt_archive_new();
        cr_assert(rapt_archive_add(archive, "a", rapt_arange(RAPT_FLOAT32, 0, 2, 1)) && rapt_save_npz(path, archive));
        rapt_archive_free(archive);
        read_bytes(bytes, sizeof bytes);
        memcpy(sum, bytes + 14, 4);
        memset(bytes, 0, sizeof bytes);
    }
    for (int i = 0; i < 2; i++) {
        size = records[i];
        put_bytes(bytes, &size, "PK\3\4\x14", 6);
        put_member(bytes, &size, sum, length);
        put_bytes(bytes, &size, i ? "b.npy" : "a.npy", 5);
        put_bytes(bytes, &size, npy, length);
    }
    size = directory;
    for (int i = 0; i < 2; i++) {
        const int which = turned ? !i : i;
        put_bytes(bytes, &size, "PK\1\2\x14\0\x14", 8);
        put_member(bytes, &size, sum, length);
        put_bytes(bytes, &size, "\0\0\0\0\0\0\0\0\0", 10);
        put_number(bytes, &size, places[which], 4);
        put_bytes(bytes, &size, which ? "b.npy" : "a.npy", 5);
    }
    const uint32_t entries = (uint32_t)size - directory;
    put_bytes(bytes, &size, "PK\5\6\0\0\0\0\2\0\2", 12);
    put_number(bytes, &size, entries, 4);
    put_number(bytes, &size, directory, 4);
    put_number(bytes, &size, 0, 2);
    write_bytes(bytes, size);
}

/* In any order and with unused bytes between them; but no byte belongs to two. */
Test(npy, members_lie_apart)
{
    enum { record = 30 + 5 + 128 + 8 };
    static const struct {
        uint32_t records[2], places[2];
        bool good;
    } cases[] = {
        {{0, record}, {0, record}, true}, {{100, 400}, {100, 400}, true},  {{400, 100}, {400, 100}, true},
        {{100, 400}, {100, 100}, false},  {{100, 400}, {400, 400}, false},
    };
    for (size_t i = 0; i < 2 * (sizeof cases / sizeof *cases); i++) {
        RAPT_SCOPE;
        write_zip(cases[i / 2].records, cases[i / 2].places, i % 2);
        rapt_archive *archive = rapt_load_npz(path);
        if (cases[i / 2].good)
            cr_expect(archive && rapt_at(rapt_archive_find(archive, "b"), (int64_t[]){1}) == 1, "%zu: %s", i,
                      rapt_error());
        else
            cr_expect_null(archive, "%zu", i);
        rapt_archive_free(archive);
        if (!cases[i / 2].good) expect_error(RAPT_ERROR_FORMAT, "members overlap");
    }
    expect_no_error();
}

Test(npy, misuse)
{
    RAPT_SCOPE;
    rapt_archive *archive = rapt_archive_new();
    cr_expect_not(rapt_save_npy(path, NULL));
    expect_error(RAPT_ERROR_NULL, "save_npy: tensor is NULL");
    cr_expect_not(rapt_save_npy(NULL, counted(RAPT_UINT8)));
    expect_error(RAPT_ERROR_NULL, "save_npy: path is NULL");
    cr_expect_null(rapt_load_npy(NULL));
    expect_error(RAPT_ERROR_NULL, "load_npy: path is NULL");
    cr_expect_null(rapt_load_npy("/tmp"));
    expect_error(RAPT_ERROR_FILE, "not a regular file");
    cr_expect_not(rapt_save_npz(path, NULL));
    expect_error(RAPT_ERROR_NULL, "save_npz: archive is NULL");
    cr_expect_null(rapt_load_npz("/tmp/no/such/file"));
    expect_error(RAPT_ERROR_FILE, "cannot read '/tmp/no/such/file'");
    rapt_archive_add_text(archive, "author", "x");
    cr_expect_not(rapt_save_npz(path, archive));
    expect_error(RAPT_ERROR_VALUE, "has texts ('author')");
    rapt_archive_free(archive);
    archive = rapt_archive_new();
    rapt_archive_add(archive, "\xff", counted(RAPT_UINT8));
    cr_expect_not(rapt_save_npz(path, archive));
    expect_error(RAPT_ERROR_VALUE, "is not UTF-8");
    rapt_archive_free(archive);
    for (int failures = 0; failures < 3; failures++) {
        rapt_tensor *x = counted(RAPT_FLOAT32);
        cr_assert(rapt_save_npy(path, x));
        rapt_memory_fail_after(failures);
        rapt_tensor *y = rapt_load_npy(path);
        rapt_memory_fail_after(-1);
        if (!y) expect_error(RAPT_ERROR_MEMORY, "no memory");
    }
}
