/* What libFuzzer makes up, read as a safetensors file: whatever it is, the answer is an archive or an error, and an
 * archive is what its names say. The first byte says how much data follows the header; 255: all that comes is the
 * file. */
#include <stdlib.h>
#include <string.h>

#include <rapt/file.h>
#include <rapt/tensor.h>

#include "fuzz_file.h"

#define PATH "fuzz/file"

static int64_t bytes_of(const rapt_tensor *tensor)
{
    return rapt_count(tensor) * (int64_t)rapt_dtype_size(rapt_get_dtype(tensor));
}

static void check_archive(const rapt_archive *archive, size_t file_size)
{
    int64_t total = 0;
    for (int64_t i = 0; i < rapt_archive_count(archive); i++) {
        rapt_tensor *tensor = rapt_archive_tensor(archive, i);
        expect(tensor && rapt_archive_find(archive, rapt_archive_name(archive, i)) == tensor, "a name stands twice");
        total += bytes_of(tensor);
    }
    expect(total <= 2 * (int64_t)file_size, "more tensors than bytes"); /* half floats become twice as large */
}

/* Mapped, the file holds the same. */
static void check_mapped(const rapt_archive *archive)
{
    char *text = rapt_error() ? strdup(rapt_error()) : NULL;
    rapt_clear_error();
    rapt_archive *mapped = rapt_map_safetensors(PATH);
    expect(!archive == !mapped, "read or mapped, only once an archive");
    expect(!text || (rapt_error() && strcmp(text, rapt_error()) == 0), "read and mapped, two errors");
    for (int64_t i = 0; mapped && i < rapt_archive_count(mapped); i++) {
        const rapt_tensor *a = rapt_archive_tensor(archive, i), *b = rapt_archive_tensor(mapped, i);
        expect(rapt_same_shape(a, b) && memcmp(rapt_data(a), rapt_data(b), (size_t)bytes_of(a)) == 0, "other numbers");
    }
    rapt_archive_free(mapped);
    free(text);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
    if (size == 0) return 0;
    size_t file_size = size - 1;
    if (bytes[0] == 255)
        fuzz_file_put(PATH, bytes + 1, size - 1);
    else
        file_size = fuzz_file_put_parts(PATH, bytes + 1, size - 1, bytes[0] % 128);
    const fuzz_memory before = fuzz_begin();
    {
        RAPT_SCOPE;
        rapt_archive *archive = rapt_load_safetensors(PATH);
        expect(!archive == (rapt_error() != NULL), "neither an archive nor an error, or both");
        if (archive) check_archive(archive, file_size);
        expect_little_memory(before, file_size);
        check_mapped(archive);
        rapt_archive_free(archive);
    }
    fuzz_end(before);
    return 0;
}
