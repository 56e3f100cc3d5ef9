/* How a block of an operand is packed for products of limbs: split, in the order in which tiles are loaded. */
#ifndef RAPT_KERNELS_LIMB_PANELS_H
#define RAPT_KERNELS_LIMB_PANELS_H

#include <string.h>

#include <immintrin.h>

#include "loop.h"

#define T float
#define SIZE 4
#include "transpose_tmpl.c"

/* A panel of rows or columns is two tiles of 16 of them, its block of k in steps of so many terms. */
enum { tile_lines = 16, panel = 2 * tile_lines, step_terms = RAPT_BLOCK_STEP, limbs = 3 };
enum { tile_bytes = 1024, limb_bytes = 2 * tile_bytes, step_bytes = limbs * limb_bytes };
enum { head_bytes = 64 };

/* The lines of a panel that are left out, a bit for each; behind are its steps: [limb][tile][row of 64 bytes]. */
typedef struct panel_head {
    uint32_t left_out;
} panel_head;

static inline int64_t panel_bytes(int64_t k)
{
    return head_bytes + divide_up(k, step_terms) * step_bytes;
}

static int64_t lines_bytes(int64_t lines, int64_t k)
{
    return divide_up(lines, panel) * panel_bytes(k);
}

/* Up to 32 terms of up to 16 lines: `along` is the stride from one term to the next, `across` from line to line. */
typedef struct lines_of_terms {
    const float *from;
    int64_t lines, terms, across, along;
} lines_of_terms;

static inline __m512i upper_half(__m512i bits)
{
    return _mm512_and_si512(bits, _mm512_set1_epi32((int)0xffff0000u));
}

/* The nearest bfloat16: half a unit more, and the rest cut off. */
static inline __m512i nearest(__m512 x)
{
    return upper_half(_mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000)));
}

/* Limbs are the upper halves of words: x = Σ limb[i]. */
static inline void split(__m512 x, __m512i limb[limbs])
{
    limb[0] = nearest(x);
    const __m512 rest = _mm512_sub_ps(x, _mm512_castsi512_ps(limb[0]));
    limb[1] = nearest(rest);
    limb[2] = _mm512_castps_si512(_mm512_sub_ps(rest, _mm512_castsi512_ps(limb[1])));
}

static inline __m512i bits_of_size(__m512 x)
{
    return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
}

/* Lines that are dense along k: block[limb][line] has 32 terms. */
static inline void split_terms(const lines_of_terms *l, vector block[limbs][width], __m512i largest[width])
{
    const __m512i upper_words = _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29,
                                                 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    const uint32_t terms = l->terms == step_terms ? UINT32_MAX : (1u << l->terms) - 1;
    for (int64_t i = 0; i < l->lines; i++) {
        const float *from = l->from + i * l->across;
        __builtin_prefetch(from + step_terms, 0, 3);
        __builtin_prefetch(from + step_terms + width, 0, 3);
        const __m512 x = _mm512_maskz_loadu_ps((__mmask16)terms, from),
                     y = _mm512_maskz_loadu_ps((__mmask16)(terms >> 16), from + width);
        __m512i of_x[limbs], of_y[limbs];
        split(x, of_x), split(y, of_y);
        largest[i] = _mm512_max_epu32(largest[i], _mm512_max_epu32(bits_of_size(x), bits_of_size(y)));
#pragma GCC unroll 3
        for (int limb = 0; limb < limbs; limb++)
            block[limb][i] = (vector)_mm512_permutex2var_epi16(of_x[limb], upper_words, of_y[limb]);
    }
    for (int64_t i = l->lines; i < width; i++)
        for (int limb = 0; limb < limbs; limb++) block[limb][i] = (vector){0};
}

/* Lines that lie side by side: block[limb][pair of terms] has 16 lines. */
static inline void split_lines(const lines_of_terms *l, vector block[limbs][width], __m512i *largest)
{
    const __mmask16 lines = (__mmask16)((1u << l->lines) - 1);
    for (int64_t i = 0; i < width; i++) {
        const float *from = l->from + 2 * i * l->along;
        __builtin_prefetch(from + step_terms * l->along, 0, 3);
        __builtin_prefetch(from + (step_terms + 1) * l->along, 0, 3);
        const __mmask16 first = 2 * i < l->terms ? lines : 0, second = 2 * i + 1 < l->terms ? lines : 0;
        const __m512 x = _mm512_maskz_loadu_ps(first, from), y = _mm512_maskz_loadu_ps(second, from + l->along);
        __m512i of_x[limbs], of_y[limbs];
        split(x, of_x), split(y, of_y);
        *largest = _mm512_max_epu32(*largest, _mm512_max_epu32(bits_of_size(x), bits_of_size(y)));
#pragma GCC unroll 3
        for (int limb = 0; limb < limbs; limb++)
            block[limb][i] = (vector)_mm512_or_si512(_mm512_srli_epi32(of_x[limb], 16), upper_half(of_y[limb]));
    }
}

/* The largest numbers of 16 lines, one in each, as bits. */
static inline __m512i largest_of_lines(const __m512i largest[width])
{
    uint32_t each[width];
    for (int i = 0; i < width; i++) each[i] = _mm512_reduce_max_epu32(largest[i]);
    return _mm512_loadu_si512(each);
}

/* Which lines are left out: neither all 0, nor in the range. */
static inline uint32_t which_are_left_out(__m512i largest)
{
    const __m512i least = _mm512_set1_epi32((127 - 70) << 23), most = _mm512_set1_epi32((127 + 55) << 23);
    const __mmask16 nonzero = _mm512_test_epi32_mask(largest, largest);
    return nonzero & (_mm512_cmplt_epu32_mask(largest, least) | _mm512_cmpge_epu32_mask(largest, most));
}

/* Zeros in place of lines that are left out, in a tile that has terms side by side, or lines. */
static void clear_lines(char *tile, uint32_t left_out, bool has_lines)
{
    for (int i = 0; i < tile_lines; i++) {
        __m512i row = _mm512_loadu_si512(tile + i * 64);
        if (has_lines)
            row = _mm512_maskz_mov_epi32((__mmask16)~left_out, row);
        else if (left_out >> i & 1)
            row = _mm512_setzero_si512();
        _mm512_storeu_si512(tile + i * 64, row);
    }
}

/* What is packed of a or b: k terms of some lines, in tiles that have the terms side by side (of a), or the lines
 * (of b). */
typedef struct packing {
    int64_t lines, k, across, along;
    const float *from;
    bool has_lines;
    char *to;
} packing;

/* Are 32 terms of a line loaded at once, rather than a term of 16 lines? */
static inline bool is_read_by_terms(const packing *p)
{
    return p->along == 1 || p->across != 1;
}

/* The 32 terms from t on of 16 lines. Neighbours in memory are loaded side by side, and transposed if they shall lie
 * otherwise. */
static inline void pack_tile(const packing *p, int64_t first, int64_t t, __m512i largest[width], char *to)
{
    const bool by_terms = is_read_by_terms(p);
    lines_of_terms l = {.from = p->from + first * p->across + t * p->along,
                        .lines = larger_of(0, smaller_of(p->lines - first, tile_lines)),
                        .terms = smaller_of(p->k - t, step_terms),
                        .across = p->across,
                        .along = p->along};
    float beside[tile_lines][step_terms];
    vector block[limbs][width];
    if (by_terms && p->along != 1) {
        for (int64_t i = 0; i < l.lines; i++)
            for (int64_t j = 0; j < l.terms; j++) beside[i][j] = l.from[i * p->across + j * p->along];
        l.from = beside[0], l.across = step_terms, l.along = 1;
    }
    if (by_terms)
        split_terms(&l, block, largest);
    else
        split_lines(&l, block, largest);
    for (int limb = 0; limb < limbs; limb++) {
        if (by_terms == p->has_lines) transpose_block(block[limb]);
        memcpy(to + limb * limb_bytes, block[limb], tile_bytes);
    }
}

/* The head of a panel, and zeros in its lines that are left out. */
static void end_panel(const packing *p, __m512i largest[2][width], char *to)
{
    const bool by_terms = is_read_by_terms(p);
    uint32_t left_out = 0;
    for (int tile = 0; tile < 2; tile++)
        left_out |= which_are_left_out(by_terms ? largest_of_lines(largest[tile]) : largest[tile][0])
                    << tile * tile_lines;
    *(panel_head *)(void *)to = (panel_head){left_out};
    const char *end = to + panel_bytes(p->k);
    for (char *tile = to + head_bytes; left_out && tile < end; tile += limb_bytes) {
        clear_lines(tile, left_out & 0xffff, p->has_lines);
        clear_lines(tile + tile_bytes, left_out >> tile_lines, p->has_lines);
    }
}

/* Some panels at a time, step by step, so that long pieces of memory are read. */
static void pack_panels(const packing *p, int64_t first, int64_t last)
{
    enum { strip = 4 };
    for (; first < last; first += strip) {
        const int64_t panels = smaller_of(last - first, strip);
        __m512i largest[strip][2][width];
        memset(largest, 0, sizeof largest);
        char *to = p->to + first * panel_bytes(p->k);
        for (int64_t t = 0; t < p->k; t += step_terms)
            for (int64_t tile = 0; tile < 2 * panels; tile++)
                pack_tile(p, first * panel + tile * tile_lines, t, largest[tile / 2][tile % 2],
                          to + tile / 2 * panel_bytes(p->k) + head_bytes + t / step_terms * step_bytes +
                              tile % 2 * tile_bytes);
        for (int64_t i = 0; i < panels; i++) end_panel(p, largest[i], to + i * panel_bytes(p->k));
    }
}

#endif
