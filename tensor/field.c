/* Fields that hold a tensor between calls: threads that share a layer read and replace them. */
#include "tensor/debug.h"
#include "tensor/lock.h"
#include "tensor/memory.h"

RAPT_LOCK(fields_lock, FIELDS)

rapt_tensor *rapt_field_get(rapt_tensor *const *field)
{
    if (!field) {
        rapt_fail_null("field_get", "field");
        return NULL;
    }
    fields_lock_take();
    rapt_tensor *tensor = *field; /* not by rapt_retain: an error handler must not be called under the lock */
    if (tensor) atomic_fetch_add_explicit(&tensor->references, 1, memory_order_relaxed);
    fields_lock_give();
    return rapt_check_alive("field_get", "the tensor", tensor) ? rapt_scope_own(tensor) : NULL;
}

bool rapt_field_set(rapt_tensor **field, rapt_tensor *tensor)
{
    if (!field) return rapt_fail_null("field_set", "field");
    if (!rapt_check_alive("field_set", "the tensor", tensor)) return false;
    rapt_retain(tensor);
    rapt_error_hold(); /* an error handler must not be called under the lock */
    fields_lock_take();
    rapt_tensor *before = *field;
    const bool good = rapt_check_alive("field_set", "what the field holds", before);
    if (good) *field = tensor;
    fields_lock_give();
    rapt_release(good ? before : tensor);
    rapt_error_release();
    return good;
}
