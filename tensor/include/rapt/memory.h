/* Who owns a tensor: scopes, retain and release; and what the caching allocator holds. */
#ifndef RAPT_MEMORY_H
#define RAPT_MEMORY_H

#include <rapt/base.h>

RAPT_BEGIN_DECLS

/* A tensor that a function returns belongs to the innermost open scope of the calling thread; the end of the scope
 * drops it. Outside any scope it lives until its thread ends. To use one that was dropped is undefined, as with
 * free: its memory serves another soon. With RAPT_DEBUG=1 in the environment, and in debug builds, memory that is
 * dropped is filled with NaN and kept back for a while, and the use of a tensor that is gone is an error that names
 * it. So is the use of a module, optimizer, loader, average, archive or cache that was freed. */
typedef int64_t rapt_scope;

/* Opens a scope and returns its mark. It does not fail: where there is no memory to note where it begins, it is one
 * with the scope around it, whose end then drops its tensors, too. */
RAPT_API rapt_scope rapt_scope_begin(void);

/* Ends the scope with that mark and every forgotten one inside it. */
RAPT_API void rapt_scope_end(rapt_scope scope);

/* The function behind RAPT_SCOPE; it ends *scope. */
RAPT_API void rapt_scope_cleanup(rapt_scope *scope);

/* `RAPT_SCOPE;` at the top of a block opens a scope that ends with the block, however it is left: break, continue and
 * return keep the meaning they have in C. */
#define RAPT_SCOPE                                                                                                     \
    rapt_scope RAPT_JOIN(rapt_scope_, __COUNTER__) __attribute__((cleanup(rapt_scope_cleanup), unused)) =              \
        rapt_scope_begin()

/* Hands a tensor of the innermost scope to the scope around it, and returns it. A tensor that the innermost scope does
 * not own is returned as it is. NULL gives NULL. */
RAPT_API rapt_tensor *rapt_keep(rapt_tensor *tensor);

/* Takes a share in the tensor for an owner that outlives scopes (a module, an optimizer, a global), and returns it.
 * NULL gives NULL. */
RAPT_API rapt_tensor *rapt_retain(rapt_tensor *tensor);

/* Gives a share back; with the last one the tensor is freed. NULL does nothing. Who replaces a tensor by another, which
 * may be the same one, retains the new one first. */
RAPT_API void rapt_release(rapt_tensor *tensor);

/* A field of a struct that holds a tensor from call to call, NULL at first, where threads share the struct (a layer,
 * say) and all of them read and replace it by these two. Set gives the field a share in the tensor, NULL empties it,
 * and gives back the share in what it held. Get gives the innermost scope a share in what it holds, so that the tensor
 * is there whatever others set meanwhile; NULL where that is nothing. A field that is NULL, or a tensor that is gone,
 * is an error: NULL, or false, and the field is as before. */
RAPT_API bool rapt_field_set(rapt_tensor **field, rapt_tensor *tensor);
RAPT_API rapt_tensor *rapt_field_get(rapt_tensor *const *field);

/* What the caching allocator of the whole process holds. Blocks that were given back are kept for reuse, those of more
 * than 512 KiB as long as all that it has from the system is no more than twice the most that was ever in use: beyond
 * that some go back before another one is asked for. What other threads took or gave last may still be missing,
 * up to 64 KiB for each of them. */
typedef struct rapt_memory_statistics {
    int64_t live_bytes;         /* in use by tensors and graphs now */
    int64_t peak_bytes;         /* the most that was in use since rapt_memory_reset_peak */
    int64_t cached_bytes;       /* kept for reuse */
    int64_t system_allocations; /* times the system was asked for memory: does not move in a steady training step */
} rapt_memory_statistics;

/* The numbers of now. */
RAPT_API rapt_memory_statistics rapt_memory_get_statistics(void);

/* From now on peak_bytes counts from what is live. */
RAPT_API void rapt_memory_reset_peak(void);

/* Gives the unused blocks of the calling thread and of the shared cache back to the system; with glibc also what that
 * keeps of its own (malloc_trim). */
RAPT_API void rapt_memory_trim(void);

RAPT_END_DECLS

#endif
