/* Prints what the ops of the table say of bad input, each message once: tests/op_messages.txt has them. Of rows whose
 * call uses other ops too, what those say is left out. */
#include <stdio.h>
#include <string.h>

#include <rapt.h>

#include "ops.h"

enum { most_messages = 2000, longest = 400 };
static char messages[most_messages][longest];
static int count;

static void print_message(const op_case *c, rapt_error_code code, const char *what)
{
    (void)code, (void)what;
    const char *message = op_case_call(c) ? "a result" : rapt_error();
    if (c->row->is_combined && strcmp(rapt_error_get_op(), op_error_name(c->row)) != 0) message = "";
    for (int i = 0; i < count; i++)
        if (strcmp(messages[i], message) == 0) message = "";
    if (*message && count < most_messages) {
        snprintf(messages[count++], longest, "%s", message);
        puts(message);
    }
    rapt_clear_error();
}

int main(void)
{
    op_each_bad_input(print_message);
    return count == most_messages;
}
