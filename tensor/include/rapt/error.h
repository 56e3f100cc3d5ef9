/* Errors: no function aborts. A failing one returns NULL or false and the first error of the thread is kept. */
#ifndef RAPT_ERROR_H
#define RAPT_ERROR_H

#include <rapt/base.h>

RAPT_BEGIN_DECLS

/* What kind of error it was. */
typedef enum rapt_error_code {
    RAPT_OK,
    RAPT_ERROR_NULL,        /* an argument is NULL that may not be */
    RAPT_ERROR_SHAPE,       /* shapes or axes do not fit */
    RAPT_ERROR_DTYPE,       /* element types do not fit */
    RAPT_ERROR_VALUE,       /* a number, option or index is out of its range */
    RAPT_ERROR_MEMORY,      /* the system gave no memory, or a size overflows */
    RAPT_ERROR_FILE,        /* a file cannot be opened, read, written or renamed */
    RAPT_ERROR_FORMAT,      /* a file's content is not what its format demands */
    RAPT_ERROR_GRAPH,       /* backward was asked of something that has no graph, or of a graph already used */
    RAPT_ERROR_UNSUPPORTED, /* this build or this op cannot do that; the message says what can */
    RAPT_ERROR_GONE,        /* a tensor or object is used that was freed; only the debugging mode can tell */
    RAPT_ERROR_NOT_FINITE,  /* a result is NaN or infinite; only rapt_hunt_not_finite looks */
    RAPT_ERROR_RANK,        /* MPI failed, or another rank did; only librapt-mpi (<rapt/mpi.h>) knows of those */
} rapt_error_code;

/* The message of the first error of this thread since the last rapt_clear_error, "op: what is wrong"; where it happened
 * in a module's forward, or in backward of what was recorded there, "op: what is wrong; in GPT transformer.h.3.mlp".
 * NULL when there is none. The text stays valid until the error is cleared. docs/errors.md lists all messages. */
RAPT_API const char *rapt_error(void);

/* The code of that error, RAPT_OK when there is none. */
RAPT_API rapt_error_code rapt_error_get_code(void);

/* The name of the op or function that failed first, "" when there is none. */
RAPT_API const char *rapt_error_get_op(void);

/* Forgets the error of this thread, so that the next one is the first. */
RAPT_API void rapt_clear_error(void);

/* What is called with each first error: its code, and the message that rapt_error gives. It returns or ends the
 * program: a longjmp or an exception of C++ would leave the call as it is, with its scopes open and recording off. */
typedef void rapt_error_handler(rapt_error_code code, const char *message);

/* Calls the handler at each first error of any thread, before the failing function returns; NULL calls none. Returns
 * the handler that was installed before. */
RAPT_API rapt_error_handler *rapt_on_error(rapt_error_handler *handler);

/* A handler for rapt_on_error that prints the message on standard error and ends the program with status 1. */
RAPT_API void rapt_exit_on_error(rapt_error_code code, const char *message);

/* Records an error of your own op or layer and returns false; an error that already stands is kept. The format is
 * printf's; the message becomes "op: text", with the module's path behind it, of at most 447 bytes of text, of which
 * more is cut off; control characters but '\n' become ?. A code of no error, RAPT_OK say, is RAPT_ERROR_VALUE. */
RAPT_API bool rapt_fail(rapt_error_code code, const char *op, const char *format, ...)
    __attribute__((cold, format(RAPT_PRINTF, 3, 4)));

/* Warnings: of what is most likely a mistake, though nothing failed. The library's are one line each, "op: what and
 * what to do", and said once. */
typedef void rapt_warning_handler(const char *message);

/* Calls the handler at each warning of any thread; NULL calls none. At first it is rapt_print_warning. Returns the
 * handler that was installed before. */
RAPT_API rapt_warning_handler *rapt_on_warning(rapt_warning_handler *handler);

/* Prints "rapt: " and the message on standard error, nothing with RAPT_DEBUG=0 in the environment. */
RAPT_API void rapt_print_warning(const char *message);

/* Warns of something in your own op or layer, each time that it is called; up to 1023 bytes. */
RAPT_API void rapt_warn(const char *op, const char *format, ...) __attribute__((cold, format(RAPT_PRINTF, 2, 3)));

RAPT_END_DECLS

#endif
