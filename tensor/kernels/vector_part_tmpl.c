/* The first lanes of a vector, read and written without touching what lies behind them. T is the element type, SIZE its
 * bytes. */
#if defined __AVX__
#include <immintrin.h>
#endif

#if defined __AVX512F__
#if SIZE == 4
typedef __mmask16 some_lanes;
#define LOAD_LANES(lanes, from) _mm512_maskz_loadu_ps(lanes, from)
#define STORE_LANES(to, lanes, from) _mm512_mask_storeu_ps(to, lanes, (__m512)(from))
#else
typedef __mmask8 some_lanes;
#define LOAD_LANES(lanes, from) _mm512_maskz_loadu_pd(lanes, from)
#define STORE_LANES(to, lanes, from) _mm512_mask_storeu_pd(to, lanes, (__m512d)(from))
#endif

/* The first `count` lanes, 0 to `width`. */
static inline some_lanes first_lanes(int64_t count)
{
    return (some_lanes)((1u << count) - 1);
}
#elif defined __AVX__
typedef struct some_lanes {
    __m256i lanes;
    int64_t count;
} some_lanes;

#if SIZE == 4
typedef int32_t lane_bits;
#define LOAD_LANES(some, from) _mm256_maskload_ps(from, (some).lanes)
#else
typedef int64_t lane_bits;
#define LOAD_LANES(some, from) _mm256_maskload_pd(from, (some).lanes)
#endif

static inline some_lanes first_lanes(int64_t count)
{
    static const lane_bits masks[2 * width] =
    { -1,
      -1,
      -1,
      -1,
#if SIZE == 4
      -1,
      -1,
      -1,
      -1,
#endif
    };
    return (some_lanes){_mm256_loadu_si256((const __m256i *)(const void *)(masks + width - count)), count};
}
#else
typedef struct some_lanes {
    int64_t count;
} some_lanes;

static inline some_lanes first_lanes(int64_t count)
{
    return (some_lanes){count};
}
#endif

static inline vector load_part(const T *from, some_lanes lanes)
{
#ifdef LOAD_LANES
    return (vector)LOAD_LANES(lanes, from);
#else
    T beside[width] = {0};
    memcpy(beside, from, (size_t)lanes.count * SIZE);
    return *(const vector *)(const void *)beside;
#endif
}

/* Where no instruction does it, or only a slow one: as few moves as the number of lanes has binary digits. */
static inline void store_part(T *to, some_lanes lanes, vector from)
{
#ifdef STORE_LANES
    STORE_LANES(to, lanes, from);
#else
    T beside[2 * width]; /* so that no move can seem to read behind it */
    const T *next = beside;
    *(vector *)(void *)beside = from;
    if (lanes.count == width) {
        *(vector *)(void *)to = from;
        return;
    }
#pragma GCC unroll 4
    for (int moved = width / 2; moved > 0; moved /= 2)
        if (lanes.count & moved) {
            memcpy(to, next, (size_t)moved * SIZE);
            to += moved;
            next += moved;
        }
#endif
}

/* 16 bytes, and as many columns of a lane as one has elements, turned. */
typedef T lane_vector __attribute__((vector_size(16), aligned(SIZE), may_alias));

static inline void store_lane_part(T *to, int64_t count, lane_vector from)
{
#if defined __AVX512F__ && SIZE == 4
    _mm_mask_storeu_ps(to, (__mmask8)((1u << count) - 1), (__m128)from);
#else
    for (int64_t i = 0; i < count; i++) to[i] = from[i];
#endif
}

static inline __attribute__((always_inline)) void transpose_lane(lane_vector *rows)
{
#if SIZE == 4
    const lane_vector a = __builtin_shufflevector(rows[0], rows[2], 0, 4, 1, 5),
                      b = __builtin_shufflevector(rows[1], rows[3], 0, 4, 1, 5),
                      c = __builtin_shufflevector(rows[0], rows[2], 2, 6, 3, 7),
                      d = __builtin_shufflevector(rows[1], rows[3], 2, 6, 3, 7);
    rows[0] = __builtin_shufflevector(a, b, 0, 4, 1, 5), rows[1] = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    rows[2] = __builtin_shufflevector(c, d, 0, 4, 1, 5), rows[3] = __builtin_shufflevector(c, d, 2, 6, 3, 7);
#else
    const lane_vector a = __builtin_shufflevector(rows[0], rows[1], 0, 2),
                      b = __builtin_shufflevector(rows[0], rows[1], 1, 3);
    rows[0] = a, rows[1] = b;
#endif
}

/* Half a vector, which some processors multiply twice as fast as a whole one, and its first lanes. */
#if RAPT_VECTOR_BYTES >= 32
#define RAPT_HALF_VECTORS
enum { half_width = width / 2 };
typedef T half_vector __attribute__((vector_size(RAPT_VECTOR_BYTES / 2), aligned(SIZE), may_alias));

#if defined __AVX512F__
static inline half_vector load_half_part(const T *from, some_lanes lanes)
{
#if SIZE == 4
    return (half_vector)_mm256_maskz_loadu_ps((__mmask8)lanes, from);
#else
    return (half_vector)_mm256_maskz_loadu_pd(lanes, from);
#endif
}

static inline void store_half_part(T *to, some_lanes lanes, half_vector from)
{
#if SIZE == 4
    _mm256_mask_storeu_ps(to, (__mmask8)lanes, (__m256)from);
#else
    _mm256_mask_storeu_pd(to, lanes, (__m256d)from);
#endif
}
#else
static inline half_vector load_half_part(const T *from, some_lanes lanes)
{
#if SIZE == 4
    return (half_vector)_mm_maskload_ps(from, _mm256_castsi256_si128(lanes.lanes));
#else
    return (half_vector)_mm_maskload_pd(from, _mm256_castsi256_si128(lanes.lanes));
#endif
}

static inline void store_half_part(T *to, some_lanes lanes, half_vector from)
{
    store_lane_part(to, lanes.count, from);
}
#endif
#endif
