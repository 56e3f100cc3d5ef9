/* What changes of scores captured, as inputs and outputs of the fused ops. */
#include "captured.h"

#include "tensor/core.h"

const rapt_raw_changes *rapt_changes_of(const rapt_call *call, int first, const rapt_score_changes *changes,
                                        rapt_dtype dtype, rapt_raw_changes *raw)
{
    if (changes->count == 0) return NULL;
    rapt_raw_changes_of(changes, dtype, rapt_call_inputs(call) + first, raw);
    return raw;
}

bool rapt_captured_gradients(rapt_call *call, int output, const bool *wants, int first, rapt_raw_changes *raw)
{
    for (int c = 0; c < raw->changes->captured; c++) {
        rapt_tensor *gradient = rapt_keep(wants[c] ? rapt_zeros_like(rapt_call_input(call, first + c))
                                                   : rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(0)));
        if (!gradient) return false;
        if (wants[c]) raw->captured[c].gradient = gradient->data;
        rapt_call_set_output(call, output + c, gradient);
    }
    rapt_lay_out_gradients(raw);
    return true;
}
