/* clang 14's MemorySanitizer knows that stat, lstat and fstat set what they are given, but not that these do,
 * which the C library takes for them where files may be large. Linked into all that unset.sh builds. */
#define _GNU_SOURCE
#include <sys/stat.h>

/* Of 64-bit Linux, where the two structs are one. */
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "struct stat64");

__attribute__((visibility("hidden"))) int stat64(const char *restrict path, struct stat64 *restrict status)
{
    return stat(path, (struct stat *)status);
}

__attribute__((visibility("hidden"))) int lstat64(const char *restrict path, struct stat64 *restrict status)
{
    return lstat(path, (struct stat *)status);
}

__attribute__((visibility("hidden"))) int fstat64(int file, struct stat64 *status)
{
    return fstat(file, (struct stat *)status);
}
