/* What libFuzzer makes up, read as numpy's files: whatever it is, the answer is a tensor, an archive or an error, and
 * nothing stays in memory. The first byte says what the rest is: an npy file, an npz file, or the header of an npy file
 * behind a byte that says how much data follows. */
#include <rapt/tensor.h>

#include "fuzz_file.h"

static void write_header(int file, const unsigned char *header, size_t size)
{
    static const unsigned char zeros[255];
    const size_t data = size > 0 ? header[0] : 0, length = size > 0 ? size - 1 : 0;
    const unsigned char prefix[10] =
        {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)length, (unsigned char)(length >> 8)};
    write_all(file, prefix, sizeof prefix);
    write_all(file, header + (size > 0), length);
    write_all(file, zeros, data);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
    if (size == 0) return 0;
    const fuzz_file *made = fuzz_file_empty();
    if (bytes[0] % 3 == 2)
        write_header(made->file, bytes + 1, size - 1);
    else
        write_all(made->file, bytes + 1, size - 1);
    const int64_t live = fuzz_begin();
    {
        RAPT_SCOPE;
        rapt_archive *archive = bytes[0] % 3 == 1 ? rapt_load_npz(made->path) : NULL;
        const rapt_tensor *tensor = bytes[0] % 3 == 1 ? NULL : rapt_load_npy(made->path);
        expect(!(archive || tensor) == (rapt_error() != NULL), "neither an answer nor an error, or both");
        for (int64_t i = 0; archive && i < rapt_archive_count(archive); i++)
            expect(rapt_archive_find(archive, rapt_archive_name(archive, i)) == rapt_archive_tensor(archive, i),
                   "a name stands twice");
        if (tensor) expect(rapt_count(tensor) <= (int64_t)size + 255, "more elements than bytes");
        expect_little_memory(live, size + 255);
        rapt_archive_free(archive);
    }
    fuzz_end(live);
    return 0;
}
