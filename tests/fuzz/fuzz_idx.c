/* What libFuzzer makes up, read as an IDX file: the answer is as many bytes as its sizes say, or a sentence. The first
 * byte says how many sizes are expected. */
#include <stdlib.h>

#include "fuzz_file.h"
#include "idx.h"

#define PATH "fuzz/file"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
    if (size == 0) return 0;
    const int rank = 1 + bytes[0] % 3;
    int64_t sizes[3];
    fuzz_file_put(PATH, bytes + 1, size - 1);
    const fuzz_memory before = fuzz_begin();
    fuzz_quiet(true);
    unsigned char *read = idx_read("fuzz", PATH, rank, sizes);
    fuzz_quiet(false);
    int64_t count = 1;
    for (int i = 0; read && i < rank; i++) count *= sizes[i];
    expect(!read || count == (int64_t)size - 1 - 4 - 4 * rank, "sizes of another file");
    for (int64_t i = 0; read && i < count; i++) expect(read[i] == bytes[5 + 4 * rank + i], "another byte");
    free(read);
    expect_little_memory(before, size - 1);
    fuzz_end(before);
    return 0;
}
