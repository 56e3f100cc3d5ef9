/* Stores that pass by the caches: what is too large to be found there again is written without being read first, and
 * pushes nothing else out. */
#ifndef RAPT_KERNELS_STREAM_H
#define RAPT_KERNELS_STREAM_H

#include <stdint.h>
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
enum { stream_bytes = 64 };
#elif defined(__AVX__)
enum { stream_bytes = 32 };
#else
enum { stream_bytes = 16 };
#endif

typedef char rapt_stream_vector __attribute__((vector_size(stream_bytes)));

/* `to` is a multiple of stream_bytes. */
static inline void rapt_stream(void *to, rapt_stream_vector vector)
{
#if defined(__AVX512F__)
    _mm512_stream_si512(to, (__m512i)vector);
#elif defined(__AVX__)
    _mm256_stream_si256(to, (__m256i)vector);
#elif defined(__x86_64__)
    _mm_stream_si128(to, (__m128i)vector);
#else
    memcpy(to, &vector, sizeof vector);
#endif
}

/* After the last one of a task, so that who is told that the task is done sees them. */
static inline void rapt_stream_end(void)
{
#ifdef __x86_64__
    _mm_sfence();
#endif
}

/* So many bytes from there to the next place for a vector; no more than there are. */
static inline int64_t rapt_stream_offset(const void *to, int64_t bytes)
{
    const int64_t offset = (int64_t)(-(uintptr_t)to % stream_bytes);
    return offset < bytes ? offset : bytes;
}

static inline void rapt_stream_zeros(void *to, int64_t bytes)
{
    char *out = to;
    int64_t i = rapt_stream_offset(out, bytes);
    memset(out, 0, (size_t)i);
    for (; i + stream_bytes <= bytes; i += stream_bytes) rapt_stream(out + i, (rapt_stream_vector){0});
    memset(out + i, 0, (size_t)(bytes - i));
}

#endif
