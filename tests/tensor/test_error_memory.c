/* Errors where there is no memory even for a message. */
#include "expect.h"

#include <pthread.h>
#include <stdio.h>

#include "failing_malloc.h"

/* What a thread hears of a failure when there is no memory. */
typedef struct heard {
    bool made_a_tensor; /* before */
    rapt_error_code code;
    char message[128], later[128];
} heard;

static void *fail_without_memory(void *argument)
{
    heard *h = argument;
    if (h->made_a_tensor) {
        RAPT_SCOPE;
        rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2));
    }
    fail_malloc(0, true);
    rapt_fail(RAPT_ERROR_FILE, "op", "number %d", 7);
    fail_malloc(-1, false);
    h->code = rapt_error_get_code();
    snprintf(h->message, sizeof h->message, "%s", rapt_error());
    rapt_clear_error();
    rapt_fail(RAPT_ERROR_FILE, "op", "number %d", 8);
    snprintf(h->later, sizeof h->later, "%s", rapt_error());
    return NULL;
}

Test(error_memory, the_code_is_right_and_the_message_too_where_a_tensor_was_made)
{
    for (int made = 0; made < 2; made++) {
        heard h = {.made_a_tensor = made};
        pthread_t thread;
        cr_assert_eq(pthread_create(&thread, NULL, fail_without_memory, &h), 0);
        pthread_join(thread, NULL);
        cr_expect_eq(h.code, RAPT_ERROR_FILE);
        cr_expect_str_eq(h.message, made ? "op: number 7" : "rapt: no memory for the message of an error");
        cr_expect_str_eq(h.later, "op: number 8");
    }
}
