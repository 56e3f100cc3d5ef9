/* The buffers of a module as they were before runs of it. */
#include "kept_buffers.h"

#include "tensor/core.h"
#include "tensor/scratch.h"

bool rapt_keep_buffers(const char *op, const rapt_module *module, rapt_kept_buffers *kept)
{
    rapt_tensor_list *buffers = kept->buffers = rapt_module_list(module, RAPT_BUFFERS);
    kept->kept = buffers ? rapt_scratch_list(op, buffers->count, sizeof *kept->kept) : NULL;
    for (int i = 0; kept->kept && i < buffers->count; i++) {
        rapt_tensor *buffer = buffers->tensors[i];
        kept->kept[i] = (struct rapt_kept_buffer){rapt_clone(buffer), rapt_version_of(buffer)};
        if (!kept->kept[i].values) return false;
    }
    return kept->kept != NULL;
}

bool rapt_put_buffers_back(const rapt_kept_buffers *kept)
{
    bool good = true;
    for (int i = 0; i < kept->buffers->count; i++)
        if (rapt_version_of(kept->buffers->tensors[i]) != kept->kept[i].version)
            good = rapt_copy(kept->buffers->tensors[i], kept->kept[i].values) && good;
    return good;
}

void rapt_kept_buffers_free(rapt_kept_buffers *kept)
{
    rapt_tensor_list_free(kept->buffers);
}
