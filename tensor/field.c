/* Fields of a module that hold the tensors of its last call: threads that share it read and replace them. */
#include "tensor/core.h"
#include "tensor/lock.h"
#include "tensor/memory.h"

RAPT_LOCK(fields_lock, FIELDS)

rapt_tensor *rapt_field_get(rapt_tensor *const *field)
{
    fields_lock_take();
    rapt_tensor *tensor = rapt_retain(*field);
    fields_lock_give();
    return rapt_scope_own(tensor);
}

void rapt_field_set(rapt_tensor **field, rapt_tensor *tensor)
{
    fields_lock_take();
    rapt_tensor *before = *field;
    *field = rapt_retain(tensor);
    fields_lock_give();
    rapt_release(before);
}
