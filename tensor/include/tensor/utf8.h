/* Is a text UTF-8 (RFC 3629), and has it what a terminal takes for a command? */
#ifndef RAPT_TENSOR_UTF8_H
#define RAPT_TENSOR_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The bytes of the first character of a text, 0 when it is no UTF-8 or there is none. */
size_t rapt_utf8_length(const char *text, size_t size);

/* The bytes of the control character, one of ASCII's or of U+0080 to U+009F, with which a text begins; 0: of none. */
size_t rapt_control_length(const char *text);

/* Is all of a text UTF-8? */
bool rapt_is_utf8(const char *text);

#endif
