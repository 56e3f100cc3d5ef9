/* What the preloaded malloc tells the program that runs with it. */
#ifndef RAPT_TESTS_PRELOAD_REQUESTS_H
#define RAPT_TESTS_PRELOAD_REQUESTS_H

/* How often anybody in the process has asked the system for memory since main began. NULL without the preloaded
 * malloc. */
__attribute__((weak)) long long preloaded_requests(void);

#endif
