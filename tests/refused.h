/* Calls that must be refused, a row each. */
#ifndef RAPT_TESTS_REFUSED_H
#define RAPT_TESTS_REFUSED_H

#include "expect.h"

/* The call gives NULL, 0 or false, and an error with that code and those words. */
#define REFUSED(call, code, words)                                                                                     \
    do {                                                                                                               \
        cr_expect(!(call), "%s", #call);                                                                               \
        expect_error(code, words);                                                                                     \
    } while (0)
#define NULL_IN(call, words) REFUSED(call, RAPT_ERROR_NULL, words)
#define BAD_SHAPE(call, words) REFUSED(call, RAPT_ERROR_SHAPE, words)
#define BAD_DTYPE(call, words) REFUSED(call, RAPT_ERROR_DTYPE, words)
#define BAD_VALUE(call, words) REFUSED(call, RAPT_ERROR_VALUE, words)

#endif
