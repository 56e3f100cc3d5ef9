/* What is asked of the system, where that is Windows. Texts are in the code page of the process, as the C library has
 * them. */
#define _CRT_RAND_S
#include "tensor/system.h"

#include <windows.h>

#include <direct.h>
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <locale.h>
#include <malloc.h>
#include <share.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- memory --- */

int64_t rapt_system_cache_bytes(void)
{
    SYSTEM_LOGICAL_PROCESSOR_INFORMATION rows[256];
    DWORD size = sizeof rows;
    if (!GetLogicalProcessorInformation(rows, &size)) return 0;
    for (DWORD i = 0; i < size / sizeof *rows; i++)
        if (rows[i].Relationship == RelationCache && rows[i].Cache.Level == 2) return rows[i].Cache.Size;
    return 0;
}

void *rapt_system_allocate(size_t alignment, size_t size)
{
    return _aligned_malloc(size, alignment);
}

void rapt_system_free(void *block)
{
    _aligned_free(block);
}

void rapt_system_trim(void)
{
}

void rapt_system_prefer_huge_pages(void *block, size_t size)
{
    (void)block, (void)size; /* only programs with a privilege get them */
}

/* --- processes and time --- */

int64_t rapt_system_coarse_ms(void)
{
    return (int64_t)GetTickCount64();
}

void rapt_system_random(uint64_t numbers[2])
{
    unsigned parts[4] = {(unsigned)GetTickCount64()};
    for (int i = 0; i < 4; i++) rand_s(&parts[i]);
    memcpy(numbers, parts, sizeof parts);
}

int64_t rapt_system_preemptions(void)
{
    return 0;
}

bool rapt_system_is_alone(void)
{
    return false; /* which only forks ask */
}

void rapt_system_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
    (void)before, (void)in_parent, (void)in_child; /* there are no forks */
}

/* --- files --- */

const char *rapt_system_reason(int code, char *text, size_t size)
{
    return strerror_s(text, size, code) == 0 ? text : "unknown reason";
}

int rapt_system_open(const char *path)
{
    return _open(path, _O_RDONLY | _O_BINARY | _O_NOINHERIT);
}

int rapt_system_leave_streams(int file)
{
    return file; /* what is printed into closed streams goes nowhere: they have handles of their own */
}

FILE *rapt_system_open_stream(const char *path, const char *mode, bool alone)
{
    FILE *stream = _fsopen(path, mode, alone ? _SH_DENYWR : _SH_DENYNO);
    if (!stream && alone && _doserrno == ERROR_SHARING_VIOLATION) errno = EWOULDBLOCK;
    return stream;
}

void rapt_system_unlock_stream(FILE *stream)
{
    (void)stream; /* which only this process has */
}

FILE *rapt_system_renew_stream(FILE *stream)
{
    const int file = _dup(_fileno(stream)), code = errno;
    fclose(stream);
    errno = code;
    FILE *renewed = file >= 0 ? _fdopen(file, "r+b") : NULL;
    if (file >= 0 && !renewed) _close(file);
    return renewed;
}

void *rapt_system_map(int file, size_t size)
{
    const HANDLE mapping = CreateFileMappingA((HANDLE)_get_osfhandle(file), NULL, PAGE_READONLY, 0, 0, NULL);
    void *bytes = mapping ? MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, size) : NULL;
    if (mapping) CloseHandle(mapping); /* the view holds it */
    if (!bytes) errno = ENOMEM;
    return bytes;
}

void rapt_system_unmap(void *bytes, size_t size)
{
    (void)size;
    UnmapViewOfFile(bytes);
}

bool rapt_system_make_folder(const char *path)
{
    return _mkdir(path) == 0;
}

bool rapt_system_make_file(const char *path)
{
    const int file = _open(path, _O_WRONLY | _O_CREAT | _O_EXCL | _O_NOINHERIT, _S_IREAD | _S_IWRITE);
    return file >= 0 && _close(file) == 0;
}

bool rapt_system_is_at(int file, const char *path, bool *is_there)
{
    (void)file, (void)path;
    *is_there = true;
    return true;
}

int rapt_system_lock(const char *path)
{
    (void)path;
    errno = ENOENT; /* what is open cannot be replaced */
    return -1;
}

void rapt_system_unlock(int file)
{
    (void)file;
}

/* --- names and texts --- */

void rapt_system_host_name(char *name, size_t size)
{
    DWORD room = (DWORD)size;
    if (!GetComputerNameA(name, &room)) strcpy(name, "host");
}

int rapt_system_terminal_width(FILE *stream)
{
    CONSOLE_SCREEN_BUFFER_INFO console;
    if (!GetConsoleScreenBufferInfo((HANDLE)_get_osfhandle(_fileno(stream)), &console)) return 0;
    return console.srWindow.Right - console.srWindow.Left + 1;
}

/* Is the character in the set that begins behind '['? *end is then behind the ']', or NULL where there is none. */
static bool is_in_set(const char *set, char character, const char **end)
{
    const bool inverted = *set == '!';
    bool found = false;
    set += inverted;
    for (const char *first = set; *set && (*set != ']' || set == first); set++) {
        const char low = *set;
        if (set[1] == '-' && set[2] && set[2] != ']') set += 2;
        found |= low <= character && character <= *set;
    }
    *end = *set ? set + 1 : NULL;
    return found != inverted;
}

/* Does one character match the first part of the pattern? *rest is then the rest of it. */
static bool matches_one(const char *pattern, char character, const char **rest)
{
    *rest = pattern + 1;
    if (*pattern == '?') return true;
    if (*pattern == '[') {
        const char *end;
        const bool is_in = is_in_set(pattern + 1, character, &end);
        if (end) *rest = end;
        return end ? is_in : character == '[';
    }
    if (*pattern == '\\' && pattern[1]) *rest = ++pattern + 1;
    return *pattern == character;
}

/* After a mismatch the last * takes one character more. */
bool rapt_system_matches(const char *pattern, const char *name)
{
    const char *star = NULL, *taken = NULL, *rest;
    while (*name) {
        if (*pattern == '*') {
            star = ++pattern;
            taken = name;
        } else if (*pattern && matches_one(pattern, *name, &rest)) {
            pattern = rest;
            name++;
        } else if (star) {
            pattern = star;
            name = ++taken;
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return *pattern == '\0';
}

bool rapt_plain_numbers_begin(rapt_plain_numbers *kept)
{
    const int alone = _configthreadlocale(_ENABLE_PER_THREAD_LOCALE);
    char *before = _strdup(setlocale(LC_NUMERIC, NULL));
    if (!before) return false;
    setlocale(LC_NUMERIC, "C");
    *kept = (rapt_plain_numbers){.plain = (void *)(intptr_t)alone, .before = before};
    return true;
}

void rapt_plain_numbers_end(rapt_plain_numbers *kept)
{
    setlocale(LC_NUMERIC, kept->before);
    _configthreadlocale((int)(intptr_t)kept->plain);
    free(kept->before);
}
