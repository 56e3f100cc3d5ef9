/* Is a text UTF-8 (RFC 3629)? */
#ifndef RAPT_TENSOR_UTF8_H
#define RAPT_TENSOR_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The bytes of the first character of a text, 0 when it is no UTF-8 or there is none. */
size_t rapt_utf8_length(const char *text, size_t size);

/* Is all of a text UTF-8? */
bool rapt_is_utf8(const char *text);

#endif
