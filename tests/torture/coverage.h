/* Included before each source of a build that counts branches: children that end by _exit are counted, too. Nothing is
 * included here, since sources may give names of the system to functions of their own. */
void __gcov_dump(void);
_Noreturn void _Exit(int status);

__attribute__((weak, noreturn)) void rapt_counted_exit(int status)
{
    __gcov_dump();
    _Exit(status);
}
#define _exit rapt_counted_exit
