/* Shares of tensors: taken, given back, and the end of a tensor with the last one. */
#include "tensor/debug.h"
#include "tensor/memory.h"

static void part_release(rapt_storage *storage)
{
    if (!rapt_drop_reference(&storage->parts)) return;
    void *block = storage->follows_tensor ? (char *)storage - RAPT_TENSOR_ROOM : (char *)storage;
    rapt_block_give(block, storage->capacity);
}

static void storage_release(rapt_storage *storage)
{
    if (!rapt_drop_reference(&storage->references)) return;
    if (storage->release_foreign) storage->release_foreign(storage->foreign_owner);
    part_release(storage);
}

static void header_give(rapt_tensor *tensor)
{
    if (rapt_debugging) rapt_mark_gone(tensor);
    rapt_block_give_as_it_is(tensor, sizeof *tensor);
}

/* The tensor and its storage go together, unless a view still looks at that, or they were exchanged. */
static void block_release(rapt_tensor *tensor)
{
    rapt_storage *behind = (rapt_storage *)(void *)((char *)tensor + RAPT_TENSOR_ROOM);
    if (tensor->storage == behind && atomic_load_explicit(&behind->references, memory_order_acquire) == 1) {
        rapt_block_give_as_it_is(tensor, behind->capacity);
        return;
    }
    storage_release(tensor->storage);
    part_release(behind);
}

rapt_tensor *rapt_retain(rapt_tensor *tensor)
{
    if (!rapt_check_alive("retain", "the tensor", tensor)) return NULL;
    if (tensor) atomic_fetch_add_explicit(&tensor->references, 1, memory_order_relaxed);
    return tensor;
}

void rapt_release(rapt_tensor *tensor)
{
    if (!rapt_check_alive("release", "the tensor", tensor)) return;
    if (!tensor || !rapt_drop_reference(&tensor->references)) return;
    if (tensor->link) tensor->link->kind->release(tensor->link, tensor);
    if (tensor->has_storage_behind) {
        block_release(tensor);
        return;
    }
    storage_release(tensor->storage);
    header_give(tensor);
}
