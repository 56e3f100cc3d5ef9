/* What examples ask of the operating system and differs between systems; system_posix.c or system_windows.c answers. */
#ifndef EXAMPLES_SYSTEM_H
#define EXAMPLES_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* Opens something in the place of standard streams that are closed, so that no file gets what is printed; to read from
 * them and to write to them fails as before. */
void system_fill_streams(void);

/* Makes a folder; false: errno says why. */
bool system_make_folder(const char *path);

/* Do both paths lead to one file, or will they when it is made? Posix: by other names and links, too. */
bool system_is_one_file(const char *a, const char *b);

/* Where a file goes that is written beside and renamed: what the path leads to, so that a symbolic link stays one, and
 * the permissions of the file there, 0 when there is none. The caller frees it; NULL, and why, when no file can go
 * there. */
char *system_file_behind(const char *path, mode_t *mode, const char **why);

/* Are the characters of the terminal UTF-8? Posix: those of the locale that the environment names. */
bool system_is_utf8(void);

/* A stream that system_close_text, with the same arguments, makes a text of; NULL where there is no room for one. */
FILE *system_open_text(char **text, size_t *size);

/* Closes the stream; the text is the caller's to free. False, and no text, where something of it was lost. */
bool system_close_text(FILE *stream, char **text, size_t *size);

/* The signals by which people and systems ask a program to end. */
enum { SYSTEM_ENDINGS = 3 };
extern const int system_endings[SYSTEM_ENDINGS];

/* Calls the handler when the signal comes; false, and nothing is changed, where the signal is ignored. */
bool system_on_signal(int number, void (*handler)(int));

/* Does writing to a pipe that nobody reads end the program from now on? Returns what it did before. */
bool system_ends_by_pipes(bool ends);

#endif
