/* Start-up: which instruction-set level, who computes matrix products. */
#include <rapt/runtime.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef RAPT_HAVE_LEVEL_AMX
#include <cpuid.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#endif

#include <rapt/error.h>

#include "blas.h"
#include "tensor/kernels.h"
#include "tensor/lock.h"
#include "tensor/matmul.h"

#if defined __FAST_MATH__ || (defined __FINITE_MATH_ONLY__ && __FINITE_MATH_ONLY__)
#error the library is built without -ffast-math, -Ofast and -ffinite-math-only, which know no NaN and infinities
#endif

rapt_kernels rapt_kernel;

typedef struct level {
    const char *name, *short_name;
    void (*fill)(rapt_kernels *kernels);
    bool (*runs_here)(void);
} level;

#ifdef RAPT_HAVE_LEVEL_BASELINE
void rapt_fill_kernels_baseline(rapt_kernels *kernels);

static bool runs_everywhere(void)
{
    return true;
}
#endif

#if defined RAPT_HAVE_LEVEL_V3 || defined RAPT_HAVE_LEVEL_V4
static bool runs_v3(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2");
}
#endif

#ifdef RAPT_HAVE_LEVEL_V3
void rapt_fill_kernels_v3(rapt_kernels *kernels);
#endif

#ifdef RAPT_HAVE_LEVEL_V4
void rapt_fill_kernels_v4(rapt_kernels *kernels);

static bool runs_v4(void)
{
    return runs_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

#ifdef RAPT_HAVE_LEVEL_AMX
void rapt_fill_matmul_limbs(rapt_kernels *kernels);

/* Linux lets a process have the registers for matrices if it asks (arch_prctl, since 5.16). */
enum { get_supported = 0x1021, request_permission = 0x1023, matrix_registers = 18 };

static bool runs_amx(void)
{
    unsigned int a, b, c, d;
    uint64_t supported = 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d >> 22 & 1) || !(d >> 24 & 1)) return false;
    return syscall(SYS_arch_prctl, get_supported, &supported) == 0 && (supported >> matrix_registers & 1);
}

/* Not at start-up: afterwards an alternate signal stack needs room for those registers, which a program that never
 * multiplies should not have to give. */
static bool may_use_limbs(void)
{
    static atomic_int answer; /* 0: not asked yet */
    if (atomic_load(&answer) == 0) {
        const bool allowed = syscall(SYS_arch_prctl, request_permission, matrix_registers) == 0;
        int before = 0;
        if (atomic_compare_exchange_strong(&answer, &before, allowed ? 1 : -1) && !allowed)
            rapt_warn("matmul", "float32 is multiplied with AVX-512, for the system gives no registers of AMX: %s",
                      errno == ENOSPC ? "a thread's alternate signal stack has no room for them" : strerror(errno));
    }
    return atomic_load(&answer) > 0;
}
#else
static bool may_use_limbs(void)
{
    return false;
}
#endif

/* To pack limbs takes longer than numbers: worth it where enough rows and columns use them. */
const rapt_matmul_kernels *rapt_matmul_kernels_for(rapt_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    enum { fewest = 128 };
    const bool is_large = m >= fewest && n >= fewest && k > 0 && m * n > RAPT_SMALL_PRODUCT / k;
    return is_large && dtype == RAPT_FLOAT32 && rapt_kernel.limbs && may_use_limbs() ? rapt_kernel.limbs
                                                                                     : &rapt_kernel.matmul[dtype];
}

static const level levels[] = {
#ifdef RAPT_HAVE_LEVEL_BASELINE
    {"baseline", "baseline", rapt_fill_kernels_baseline, runs_everywhere},
#endif
#ifdef RAPT_HAVE_LEVEL_V3
    {"x86-64-v3", "v3", rapt_fill_kernels_v3, runs_v3},
#endif
#ifdef RAPT_HAVE_LEVEL_V4
    {"x86-64-v4", "v4", rapt_fill_kernels_v4, runs_v4},
#endif
#ifdef RAPT_HAVE_LEVEL_AMX
    {"x86-64-v4-amx", "amx", rapt_fill_matmul_limbs, runs_amx},
#endif
};

/* The lower levels first: a higher one overwrites what it has a better loop for, up to the level that was asked for. */
static void fill_table(void)
{
    const char *wanted = getenv("RAPT_LEVEL");
    bool found = !wanted || !*wanted;
    for (size_t i = 0; i < sizeof levels / sizeof *levels && levels[i].runs_here(); i++) {
        levels[i].fill(&rapt_kernel);
        rapt_kernel.level = levels[i].name;
        if (wanted && (strcmp(wanted, levels[i].short_name) == 0 || strcmp(wanted, levels[i].name) == 0)) {
            found = true;
            break;
        }
    }
    if (!rapt_kernel.level) {
        fprintf(stderr, "rapt: this library has kernels for %s and above alone, which this processor does not run\n",
                levels[0].name);
        _exit(1);
    }
    if (!found)
        fprintf(
            stderr,
            "rapt: RAPT_LEVEL=%s is none of the levels (baseline, v3, v4, amx), or not of this library or processor; "
            "using %s\n",
            wanted, rapt_kernel.level);
}

static __attribute__((constructor(RAPT_START_ORDER))) void start(void)
{
#if defined RAPT_HAVE_LEVEL_V3 || defined RAPT_HAVE_LEVEL_V4
    __builtin_cpu_init();
#endif
    fill_table();
    rapt_blas_start();
    const char *verbose = getenv("RAPT_VERBOSE");
    if (verbose && *verbose && strcmp(verbose, "0") != 0) fprintf(stderr, "%s\n", rapt_describe_runtime());
}

const char *rapt_get_level(void)
{
    return rapt_kernel.level;
}

int64_t rapt_get_version_number(void)
{
    return RAPT_VERSION_NUMBER;
}

const char *rapt_describe_runtime(void)
{
    static __thread char text[320];
    snprintf(text, sizeof text, "rapt %s: %d thread%s, kernels for %s, matrix products by %s", RAPT_VERSION,
             rapt_get_threads(), rapt_get_threads() == 1 ? "" : "s", rapt_get_level(),
             rapt_matmul_uses_blas() ? rapt_blas_describe() : "rapt");
    return text;
}
