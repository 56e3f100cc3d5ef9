/* How multi-head attention fills its cache, and how a change of several caches is taken back. */
#ifndef RAPT_NN_ATTENTION_CACHE_H
#define RAPT_NN_ATTENTION_CACHE_H

#include <rapt/multi_head.h>

/* Puts keys and values (B, groups, T, size) of one length behind the first cache->length and makes them views of all
 * there then is; NULL both: of what there is. The caller counts the new ones into cache->length when all went well.
 * False after an error. */
bool rapt_attention_cache_append(const char *op, rapt_attention_cache *cache, rapt_tensor **keys, rapt_tensor **values);

/* Fills an empty cache with the keys and values (1, groups, rows, size) of packed sequences, which all end at the
 * length of the longest. The caller counts them likewise. */
bool rapt_attention_cache_fill(const char *op, rapt_attention_cache *cache, rapt_tensor *keys, rapt_tensor *values,
                               rapt_tensor *starts);

/* Another holder of the same tensors. */
rapt_attention_cache rapt_attention_cache_share(const rapt_attention_cache *cache);

/* Makes the cache what it was when it held `length` keys. */
void rapt_attention_cache_return(rapt_attention_cache *cache, int64_t length);

#endif
