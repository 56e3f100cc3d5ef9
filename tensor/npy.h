/* The npy format, in a file of its own or in a member of an npz: a magic number, a header that is a literal of Python,
 * and the elements. https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */
#ifndef RAPT_TENSOR_NPY_H
#define RAPT_TENSOR_NPY_H

#include "crc32.h"
#include "read_file.h"

/* Where an array is read from, and how many bytes of it are left. */
typedef struct rapt_npy_source {
    const rapt_reading *reading;
    rapt_crc32 *sum;  /* of what was read; NULL: none is wanted */
    char where[352];  /* the file, and the member, for errors */
    const char *name; /* of the array */
    int64_t left;
} rapt_npy_source;

/* What the header says. */
typedef struct rapt_npy_header {
    rapt_dtype dtype;
    bool is_swapped; /* the bytes of each element are in the other order than this machine's */
    bool is_fortran; /* the first axis is the densest */
    int rank;
    int64_t shape[RAPT_MAX_RANK];
} rapt_npy_header;

/* Reads the text of a header; false and an error for anything but one. */
bool rapt_npy_header_parse(const rapt_npy_source *source, const char *text, size_t size, rapt_npy_header *header);

/* Writes magic number and header of a row-major array of the tensor's dtype and shape; returns how many bytes. */
#define RAPT_NPY_PREFIX 512
size_t rapt_npy_prefix(const rapt_tensor *tensor, char prefix[RAPT_NPY_PREFIX]);

/* The array that the source consists of, a tensor of the innermost scope; NULL after an error. */
rapt_tensor *rapt_npy_read(rapt_npy_source *source);

#endif
