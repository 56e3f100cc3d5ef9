/* Ctrl-C: the first one asks a long run to end well, the second one ends it. */
#ifndef EXAMPLES_INTERRUPT_H
#define EXAMPLES_INTERRUPT_H

#include <stdbool.h>

/* From now on the first SIGINT, SIGTERM or SIGHUP only sets a flag, and the next one of any of them does what it
   does by default. Those that the parent process has ignored (nohup) stay ignored. SIGPIPE is ignored until the end:
   a run whose output nobody reads any more still saves its files. */
void interrupt_watch(void);

/* The signal that has come since interrupt_watch, or 0; a program that ends because of it exits with 128 + signal. */
int interrupt_signal(void);

/* Back to the signals' defaults, SIGPIPE's too, but for those that were ignored before interrupt_watch; the flag
 * stays. */
void interrupt_release(void);

#endif
