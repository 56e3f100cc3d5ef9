/* What is recorded and what stays outside the graph: the recording mode of a thread, detach, carry. */
#include <rapt/graph.h>

#include "recording.h"
#include "tensor/debug.h"

rapt_tensor *rapt_detach(rapt_tensor *tensor)
{
    if (!tensor) {
        rapt_fail_null("detach", "tensor");
        return NULL;
    }
    if (!rapt_check_alive("detach", "the tensor", tensor)) return NULL;
    return rapt_new_alias(tensor, false);
}

bool rapt_carry(rapt_tensor **state, rapt_tensor *next)
{
    if (!state) return rapt_fail_null("carry", "state");
    if (!next) return rapt_fail_null("carry", "next");
    if (!rapt_check_alive("carry", "the state", *state)) return false;
    RAPT_SCOPE;
    rapt_tensor *carried = rapt_retain(rapt_detach(next));
    if (!carried) return false;
    rapt_release(*state);
    *state = carried;
    return true;
}

RAPT_THREAD_LOCAL bool rapt_recording_is_off;
RAPT_THREAD_LOCAL rapt_tensor *rapt_spare_gradient;

bool rapt_is_recording(void)
{
    return !rapt_recording_is_off;
}

bool rapt_set_recording(bool recording)
{
    const bool before = !rapt_recording_is_off;
    rapt_recording_is_off = !recording;
    rapt_spare_gradient = NULL;
    return before;
}

void rapt_restore_recording(const bool *before)
{
    if (before) rapt_set_recording(*before);
}
