/* The folder in which a program is run again and again, and what is asked of the files that it leaves there. */
#ifndef RAPT_TESTS_RUN_FOLDER_H
#define RAPT_TESTS_RUN_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

struct bytes {
    char *data; /* NULL where there is no such file */
    size_t size;
};

__attribute__((noreturn)) void give_up(const char *what);

/* A new folder, named after the test; its name. */
const char *run_folder_make(const char *test);
void run_folder_remove(void);
/* PART/NAME there, or PART where the name is "": valid until the fourth call after this one. */
const char *path_of(const char *part, const char *name);
/* The folder "run", with nothing but the files of another (NULL: none). */
void run_folder_fill(const char *from);

/* To be freed; a 0 stands behind its end. */
struct bytes read_file(const char *path);
bool is_there(const char *path);
bool begins_with(const char *path, const char *beginning);
bool is_same(const char *a, const char *b);
/* An empty file does, too. */
bool ends_with_line(const char *path);
/* Calls for each file of a part, but not for folders; the number of those for which it is false. */
int for_each_file(const char *part, bool (*function)(const char *part, const char *name));

#endif
