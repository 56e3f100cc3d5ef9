/* What most tests ask: that there is no error, or the right one. */
#ifndef RAPT_TESTS_EXPECT_H
#define RAPT_TESTS_EXPECT_H

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include <rapt/tensor.h>

/* The error that stands has that code and the message contains that text; it is cleared. */
#define expect_error(code, part)                                                                                       \
    do {                                                                                                               \
        cr_expect(rapt_error_get_code() == (code), "code %d, not %d: %s", rapt_error_get_code(), (code),               \
                  rapt_error() ? rapt_error() : "no error");                                                           \
        cr_expect(rapt_error() && strstr(rapt_error(), (part)), "'%s' is not in: %s", (part),                          \
                  rapt_error() ? rapt_error() : "no error");                                                           \
        rapt_clear_error();                                                                                            \
    } while (0)

/* What a shape whose bytes a size_t cannot count gives. */
#if SIZE_MAX == UINT64_MAX
#define TOO_MANY_BYTES "more bytes than 64 bits can count"
#else
#define TOO_MANY_BYTES "more bytes than 32 bits can count"
#endif

#define expect_no_error() cr_expect_null(rapt_error(), "%s", rapt_error())

#endif
