/* A Gaussian window around the query: score − ½ (j − i)² / width². */
#include <stdio.h>

#include "modifications.h"
#include "nn/options.h"
#include "tensor/core.h"

typedef struct gaussian_window {
    rapt_score_modification modification;
    rapt_tensor *width; /* (heads), a parameter or a buffer */
} gaussian_window;

static bool capture(rapt_score_modification *modification, rapt_dtype dtype, rapt_tensor **captured)
{
    (void)dtype;
    return rapt_capture_by_head(((gaussian_window *)modification)->width, captured);
}

static rapt_tensor *by_ops(const void *options, rapt_tensor *scores, rapt_tensor *const *captured, rapt_tensor *queries,
                           rapt_tensor *keys)
{
    (void)options;
    rapt_tensor *u = rapt_div(rapt_relative_places(queries, keys, rapt_get_dtype(scores)), captured[0]);
    return rapt_sub(scores, rapt_mul_scalar(rapt_mul(u, u), 0.5));
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    const rapt_tensor *width = ((const gaussian_window *)module)->width;
    snprintf(text, size, "%lld heads%s", (long long)rapt_size(width, 0),
             rapt_requires_gradient(width) ? ", learned" : "");
}

static const rapt_module_class kind = {.name = "GaussianWindow", .describe = describe};

rapt_score_modification *rapt_gaussian_window_new(int64_t heads, double width, bool learns)
{
    if (!rapt_check_modified_heads(kind.name, heads)) return NULL;
    if (!rapt_check_above_0(kind.name, "width", width)) return NULL;
    RAPT_SCOPE;
    gaussian_window *m = rapt_module_new(sizeof *m, &kind);
    if (!m) return NULL;
    m->width = (learns ? rapt_module_add_parameter
                       : rapt_module_add_buffer)(&m->modification.module, "width",
                                                 rapt_full(RAPT_FLOAT32, RAPT_SHAPE(heads), width));
    m->modification.captured_count = 1;
    m->modification.capture = capture;
    m->modification.by_ops = by_ops;
    RAPT_SET_FUNCTIONS(&m->modification, gaussian_window);
    return rapt_module_finish(&m->modification.module);
}
