/* Start-up, and what the library says that it runs on. */
#include <rapt/runtime.h>

#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blas.h"
#include "tensor/kernels.h"
#include "tensor/matmul.h"

static __attribute__((constructor)) void start(void)
{
    rapt_choose_level();
    rapt_blas_start();
    rapt_matmul_start();
    const char *verbose = getenv("RAPT_VERBOSE");
    if (verbose && *verbose && strcmp(verbose, "0") != 0) fprintf(stderr, "%s\n", rapt_describe_runtime());
}

const char *rapt_describe_runtime(void)
{
    static __thread char text[320];
    snprintf(text, sizeof text, "rapt %s: %d thread%s, kernels for %s, matrix products by %s", RAPT_VERSION,
             rapt_get_threads(), rapt_get_threads() == 1 ? "" : "s", rapt_get_level(),
             rapt_matmul_uses_blas() ? openblas_get_config() : "rapt");
    return text;
}
