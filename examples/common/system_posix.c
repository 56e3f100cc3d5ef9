/* What examples ask of the operating system. */
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void system_fill_streams(void)
{
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) < 0) open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

bool system_make_folder(const char *path)
{
    return mkdir(path, 0777) == 0;
}

static bool is_one(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Makes the path what it leads to, link by link, also where no file is there. */
static void follow_links(char path[PATH_MAX])
{
    enum { most_links = 40 };
    char link[PATH_MAX];
    for (int links = 0; links < most_links; links++) {
        const ssize_t length = readlink(path, link, sizeof link);
        const char *slash = strrchr(path, '/');
        const size_t kept = length < 0 || link[0] == '/' || !slash ? 0 : (size_t)(slash + 1 - path);
        if (length < 0 || kept + (size_t)length >= PATH_MAX) return;
        memcpy(path + kept, link, (size_t)length);
        path[kept + (size_t)length] = '\0';
    }
}

/* Where a file will be made: its folder, which must be there, and its name in it, a part of the text; else NULL. */
static const char *find_place(const char *path, char text[PATH_MAX], struct stat *folder)
{
    if (snprintf(text, PATH_MAX, "%s", path) >= PATH_MAX) return NULL;
    follow_links(text);
    for (size_t length = strlen(text); length > 1 && text[length - 1] == '/'; length--) text[length - 1] = '\0';
    char *slash = strrchr(text, '/');
    if (slash) *slash = '\0';
    if (stat(!slash ? "." : slash == text ? "/" : text, folder) != 0) return NULL;
    return slash ? slash + 1 : text;
}

bool system_is_one_file(const char *a, const char *b)
{
    struct stat first, second;
    char texts[2][PATH_MAX];
    if (strcmp(a, b) == 0) return true;
    if (stat(a, &first) == 0 && stat(b, &second) == 0) return is_one(&first, &second);
    const char *name = find_place(a, texts[0], &first), *other = find_place(b, texts[1], &second);
    return name && other && strcmp(name, other) == 0 && is_one(&first, &second);
}

char *system_file_behind(const char *path, mode_t *mode, const char **why)
{
    struct stat there;
    *mode = 0;
    if (stat(path, &there) == 0) {
        *mode = there.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
        char *place = S_ISREG(there.st_mode) ? realpath(path, NULL) : NULL;
        *why = S_ISREG(there.st_mode) ? strerror(errno) : "it is not a regular file";
        return place;
    }
    *why = strerror(errno);
    if (errno != ENOENT) return NULL;
    *why = "it is a link that leads to nothing";
    return lstat(path, &there) == 0 ? NULL : strdup(path);
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
