/* Included before each source of a build that counts branches: children that end by _exit are counted, too. */
#include <unistd.h>

void __gcov_dump(void);
#define _exit(status) (__gcov_dump(), _exit(status))
