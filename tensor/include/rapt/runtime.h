/* What the library runs on: threads, instruction set, who computes matrix products. RAPT_VERBOSE=1 in the environment
 * prints it at start-up. */
#ifndef RAPT_RUNTIME_H
#define RAPT_RUNTIME_H

#include <rapt/base.h>

RAPT_BEGIN_DECLS

/* The number of threads that ops use; results do not depend on it. Values below 1 or above 4096 are an error (false).
 * A library built without OpenMP works on the calling thread, whatever it is told (rapt_get_threads gives 1). The
 * default otherwise is OpenMP's (OMP_NUM_THREADS, or one for each processor), 4096 at most, of which all but one rest
 * while other programs keep the processors busy; a number that was set is used as it is. A thread that forks works
 * alone in the child, since OpenMP's threads do not survive a fork. If it was the only thread of its process, it may
 * set a number in the child; if there were others, which may have been OpenMP's, a number above 1 is an error there. */
RAPT_API bool rapt_set_threads(int threads);
RAPT_API int rapt_get_threads(void);

/* The instruction-set level of the kernels in use: "baseline", "x86-64-v3", "x86-64-v4" or "x86-64-v4-amx". The
 * environment variable RAPT_LEVEL (baseline, v3, v4, amx) chooses a lower one than the processor has, of those that the
 * library is built with. */
RAPT_API const char *rapt_get_level(void);

/* RAPT_VERSION_NUMBER of the library that runs, which may be newer than the headers that a program was built with. */
RAPT_API int64_t rapt_get_version_number(void);

/* One line with version, threads, level and who computes matrix products: the library itself, or with
 * RAPT_MATMUL=openblas in the environment OpenBLAS, for comparison. */
RAPT_API const char *rapt_describe_runtime(void);

RAPT_END_DECLS

#endif
