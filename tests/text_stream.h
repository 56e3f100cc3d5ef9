/* What is printed to a stream, as a text. */
#ifndef RAPT_TESTS_TEXT_STREAM_H
#define RAPT_TESTS_TEXT_STREAM_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

static inline FILE *open_text(void)
{
    FILE *stream = tmpfile(); /* not every system has streams in memory */
    cr_assert_not_null(stream);
    return stream;
}

/* Closes the stream; the text is the caller's to free. */
static inline char *close_text(FILE *stream)
{
    const long size = ftell(stream);
    char *text = size < 0 ? NULL : calloc((size_t)size + 1, 1);
    cr_assert_not_null(text);
    rewind(stream);
    cr_expect_eq(fread(text, 1, (size_t)size, stream), (size_t)size);
    fclose(stream);
    return text;
}

#endif
