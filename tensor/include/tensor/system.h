/* What is asked of the operating system and differs between systems; system_posix.c or system_windows.c answers. */
#ifndef RAPT_TENSOR_SYSTEM_H
#define RAPT_TENSOR_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What a value of errno means; in the text, or in a constant. */
const char *rapt_system_reason(int code, char *text, size_t size);

/* Bytes of the processor's cache of the second level; 0 where the system does not say. */
int64_t rapt_system_cache_bytes(void);

/* A block whose address is a multiple of the alignment, a power of 2; NULL without memory. rapt_system_free takes it
 * back. */
void *rapt_system_allocate(size_t alignment, size_t size);
void rapt_system_free(void *block);

/* Gives back to the system what the C library keeps of small blocks that were freed. */
void rapt_system_trim(void);

/* Advice that the block be on huge pages. */
void rapt_system_prefer_huge_pages(void *block, size_t size);

/* Numbers that nobody can foresee; where the system has none, those of a clock and an address. */
void rapt_system_random(uint64_t numbers[2]);

/* A clock that only goes forward, read fast and perhaps some milliseconds late. */
int64_t rapt_system_coarse_ms(void);

/* How often other threads took the processor away from this process; 0 where the system does not count. */
int64_t rapt_system_preemptions(void);

/* Has the process no thread but this? False where the system does not tell. */
bool rapt_system_is_alone(void);

/* What a fork calls before it in the parent, behind it there, and behind it in the child; each may be NULL. Where a
 * process cannot fork, nothing calls them. */
void rapt_system_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void));

/* A descriptor of a file to be read as bytes, which no program started from here inherits; < 0: errno says why. Opening
 * does not wait for a writer of a pipe. */
int rapt_system_open(const char *path);

/* The descriptor, or another one of the same file where it is one of the first three: those are a program's own
 * streams, and what is printed though they are closed would get into the file. < 0: errno says why. */
int rapt_system_leave_streams(int file);

/* As fopen for writing ("w", "w+" or "r+", with "b"), but at none of the first three descriptors; no program started
 * from here inherits it. alone: of a regular file there is no other stream that is open so, here or in another program;
 * errno is EWOULDBLOCK where there is one, and the file as it was. A file system without locks keeps nobody away. */
FILE *rapt_system_open_stream(const char *path, const char *mode, bool alone);

/* Others may open the file of such a stream now, also while a child of a fork still has it. */
void rapt_system_unlock_stream(FILE *stream);

/* Closes the stream, which may write what it holds back, and opens the same file anew for reading and writing, whatever
 * its path leads to now. NULL: errno says why, and the stream is closed. */
FILE *rapt_system_renew_stream(FILE *stream);

/* The file's bytes as memory, which is not to be written; NULL: errno says why. `size` is above 0. */
void *rapt_system_map(int file, size_t size);
void rapt_system_unmap(void *bytes, size_t size);

/* Makes a folder; false: errno says why. */
bool rapt_system_make_folder(const char *path);

/* Makes an empty file where nothing is; false: errno says why, EEXIST where something is. */
bool rapt_system_make_file(const char *path);

/* Is what the path leads to the open file, and not another that took its place, which Windows does not allow? False:
 * errno says why it is not known. */
bool rapt_system_is_at(int file, const char *path, bool *is_there);

/* Keeps other threads and processes that lock it waiting until it is unlocked or the process ends, also by those that
 * replace the file: who waited gets the new one. < 0: errno says why, ENOENT where there is none, or no way to do so. A
 * file system without locks keeps nobody waiting. */
int rapt_system_lock(const char *path);
void rapt_system_unlock(int file);

/* The name of this computer; "host" where it has none. */
void rapt_system_host_name(char *name, size_t size);

/* Columns of the terminal behind the stream; 0 when there is none. */
int rapt_system_terminal_width(FILE *stream);

/* Does the whole name match the pattern of *, ?, [a-z], [!a-z] and \ before one of these? */
bool rapt_system_matches(const char *pattern, const char *name);

/* Between the two, the calling thread writes numbers with a point, whatever the locale. False without memory; then
 * there is nothing to end. */
typedef struct rapt_plain_numbers {
    void *plain, *before;
} rapt_plain_numbers;
bool rapt_plain_numbers_begin(rapt_plain_numbers *kept);
void rapt_plain_numbers_end(rapt_plain_numbers *kept);

#endif
