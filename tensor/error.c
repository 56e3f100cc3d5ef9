/* The first error of each thread is kept until it is cleared. */
#include <rapt/error.h>

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/core.h"
#include "tensor/module_place.h"
#include "tensor/thread.h"
#include "tensor/utf8.h"

static rapt_error_handler *_Atomic installed_handler;

enum { OP_SIZE = 64, TEXT_SIZE = 448, PATH_SIZE = 256 };

/* What the first error says. */
typedef struct error_text {
    char op[OP_SIZE];
    char message[OP_SIZE + TEXT_SIZE + PATH_SIZE];
} error_text;

RAPT_THREAD_LOCAL rapt_module_place rapt_running_place;

static RAPT_THREAD_LOCAL rapt_error_code first_code;
static RAPT_THREAD_LOCAL error_text *first_text;
static RAPT_THREAD_LOCAL uint64_t failures;
static RAPT_THREAD_LOCAL bool others_tell;
static RAPT_THREAD_LOCAL bool is_untold; /* the first error, while it is held */
static RAPT_THREAD_LOCAL int holders;

static void end_error(void)
{
    free(first_text);
    first_text = NULL;
    first_code = RAPT_OK;
}

static const char *message(void)
{
    return first_text ? first_text->message : "rapt: no memory for the message of an error";
}

void rapt_error_reserve(void)
{
    if (first_text) return;
    first_text = calloc(1, sizeof *first_text);
    rapt_at_thread_end(RAPT_THREAD_ERROR, end_error);
}

bool rapt_error_leave_to_others(bool leave)
{
    const bool before = others_tell;
    others_tell = leave;
    return before;
}

static void tell(void)
{
    rapt_error_handler *handler = atomic_load(&installed_handler);
    is_untold = holders > 0;
    if (handler && !others_tell && !is_untold) handler(first_code, message());
}

void rapt_error_hold(void)
{
    holders++;
}

void rapt_error_release(void)
{
    if (--holders > 0) return;
    const bool has_news = is_untold && first_code != RAPT_OK;
    is_untold = false;
    if (has_news) tell();
}

rapt_standing_error rapt_error_put_aside(void)
{
    const rapt_standing_error standing = {first_code, first_text};
    if (first_code == RAPT_OK) return standing;
    first_code = RAPT_OK;
    first_text = NULL;
    return standing;
}

void rapt_error_put_back(rapt_standing_error standing)
{
    if (standing.code == RAPT_OK) return;
    end_error();
    first_code = standing.code;
    first_text = standing.text;
}

/* Does the text end with "; in the module", or one below it, as another error's does that it quotes? */
static bool names_module(const char *text, const char *path)
{
    const size_t length = strlen(path);
    const char *last = NULL;
    for (const char *next = text; (next = strstr(next, "; in ")) != NULL;) last = next += strlen("; in ");
    return last && strncmp(last, path, length) == 0 &&
           strchr(" .", last[length]) != NULL; /* or the end: strchr finds that, too */
}

/* "op: text; in the module", which is named once where it is the op. */
static void compose(const char *op, const char *text)
{
    const char *path = rapt_running_place.path;
    snprintf(first_text->op, sizeof first_text->op, "%s", op ? op : "rapt");
    if (path && (strcmp(path, first_text->op) == 0 || names_module(text, path))) path = NULL;
    snprintf(first_text->message, sizeof first_text->message, "%.*s: %s%s%s", OP_SIZE - 1, first_text->op, text,
             path ? "; in " : "", path ? path : "");
    for (char *c = first_text->message; *c; c++) /* a name in a file may have them */
        if (*c != '\n') memset(c, '?', rapt_control_length(c));
}

/* Ends a text that was cut with a whole character. */
static void end_with_character(char *text, size_t length)
{
    size_t last = length;
    while (last > 0 && ((unsigned char)text[last - 1] & 0xC0) == 0x80) last--;
    if (last > 0) last--;
    if (rapt_utf8_length(text + last, length - last) == 0) text[last] = '\0';
}

/* In parentheses, since tests/errors/places.h has a macro of that name. */
bool(rapt_fail)(rapt_error_code code, const char *op, const char *format, ...)
{
    failures++;
    if (first_code != RAPT_OK) return false;
    first_code = code > RAPT_OK && code <= RAPT_ERROR_RANK ? code : RAPT_ERROR_VALUE;
    rapt_error_reserve();
    if (first_text) {
        char text[TEXT_SIZE];
        va_list arguments;
        va_start(arguments, format);
        const int length =
            vsnprintf(text, sizeof text, format, arguments); /* which may quote an error that was cleared */
        va_end(arguments);
        if (length >= TEXT_SIZE) end_with_character(text, TEXT_SIZE - 1);
        compose(op, text);
    }
    tell();
    return false;
}

uint64_t rapt_count_failures(void)
{
    return failures;
}

bool(rapt_fail_null)(const char *op, const char *argument)
{
    return rapt_fail(RAPT_ERROR_NULL, op, "%s is NULL", argument);
}

const char *rapt_error(void)
{
    return first_code == RAPT_OK ? NULL : message();
}

rapt_error_code rapt_error_get_code(void)
{
    return first_code;
}

const char *rapt_error_get_op(void)
{
    return first_code != RAPT_OK && first_text ? first_text->op : "";
}

void rapt_clear_error(void)
{
    first_code = RAPT_OK;
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
