/* What examples ask of the operating system, where that is Windows. */
#include "system.h"

#include <windows.h>

#include <direct.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Their numbers are never another file's. */
void system_fill_streams(void)
{
}

bool system_make_folder(const char *path)
{
    return _mkdir(path) == 0;
}

bool system_is_one_file(const char *a, const char *b)
{
    char *first = _fullpath(NULL, a, 0), *second = _fullpath(NULL, b, 0);
    const bool is_one = first && second ? _stricmp(first, second) == 0 : strcmp(a, b) == 0;
    free(first);
    free(second);
    return is_one;
}

char *system_file_behind(const char *path, mode_t *mode, const char **why)
{
    *mode = 0;
    *why = "no memory";
    return strdup(path);
}

bool system_is_utf8(void)
{
    return GetConsoleOutputCP() == CP_UTF8;
}

/* There are no streams in memory. */
FILE *system_open_text(char **text, size_t *size)
{
    (void)text, (void)size;
    return tmpfile();
}

bool system_close_text(FILE *stream, char **text, size_t *size)
{
    const long end = ferror(stream) ? -1 : ftell(stream);
    *size = end < 0 ? 0 : (size_t)end;
    *text = end < 0 ? NULL : calloc(*size + 1, 1);
    rewind(stream);
    const bool complete = *text && fread(*text, 1, *size, stream) == *size;
    if (!complete) free(*text);
    fclose(stream);
    return complete;
}

const int system_endings[SYSTEM_ENDINGS] = {SIGINT, SIGTERM, SIGBREAK};

bool system_on_signal(int number, void (*handler)(int))
{
    if (signal(number, handler) != SIG_IGN) return true;
    signal(number, SIG_IGN);
    return false;
}

bool system_ends_by_pipes(bool ends)
{
    (void)ends;
    return false; /* there is no such signal */
}
