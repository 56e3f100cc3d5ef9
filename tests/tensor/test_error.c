/* Errors: the first is kept, until it is cleared, for each thread. */
#include "expect.h"

#include <criterion/redirect.h>
#include <pthread.h>

#include "tensor/core.h"
#include "tensor/utf8.h"

Test(error, none_at_first)
{
    cr_expect_null(rapt_error());
    cr_expect_eq(rapt_error_get_code(), RAPT_OK);
    cr_expect_str_eq(rapt_error_get_op(), "");
}

Test(error, first_is_kept)
{
    cr_expect_not(rapt_fail(RAPT_ERROR_VALUE, "one", "%d apples", 3));
    cr_expect_not(rapt_fail(RAPT_ERROR_SHAPE, "two", "later"));
    cr_expect_str_eq(rapt_error(), "one: 3 apples");
    cr_expect_eq(rapt_error_get_code(), RAPT_ERROR_VALUE);
    cr_expect_str_eq(rapt_error_get_op(), "one");
    rapt_clear_error();
    cr_expect_null(rapt_error());
    cr_expect_not(rapt_fail(RAPT_ERROR_SHAPE, "two", "later"));
    cr_expect_str_eq(rapt_error(), "two: later");
}

Test(error, null_result_does_not_hide_the_cause)
{
    cr_expect_null(rapt_clone(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2, -1))));
    expect_error(RAPT_ERROR_SHAPE, "zeros: size -1 of axis 1 is negative");
}

Test(error, long_texts_are_cut)
{
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    rapt_fail(RAPT_ERROR_VALUE, text, "%s", text);
    cr_expect_lt(strlen(rapt_error()), 600);
    cr_expect_gt(strlen(rapt_error()), 400);
    cr_expect_lt(strlen(rapt_error_get_op()), 100);
}

/* Not within a character: 447 bytes are 149 of "€" whole, and 223 of "ä" and one. */
Test(error, cut_texts_end_with_a_whole_character)
{
    static const struct {
        const char *character, *before;
        size_t kept;
    } cases[] = {{"€", "", 447}, {"€", "x", 445}, {"€", "xx", 446}, {"ä", "", 446}, {"😀", "xx", 446}, {"x", "", 447}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1000];
        strcpy(text, cases[i].before);
        while (strlen(text) < 800) strcat(text, cases[i].character);
        rapt_fail(RAPT_ERROR_VALUE, "op", "%s", text);
        cr_expect(rapt_is_utf8(rapt_error()), "case %d", (int)i);
        cr_expect_eq(strlen(rapt_error()), strlen("op: ") + cases[i].kept, "case %d", (int)i);
        rapt_clear_error();
    }
}

/* What a name in a file has of them would reach the terminal. */
Test(error, control_characters_are_question_marks)
{
    rapt_fail(RAPT_ERROR_FORMAT, "op\a", "%s", "\033[31m\x7f\rtensor\n\tä€\xc2\x9b\x34\x32m\xc2\xa0\xc2");
    cr_expect_str_eq(rapt_error(), "op?: ?[31m??tensor\n?ä€??42m\xc2\xa0\xc2");
}

Test(error, a_code_of_no_error_is_a_value)
{
    static const int codes[] = {RAPT_OK, RAPT_ERROR_RANK + 1, -1, 1 << 20};
    for (int i = 0; i < 4; i++) {
        cr_expect_not(rapt_fail((rapt_error_code)codes[i], "op", "code %d", codes[i]));
        cr_expect_not_null(rapt_error());
        expect_error(RAPT_ERROR_VALUE, "op: code");
    }
}

Test(error, no_op_name)
{
    rapt_fail(RAPT_ERROR_VALUE, NULL, "bad");
    cr_expect_str_eq(rapt_error(), "rapt: bad");
}

static int handled;
static char handled_message[600];

static void handle(rapt_error_code code, const char *message)
{
    cr_expect_eq(code, RAPT_ERROR_VALUE);
    snprintf(handled_message, sizeof handled_message, "%s", message);
    handled++;
}

Test(error, handler_hears_first_errors)
{
    cr_expect_null(rapt_on_error(handle));
    rapt_fail(RAPT_ERROR_VALUE, "op", "first");
    rapt_fail(RAPT_ERROR_SHAPE, "op", "second");
    cr_expect_eq(handled, 1);
    cr_expect_str_eq(handled_message, "op: first");
    rapt_clear_error();
    rapt_fail(RAPT_ERROR_VALUE, "op", "third");
    cr_expect_eq(handled, 2);
    cr_expect_eq(rapt_on_error(NULL), handle);
    rapt_clear_error();
    rapt_fail(RAPT_ERROR_VALUE, "op", "fourth");
    cr_expect_eq(handled, 2);
}

Test(error, exit_on_error, .exit_code = 1)
{
    rapt_on_error(rapt_exit_on_error);
    rapt_fail(RAPT_ERROR_VALUE, "op", "the end");
}

static void *see_no_error(void *argument)
{
    (void)argument;
    bool clean = rapt_error() == NULL;
    rapt_fail(RAPT_ERROR_SHAPE, "other", "thread");
    return clean ? "clean" : NULL;
}

Test(error, each_thread_has_its_own)
{
    pthread_t thread;
    void *clean = NULL;
    rapt_fail(RAPT_ERROR_VALUE, "this", "thread");
    cr_assert_eq(pthread_create(&thread, NULL, see_no_error, NULL), 0);
    pthread_join(thread, &clean);
    cr_expect_not_null(clean);
    cr_expect_str_eq(rapt_error(), "this: thread");
}

Test(error, a_message_may_quote_the_one_before)
{
    rapt_fail(RAPT_ERROR_VALUE, "inner", "is 3");
    const char *op = rapt_error_get_op(), *before = rapt_error();
    rapt_clear_error();
    rapt_fail(RAPT_ERROR_VALUE, "outer", "%s of %s", before, op);
    cr_expect_str_eq(rapt_error(), "outer: inner: is 3 of inner");
}

/* --- warnings --- */

static char warned[2048];

static void remember(const char *message)
{
    snprintf(warned, sizeof warned, "%s", message);
}

Test(warning, goes_to_a_handler_and_is_no_error)
{
    cr_expect_eq(rapt_on_warning(remember), rapt_print_warning);
    rapt_warn("op", "%d things", 3);
    cr_expect_str_eq(warned, "op: 3 things");
    cr_expect_null(rapt_error());
    rapt_warn(NULL, "%2000d", 1);
    cr_expect_eq(strlen(warned), 1023);
    cr_expect_eq(rapt_on_warning(NULL), remember);
    rapt_warn("op", "unheard");
    cr_expect_eq(strlen(warned), 1023);
}

Test(warning, is_printed_at_first)
{
    cr_redirect_stderr();
    rapt_warn("op", "look");
    cr_assert_stderr_eq_str("rapt: op: look\n");
}
