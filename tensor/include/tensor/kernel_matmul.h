/* What the kernels of matrix products are told: raw numbers and strides. */
#ifndef RAPT_TENSOR_KERNEL_MATMUL_H
#define RAPT_TENSOR_KERNEL_MATMUL_H

#include <rapt/base.h>

/* c = a · b, plus bias or, with accumulate, plus c: a is (m, k), b (k, n) and c (m, n). Any strides, in elements.
 * bias may be NULL, and repeats where a stride is 0. Of m, n and k none is 0. */
typedef struct rapt_product {
    int64_t m, n, k;
    const char *a, *b, *bias;
    char *c;
    int64_t a_row, a_column, b_row, b_column, bias_row, bias_column, c_row, c_column;
    bool accumulate;
    char *sums; /* where sums stay until the last block of k, if c has dense rows; NULL: in c */
    int64_t sums_row;
    const struct rapt_epilogue *epilogue; /* of kernels.h; or NULL */
} rapt_product;

/* Sums are cut into blocks of k, of nearly equal depth; by k alone, since bits depend on it. They begin at whole steps,
 * each of which is one instruction where a processor multiplies matrices. */
enum { RAPT_BLOCK_DEPTH = 256, RAPT_BLOCK_STEP = 32 };

static inline int64_t rapt_block_count(int64_t k)
{
    return (k + RAPT_BLOCK_DEPTH - 1) / RAPT_BLOCK_DEPTH;
}

static inline int64_t rapt_block_start(int64_t k, int64_t block)
{
    const int64_t count = rapt_block_count(k);
    if (count == 1) return k * block; /* divisions take long */
    const int64_t step = (k * block / count + RAPT_BLOCK_STEP - 1) / RAPT_BLOCK_STEP * RAPT_BLOCK_STEP;
    return step < k ? step : k;
}

/* What is packed next, or used otherwise: so many rows of so many bytes that lie `step` bytes apart. It is prefetched
 * meanwhile. */
typedef struct rapt_ahead {
    const char *from;
    int64_t rows, step, bytes;
} rapt_ahead;

/* So many bytes. */
static inline rapt_ahead rapt_ahead_at(const void *from, int64_t bytes)
{
    return (rapt_ahead){.from = from, .rows = 1, .bytes = bytes};
}

/* A block of k of all rows of a; and of all columns of b. None where neither their rows nor their columns are dense. */
static inline rapt_ahead rapt_ahead_in_a(const rapt_product *p, int64_t block, int64_t item)
{
    const int64_t done = rapt_block_start(p->k, block), k = rapt_block_start(p->k, block + 1) - done;
    const char *from = p->a + done * p->a_column * item;
    if (p->a_column == 1) return (rapt_ahead){from, p->m, p->a_row * item, k * item};
    return (rapt_ahead){from, p->a_row == 1 ? k : 0, p->a_column * item, p->m * item};
}

static inline rapt_ahead rapt_ahead_in_b(const rapt_product *p, int64_t block, int64_t item)
{
    const rapt_product turned = {.m = p->n, .k = p->k, .a = p->b, .a_row = p->b_column, .a_column = p->b_row};
    return rapt_ahead_in_a(&turned, block, item);
}

/* Each element of c has the bits that its row of a, its column of b and k give it, whatever m, n and the strides
 * are, and whichever of these functions computes it; but where `multiplies_limbs`, products of what is packed have
 * other bits than those of multiply_direct. Rows of a are packed in panels of up to `rows` each, columns of b in panels
 * of `columns`. */
typedef struct rapt_matmul_kernels {
    int64_t rows, columns; /* of a panel of rows, and of a panel of columns */
    bool multiplies_limbs;

    /* Where panel i of m rows begins, m for the one behind the last; the bytes of what is packed of a block of k. */
    int64_t (*panel_start)(int64_t m, int64_t i);
    int64_t (*rows_bytes)(int64_t m, int64_t k);
    int64_t (*columns_bytes)(int64_t n, int64_t k);

    /* Packs the panels `first` to `last` of a block of k, of a or b, into their places in `to`. */
    void (*pack_rows)(const rapt_product *product, int64_t block, int64_t first, int64_t last, void *to);
    void (*pack_block)(const rapt_product *product, int64_t block, int64_t first, int64_t last, void *to);

    /* One block of k for all rows and columns of the product; `a` and `b` are where their first panels lie. `near`
     * columns, whole panels, stay in the second-level cache. The block 0 sets c or accumulates, the others are
     * added. */
    void (*multiply_packed)(const rapt_product *product, int64_t block, const void *a, const void *b, int64_t near,
                            rapt_ahead ahead);

    /* The same, but packs a itself, some rows at a time, for which it needs scratch. */
    void (*multiply_block)(const rapt_product *product, int64_t block, const void *b, int64_t near, void *scratch,
                           rapt_ahead ahead);
    size_t (*chunk_bytes)(int64_t m, int64_t k); /* of that scratch, for a chunk of up to so many panels */
    int64_t chunk_panels;

    /* Puts sums of others as these functions put their own, into a c with dense rows: those of a block of k for a panel
     * of rows and one of columns, whose rows are `columns` apart. */
    void (*put)(const rapt_product *product, int64_t block, int64_t row, int64_t height, int64_t column,
                const void *sums);

    /* All of a product, without scratch: for small ones, and for up to `few_rows` rows or RAPT_THIN_TERMS terms. */
    int64_t few_rows;
    void (*multiply_direct)(const rapt_product *product);

    /* Would cᵀ = bᵀ · aᵀ be computed sooner? */
    bool (*is_better_turned)(const rapt_product *product);

    /* The epilogue of a product that is in c: what the other functions do after their last block of k, while c is in
     * the cache. */
    void (*finish)(const rapt_product *product);
} rapt_matmul_kernels;

/* Multiplications of a product that is worth no packing of a; terms of one whose time is that of writing c. */
enum { RAPT_SMALL_PRODUCT = 1 << 22, RAPT_THIN_TERMS = 8 };

/* Those for products of that size: of limbs for large ones, where the processor has instructions for them and the
 * system lets them be used, which it is asked at the first such product. */
const rapt_matmul_kernels *rapt_matmul_kernels_for(rapt_dtype dtype, int64_t m, int64_t n, int64_t k);

#endif
