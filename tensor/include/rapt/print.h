/* Printing a tensor as numpy prints an array. */
#ifndef RAPT_PRINT_H
#define RAPT_PRINT_H

#include <stdio.h>

#include <rapt/base.h>

RAPT_BEGIN_DECLS

/* Prints the values (4 decimals at most, long axes cut with ...), then shape and dtype where they do not show. NULL
 * prints "NULL". */
RAPT_API void rapt_print(const rapt_tensor *tensor);

/* How tensors are printed; all zeros are the defaults. */
typedef struct rapt_print_options {
    int precision;     /* digits after the point; 0 is 4 */
    int64_t threshold; /* more elements than this are summarised; 0 is 1000 */
    int edge_items;    /* elements shown at each end of a summarised axis; 0 is 3 */
    int line_width;    /* 0 is 75 */
} rapt_print_options;

/* The same to a stream; options may be NULL. False after an error of the stream or a NULL stream. */
RAPT_API bool rapt_print_to(FILE *stream, const rapt_tensor *tensor, const rapt_print_options *options);

/* "float32 [2, 3]" into buffer, cut to size; returns buffer. */
RAPT_API char *rapt_describe(const rapt_tensor *tensor, char *buffer, size_t size);

RAPT_END_DECLS

#endif
