/* The first error of each thread is kept until it is cleared. */
#include <rapt/error.h>

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "tensor/core.h"
#include "tensor/thread.h"

static rapt_error_handler *_Atomic installed_handler;

bool rapt_fail(rapt_error_code code, const char *op, const char *format, ...)
{
    rapt_thread *thread = rapt_this_thread();
    if (!thread) return false;
    thread->failures++;
    if (thread->error != RAPT_OK) return false;
    char text[RAPT_MESSAGE_SIZE - sizeof thread->error_op - 2]; /* ": " comes between */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    thread->error = code;
    snprintf(thread->error_op, sizeof thread->error_op, "%s", op ? op : "rapt");
    snprintf(thread->error_message, sizeof thread->error_message, "%.*s: %s", (int)sizeof thread->error_op - 1,
             thread->error_op, text);
    rapt_error_handler *handler = atomic_load(&installed_handler);
    if (handler) handler(code, thread->error_message);
    return false;
}

bool rapt_fail_null(const char *op, const char *argument)
{
    return rapt_fail(RAPT_ERROR_NULL, op, "%s is NULL", argument);
}

const char *rapt_error(void)
{
    rapt_thread *thread = rapt_this_thread();
    if (!thread) return "rapt: no memory for the thread's state";
    return thread->error == RAPT_OK ? NULL : thread->error_message;
}

rapt_error_code rapt_error_get_code(void)
{
    rapt_thread *thread = rapt_this_thread();
    return thread ? thread->error : RAPT_ERROR_MEMORY;
}

const char *rapt_error_get_op(void)
{
    rapt_thread *thread = rapt_this_thread();
    return thread && thread->error != RAPT_OK ? thread->error_op : "";
}

void rapt_clear_error(void)
{
    rapt_thread *thread = rapt_this_thread();
    if (thread) thread->error = RAPT_OK;
}

rapt_error_handler *rapt_on_error(rapt_error_handler *handler)
{
    return atomic_exchange(&installed_handler, handler);
}

void rapt_exit_on_error(rapt_error_code code, const char *message)
{
    (void)code;
    fprintf(stderr, "%s\n", message);
    exit(EXIT_FAILURE);
}
