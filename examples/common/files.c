/* Reading whole files, and asking whether files can be written. */
#include "files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <rapt.h>

#include "system.h"

/* As much as a regular file has and needs to be seen to end; of others, and of small ones, 64 KiB. */
static size_t first_capacity(FILE *file)
{
    enum { least = 1 << 16, most = INT_MAX };
    struct stat status;
    const bool is_large = fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode) && status.st_size > least - 2;
    return !is_large ? least : status.st_size < most ? (size_t)status.st_size + 2 : most;
}

char *file_read(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    *size = 0;
    if (!file) return NULL;
    for (size_t capacity = first_capacity(file); !feof(file); capacity *= 2) {
        char *larger = realloc(bytes, capacity);
        if (larger) bytes = larger;
        if (larger) *size += fread(bytes + *size, 1, capacity - *size - 1, file);
        if (larger && !ferror(file)) continue;
        const int reason = larger ? errno : ENOMEM;
        free(bytes);
        fclose(file);
        errno = reason;
        return NULL;
    }
    fclose(file);
    bytes[*size] = '\0';
    return bytes;
}

bool files_are_apart(const char *program, const struct file_option *options)
{
    for (const struct file_option *a = options; a->option; a++)
        for (const struct file_option *b = options; b < a; b++)
            if (a->path && b->path && system_is_one_file(a->path, b->path)) {
                fprintf(stderr, "%s: %s and %s name one file, '%s'\n", program, b->option, a->option, a->path);
                return false;
            }
    return true;
}

bool file_can_be_saved(const char *program, const char *path)
{
    rapt_error_handler *handler = rapt_on_error(NULL);
    const bool good = rapt_can_save(path);
    if (!good) fprintf(stderr, "%s: %s\n", program, rapt_error() + strlen(rapt_error_get_op()) + strlen(": "));
    if (!good) rapt_clear_error();
    rapt_on_error(handler);
    return good;
}

static bool make_folder(const char *program, const char *folder)
{
    struct stat status;
    if (system_make_folder(folder)) return true;
    if (errno == EEXIST && stat(folder, &status) == 0) {
        if (S_ISDIR(status.st_mode)) return true;
        errno = ENOTDIR;
    }
    fprintf(stderr, "%s: cannot make the folder '%s': %s\n", program, folder, strerror(errno));
    return false;
}

bool file_is_there(const char *program, const char *path, const char *what)
{
    struct stat status;
    if (stat(path, &status) == 0) return true;
    fprintf(stderr, "%s: no %s is at '%s': %s\n", program, what, path, strerror(errno));
    return false;
}

bool folder_can_be_saved(const char *program, const char *folder, const char *const *names)
{
    if (!make_folder(program, folder)) return false;
    for (; *names; names++) {
        char path[PATH_MAX + FILENAME_MAX]; /* one that is too long is refused by the system */
        snprintf(path, sizeof path, "%s/%s", folder, *names);
        if (!file_can_be_saved(program, path)) return false;
    }
    return true;
}
