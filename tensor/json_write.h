/* Writing JSON to a file that is being replaced. */
#ifndef RAPT_TENSOR_JSON_WRITE_H
#define RAPT_TENSOR_JSON_WRITE_H

#include "tensor/replace_file.h"

/* Where a text goes: it is counted first, with no file, and then written. So it takes no memory. */
typedef struct rapt_json_sink {
    const rapt_replacement *file; /* NULL: only count */
    size_t size;                  /* of all that was put */
    size_t waiting;               /* in the buffer */
    bool failed;
    char buffer[4096];
} rapt_json_sink;

void rapt_json_put(rapt_json_sink *sink, const char *text, size_t size);
void rapt_json_put_text(rapt_json_sink *sink, const char *text);
void rapt_json_put_number(rapt_json_sink *sink, int64_t number);

/* A string of JSON; the text is UTF-8. */
void rapt_json_put_string(rapt_json_sink *sink, const char *text);

/* Writes what is waiting; false when anything could not be written. */
bool rapt_json_flush(rapt_json_sink *sink);

#endif
