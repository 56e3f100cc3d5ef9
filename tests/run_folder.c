/* The folder in which a program is run again and again. */
#include "run_folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

void give_up(const char *what)
{
    perror(what);
    exit(2);
}

static void run_shell(const char *command)
{
    if (system(command) != 0) give_up(command);
}

const char *run_folder_make(const char *test)
{
    snprintf(folder, sizeof folder, "/tmp/rapt-%s-XXXXXX", test);
    if (!mkdtemp(folder)) give_up(folder);
    return folder;
}

void run_folder_remove(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    run_shell(command);
}

const char *path_of(const char *part, const char *name)
{
    static char paths[4][4096];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(paths[turn], sizeof paths[turn], "%s/%s%s%s", folder, part, *name ? "/" : "", name);
    return paths[turn];
}

static bool is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static int for_each_in(const char *from, bool (*function)(const char *part, const char *name), const char *part)
{
    char path[4096], file[sizeof path + 256];
    int bad = 0;
    snprintf(path, sizeof path, "%s", from); /* the function asks for other paths */
    DIR *directory = opendir(path);
    if (!directory) give_up(path);
    for (struct dirent *entry; (entry = readdir(directory));) {
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        if (is_file(file)) bad += !function(part, entry->d_name);
    }
    closedir(directory);
    return bad;
}

int for_each_file(const char *part, bool (*function)(const char *part, const char *name))
{
    return for_each_in(path_of(part, ""), function, part);
}

static bool copy_into_run(const char *from, const char *name)
{
    char source[4096];
    snprintf(source, sizeof source, "%s/%s", from, name);
    const struct bytes bytes = read_file(source);
    FILE *file = fopen(path_of("run", name), "wb");
    if (!bytes.data || !file || fwrite(bytes.data, 1, bytes.size, file) != bytes.size || fclose(file) != 0)
        give_up(source);
    free(bytes.data);
    return true;
}

void run_folder_fill(const char *from)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s/run' && mkdir '%s/run'", folder, folder);
    run_shell(command);
    if (from) for_each_in(from, copy_into_run, from);
}

struct bytes read_file(const char *path)
{
    struct stat status;
    struct bytes bytes = {NULL, 0};
    FILE *file = fopen(path, "rb");
    if (!file) return bytes;
    if (fstat(fileno(file), &status) != 0) give_up(path);
    bytes.size = (size_t)status.st_size;
    bytes.data = malloc(bytes.size + 1);
    if (!bytes.data || fread(bytes.data, 1, bytes.size, file) != bytes.size) give_up(path);
    bytes.data[bytes.size] = '\0';
    fclose(file);
    return bytes;
}

bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

bool begins_with(const char *path, const char *beginning)
{
    const struct bytes all = read_file(path), part = read_file(beginning);
    const bool good = all.data && part.data && part.size <= all.size && memcmp(all.data, part.data, part.size) == 0;
    free(all.data), free(part.data);
    return good;
}

bool is_same(const char *a, const char *b)
{
    return begins_with(a, b) && begins_with(b, a);
}

bool ends_with_line(const char *path)
{
    const struct bytes bytes = read_file(path);
    const bool good = bytes.data && (bytes.size == 0 || bytes.data[bytes.size - 1] == '\n');
    free(bytes.data);
    return good;
}
