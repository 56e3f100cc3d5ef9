/* Reading IDX files. */
#include "idx.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"

/* Is it a header of so many sizes, whose product is what follows? */
static bool read_header(const unsigned char *header, size_t size, int rank, int64_t *sizes)
{
    const size_t header_size = 4 + 4 * (size_t)rank;
    enum { bytes = 8 }; /* what the elements are */
    if (size < header_size || header[0] != 0 || header[1] != 0 || header[2] != bytes || header[3] != rank) return false;
    uint64_t left = size - header_size;
    for (int i = 0; i < rank; i++) {
        const unsigned char *h = header + 4 + 4 * i;
        sizes[i] = (int64_t)h[0] << 24 | h[1] << 16 | h[2] << 8 | h[3];
        if (sizes[i] == 0 || left % (uint64_t)sizes[i] != 0) return false;
        left /= (uint64_t)sizes[i];
    }
    return left == 1;
}

unsigned char *idx_read(const char *program, const char *path, int rank, int64_t *sizes)
{
    size_t size;
    unsigned char *bytes = (unsigned char *)file_read(path, &size);
    if (!bytes) {
        fprintf(stderr, "%s: cannot read %s: %s\n", program, path, strerror(errno));
        return NULL;
    }
    if (!read_header(bytes, size, rank, sizes)) {
        fprintf(stderr, "%s: %s is not an IDX file of bytes with %d sizes, or not whole\n", program, path, rank);
        free(bytes);
        return NULL;
    }
    const size_t header_size = 4 + 4 * (size_t)rank;
    return memmove(bytes, bytes + header_size, size - header_size);
}
