/* Reading JSON piece by piece: strict (RFC 8259, UTF-8), without memory of its own and without recursion. */
#ifndef RAPT_TENSOR_JSON_H
#define RAPT_TENSOR_JSON_H

#include <rapt/base.h>

/* A text that is being read; strings are decoded in it. The first error stays; from then on nothing is read. */
typedef struct rapt_json {
    char *begin, *next, *end;
    const char *error; /* what is wrong at next; NULL: nothing so far */
} rapt_json;

/* Takes the mark if it is what comes next, after white space. */
bool rapt_json_take(rapt_json *json, char mark);

/* For the head of a loop over an object or array whose opening mark was taken: is there another entry? Takes the comma
 * before it, or the closing mark. *first is true before the first call. False at the end, and after an error. */
bool rapt_json_more(rapt_json *json, char close, bool *first);

/* A string, closed by a NUL; it lies in the text. NULL and an error for what is none, is no UTF-8, or has a NUL in
 * it. */
char *rapt_json_string(rapt_json *json);

/* A string and the colon behind it. */
char *rapt_json_key(rapt_json *json);

/* A whole number of 0 or more, below 2^63. False, and no error, when something else comes next. */
bool rapt_json_count(rapt_json *json, int64_t *count);

/* Any value, of at most 64 levels; anything else is an error. */
bool rapt_json_skip(rapt_json *json);

/* Nothing but white space is left; anything else is an error. */
bool rapt_json_end(rapt_json *json);

#endif
