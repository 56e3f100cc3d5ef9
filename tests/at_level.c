/* Part of the tests that run at each instruction-set level: one that the processor lacks is skipped, where the library
 * would take the next lower one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rapt/runtime.h>

static __attribute__((constructor)) void skip_without_level(void)
{
    enum { skipped = 77 }; /* as meson reads it */
    const char *wanted = getenv("RAPT_LEVEL"), *has = strrchr(rapt_get_level(), '-');
    if (!wanted || !*wanted || strcmp(wanted, has ? has + 1 : rapt_get_level()) == 0) return;
    printf("skipped: this processor's highest level is %s\n", rapt_get_level());
    fflush(stdout);
    _exit(skipped);
}
