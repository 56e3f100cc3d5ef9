/* Single numbers, texts and tensors of a known shape in archives, with the checks that loading needs. */
#ifndef RAPT_OPTIM_ARCHIVE_H
#define RAPT_OPTIM_ARCHIVE_H

#include <rapt/tensor.h>

/* An int64 scalar. */
bool rapt_archive_add_integer(rapt_archive *archive, const char *name, int64_t value);

/* False and an error of that code unless the value is in 0 … 2⁶² − 1, as what is read back must be. */
bool rapt_archive_check_integer(const char *op, rapt_error_code code, const char *name, int64_t value);

/* Back; an error when it is missing, something else, or not in 0 … 2⁶² − 1. */
bool rapt_archive_get_integer(const char *op, const rapt_archive *archive, const char *name, int64_t *value);

/* The tensor of that name; NULL and an error when it is missing or of another dtype or shape. */
const rapt_tensor *rapt_archive_get(const char *op, const rapt_archive *archive, const char *name, rapt_dtype dtype,
                                    int rank, const int64_t *shape);

/* False and an error unless the text under that key is the expected one. */
bool rapt_archive_check_text(const char *op, const rapt_archive *archive, const char *key, const char *expected);

#endif
