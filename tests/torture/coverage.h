/* Included before each source of a build that counts branches. Children that end by _exit are counted, too; functions
 * that are inlined always are not, so that a branch of theirs counts once in each file and not once for each place that
 * they would be copied to. Nothing is included here, since sources may give names of the system to functions of their
 * own. */
void __gcov_dump(void);
_Noreturn void _Exit(int status);

__attribute__((weak, noreturn)) void rapt_counted_exit(int status)
{
    __gcov_dump();
    _Exit(status);
}
#define _exit rapt_counted_exit
#define always_inline unused
