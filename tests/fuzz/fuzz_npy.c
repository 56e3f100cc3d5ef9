/* What libFuzzer makes up, read as numpy's files: whatever it is, the answer is a tensor, an archive or an error, and
 * nothing stays in memory. The first byte says what the rest is: an npy file, an npz file, or the header of an npy file
 * behind a byte that says how much data follows. */
#include <stdlib.h>
#include <string.h>

#include <rapt/tensor.h>

#include "fuzz_file.h"

#define PATH "fuzz/file"

static unsigned char *with_prefix(const unsigned char *header, size_t size, size_t *file_size)
{
    const size_t data = size > 0 ? header[0] : 0, length = size > 0 ? size - 1 : 0;
    const unsigned char prefix[10] =
        {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)length, (unsigned char)(length >> 8)};
    unsigned char *file = calloc(sizeof prefix + length + data, 1);
    expect(file, "no memory");
    memcpy(file, prefix, sizeof prefix);
    memcpy(file + sizeof prefix, header + (size > 0), length);
    *file_size = sizeof prefix + length + data;
    return file;
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
    if (size == 0) return 0;
    size_t file_size = size - 1;
    unsigned char *made = bytes[0] % 3 == 2 ? with_prefix(bytes + 1, size - 1, &file_size) : NULL;
    fuzz_file_put(PATH, made ? made : bytes + 1, file_size);
    const fuzz_memory before = fuzz_begin();
    {
        RAPT_SCOPE;
        rapt_archive *archive = bytes[0] % 3 == 1 ? rapt_load_npz(PATH) : NULL;
        const rapt_tensor *tensor = bytes[0] % 3 == 1 ? NULL : rapt_load_npy(PATH);
        expect(!(archive || tensor) == (rapt_error() != NULL), "neither an answer nor an error, or both");
        for (int64_t i = 0; archive && i < rapt_archive_count(archive); i++)
            expect(rapt_archive_find(archive, rapt_archive_name(archive, i)) == rapt_archive_tensor(archive, i),
                   "a name stands twice");
        if (tensor) expect(rapt_count(tensor) <= (int64_t)file_size, "more elements than bytes");
        expect_little_memory(before, file_size);
        rapt_archive_free(archive);
    }
    fuzz_end(before);
    free(made);
    return 0;
}
