/* Reading a file from its beginning to its end, or from places in it. */
#ifndef RAPT_TENSOR_READ_FILE_H
#define RAPT_TENSOR_READ_FILE_H

#include <rapt/tensor.h>

/* A file that is being read, for a function that errors name. */
typedef struct rapt_reading {
    const char *op, *path; /* the path is the caller's and must outlive this */
    int file;
    int64_t size; /* of the file */
} rapt_reading;

/* The error "op: cannot do 'path': why", from errno. False. */
bool rapt_fail_file(const char *op, const char *doing, const char *path);

/* Opens a regular file; anything else could block or has no size. False and an error for what cannot be read; then
 * there is nothing to end. */
bool rapt_reading_begin(rapt_reading *reading, const char *op, const char *path);
void rapt_reading_end(const rapt_reading *reading);

/* False and an error when another file has taken its place since it was opened, which Windows does not allow. */
bool rapt_reading_check_place(const rapt_reading *reading);

/* The next bytes; false and an error when there are fewer. */
bool rapt_reading_take(const rapt_reading *reading, void *data, size_t size);

/* Goes on at that byte. */
bool rapt_reading_seek(const rapt_reading *reading, int64_t place);

/* False and an error when an element of a bool tensor, which was read under that name, is neither 0 nor 1. */
bool rapt_reading_check_bools(const rapt_reading *reading, const char *name, const rapt_tensor *tensor);

#endif
