/* Packings read from the tensor of their starts, and checked. */
#include "tensor/packing.h"

#include "tensor/debug.h"

bool rapt_read_packing(const char *op, const rapt_tensor *starts, rapt_raw_packing *packing)
{
    char text[128];
    *packing = (rapt_raw_packing){0};
    if (!starts) return rapt_fail_null(op, "starts");
    if (!rapt_check_alive(op, "the tensor of starts", starts)) return false;
    if (!rapt_is_integer(starts))
        return rapt_fail(RAPT_ERROR_DTYPE, op, "the starts are %s; int64 or int32 expected",
                         rapt_dtype_name(starts->dtype));
    if (starts->rank != 1 || starts->count < 1)
        return rapt_fail(RAPT_ERROR_SHAPE, op, "starts (B + 1) expected, not %s",
                         rapt_describe(starts, text, sizeof text));
    rapt_tensor *dense = rapt_new(op, RAPT_INT64, 1, starts->shape);
    if (!dense) return false;
    int64_t *start = (int64_t *)(void *)dense->data, longest = 0;
    for (int64_t i = 0; i < starts->count; i++) {
        start[i] = starts->dtype == RAPT_INT64 ? ((const int64_t *)(void *)starts->data)[i * starts->strides[0]]
                                               : ((const int32_t *)(void *)starts->data)[i * starts->strides[0]];
        const int64_t least = i > 0 ? start[i - 1] : 0;
        if (start[i] < least || (i == 0 && start[0] > 0))
            return rapt_fail(RAPT_ERROR_VALUE, op, "start %lld is %lld; %s %lld expected", (long long)i,
                             (long long)start[i], i > 0 ? "at least" : "first of all", (long long)least);
        if (start[i] - least > longest) longest = start[i] - least;
    }
    *packing = (rapt_raw_packing){start, starts->count - 1, start[starts->count - 1], longest};
    return true;
}

int64_t rapt_find_empty_sequence(const rapt_raw_packing *packing)
{
    for (int64_t b = 0; b < packing->sequences; b++)
        if (rapt_packed_length(packing, b) == 0) return b;
    return -1;
}

bool rapt_check_packed_rows(const char *op, const char *what, const rapt_raw_packing *packing, int64_t rows)
{
    return packing->rows == rows || rapt_fail(RAPT_ERROR_SHAPE, op, "%lld %s, but the packing's sequences have %lld",
                                              (long long)rows, what, (long long)packing->rows);
}
