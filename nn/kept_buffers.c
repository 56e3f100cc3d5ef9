/* The buffers of a module as they were before runs of it. */
#include "kept_buffers.h"

#include "tensor/core.h"

bool rapt_keep_buffers(const rapt_tensor_list *buffers, rapt_kept_buffer *kept)
{
    for (int i = 0; i < buffers->count; i++) {
        kept[i] = (rapt_kept_buffer){rapt_clone(buffers->tensors[i]), rapt_version_of(buffers->tensors[i])};
        if (!kept[i].values) return false;
    }
    return true;
}

bool rapt_put_buffers_back(const rapt_tensor_list *buffers, const rapt_kept_buffer *kept)
{
    bool good = true;
    for (int i = 0; i < buffers->count; i++)
        if (rapt_version_of(buffers->tensors[i]) != kept[i].version)
            good = rapt_copy(buffers->tensors[i], kept[i].values) && good;
    return good;
}
