/* The size classes of the allocator's blocks. */
#ifndef RAPT_TENSOR_SIZE_CLASS_H
#define RAPT_TENSOR_SIZE_CLASS_H

#include <stddef.h>

/* Size classes: every 64 bytes to 1024, then four to each doubling, so that at most a fifth of a block is waste. */
enum { alignment = 64, small_classes = 16, small_doublings = 4 };
enum { steps_per_doubling = 4, class_count = small_classes + 54 * steps_per_doubling };

/* Of a block of at least so many bytes. */
static inline int rapt_class_of(size_t bytes)
{
    const size_t units = (bytes + alignment - 1) / alignment;
    if (units <= small_classes) return units == 0 ? 0 : (int)units - 1;
    /* 2^doubling ≤ units − 1 < 2^(doubling + 1) */
    const int doubling = 63 - __builtin_clzll((unsigned long long)(units - 1));
    const size_t within = (units - 1 - ((size_t)1 << doubling)) >> (doubling - 2);
    return small_classes + (doubling - small_doublings) * steps_per_doubling + (int)within;
}

/* The bytes of a class's blocks. */
static inline size_t rapt_class_size(int class)
{
    if (class < small_classes) return (size_t)(class + 1) * alignment;
    const int doubling = (class - small_classes) / steps_per_doubling + small_doublings;
    const size_t within = (size_t)(class - small_classes) % steps_per_doubling + 1;
    return (((size_t)1 << doubling) + (within << (doubling - 2))) * alignment;
}

/* The capacity of a block is the size of the class that was asked for, and its lowest bits say how many classes larger
 * the block is. That of a small block, which never is, may be the bytes that were asked for instead. */
static inline int rapt_class_asked(size_t capacity)
{
    return rapt_class_of(capacity / alignment < small_classes ? capacity : capacity / alignment * alignment);
}

static inline int rapt_class_had(size_t capacity)
{
    return rapt_class_asked(capacity) + (capacity / alignment < small_classes ? 0 : (int)(capacity % alignment));
}

#endif
