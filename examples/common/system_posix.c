/* What examples ask of the operating system. */
#include "system.h"

#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool system_make_folder(const char *path)
{
    return mkdir(path, 0777) == 0;
}

bool system_is_utf8(void)
{
    locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (!locale) return false; /* one that this system does not have; the C library takes "C" for it */
    bool is_utf8 = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
    freelocale(locale);
    return is_utf8;
}

FILE *system_open_text(char **text, size_t *size)
{
    return open_memstream(text, size);
}

bool system_close_text(FILE *stream, char **text, size_t *size)
{
    (void)size;
    bool complete = !ferror(stream);
    complete = fclose(stream) == 0 && complete;
    if (!complete) free(*text);
    return complete;
}

const int system_endings[SYSTEM_ENDINGS] = {SIGINT, SIGTERM, SIGHUP};

bool system_on_signal(int number, void (*handler)(int))
{
    struct sigaction before, action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN) return false;
    return sigaction(number, &action, NULL) == 0;
}

bool system_ends_by_pipes(bool ends)
{
    struct sigaction before = {0}, action = {.sa_handler = ends ? SIG_DFL : SIG_IGN};
    sigaction(SIGPIPE, &action, &before);
    return before.sa_handler != SIG_IGN;
}
