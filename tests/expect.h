/* What most tests ask: that there is no error, or the right one. */
#ifndef RAPT_TESTS_EXPECT_H
#define RAPT_TESTS_EXPECT_H

#include <criterion/criterion.h>
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

#define expect_no_error() cr_expect_null(rapt_error(), "%s", rapt_error())

#endif
