/* Recurrences whose steps have so many rows that limbs may multiply them, several tasks at a time: what the plain way
 * gives, packed and not, and the same bits on any number of threads. */
#include "modules.h"

#include "largest.h"
#include "tensor/kernel_matmul.h"

enum { batch = 150, short_ones = 12, steps = 3, in = 20, hidden = 136, leaves = 6, results = leaves + 2 };

typedef struct wide {
    rapt_recurrent *layer;
    rapt_tensor *starts; /* of packed rows, or NULL */
    rapt_tensor *leaf[leaves];
} wide;

static wide wide_new(int gates, bool packed)
{
    rapt_seed(5);
    wide w = {.layer = gates == 3 ? (rapt_recurrent *)rapt_gru_new(in, hidden, 1, 0)
                                  : (rapt_recurrent *)rapt_lstm_new(in, hidden, 1, 0)};
    cr_assert_not_null(w.layer, "%s", rapt_error());
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(steps, batch, in));
    if (packed) {
        rapt_tensor *lengths = rapt_full(RAPT_INT64, RAPT_SHAPE(batch), steps);
        rapt_fill(rapt_slice(lengths, 0, 40, 40 + short_ones, 1), 1);
        w.starts = rapt_packing_starts(lengths);
        x = rapt_pack(rapt_transpose(x, 0, 1), w.starts);
    }
    w.leaf[0] = rapt_require_gradient(rapt_clone(x));
    w.leaf[1] = rapt_require_gradient(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(1, batch, hidden)));
    w.leaf[2] = w.layer->layer[0].weight_ih, w.leaf[3] = w.layer->layer[0].weight_hh;
    w.leaf[4] = w.layer->layer[0].bias_ih, w.leaf[5] = w.layer->layer[0].bias_hh;
    return w;
}

/* Outputs, last states, and the gradients of the leaves. */
static void evaluate(const wide *w, rapt_tensor **result)
{
    rapt_tensor *x = w->leaf[0], *h = w->leaf[1];
    rapt_gru *gru = (rapt_gru *)w->layer;
    rapt_lstm *lstm = (rapt_lstm *)w->layer;
    if (w->layer->gates == 3)
        result[0] = w->starts ? rapt_gru_forward_packed(gru, x, w->starts, h, &result[1])
                              : rapt_gru_forward(gru, x, h, &result[1]);
    else
        result[0] = w->starts ? rapt_lstm_forward_packed(lstm, x, w->starts, h, h, &result[1], NULL)
                              : rapt_lstm_forward(lstm, x, h, h, &result[1], NULL);
    cr_assert_not_null(result[0], "%s", rapt_error());
    rapt_tensor *root = rapt_add(rapt_sum(rapt_mul(result[0], rapt_sin(result[0])), RAPT_ALL_AXES, false),
                                 rapt_sum(rapt_mul(result[1], result[1]), RAPT_ALL_AXES, false));
    cr_assert(rapt_gradients(1, &root, NULL, leaves, w->leaf, result + 2, 0), "%s", rapt_error());
    for (int i = 0; i < results; i++) result[i] = rapt_contiguous(rapt_detach(result[i]));
}

static void check(int gates, bool packed)
{
    RAPT_SCOPE;
    rapt_tensor *fused[results], *plain[results];
    wide w = wide_new(gates, packed);
    cr_assert(rapt_set_threads(1));
    evaluate(&w, fused);
    w.layer->plain = true;
    evaluate(&w, plain);
    w.layer->plain = false;
    for (int i = 0; i < results; i++) {
        const double off = relative_difference(fused[i], plain[i]);
        cr_expect(off <= 3e-6, "%d gates, %s, result %d: %g", gates, packed ? "packed" : "padded", i, off);
    }
    for (int threads = 2; threads <= 5; threads++) {
        rapt_tensor *other[results];
        cr_assert(rapt_set_threads(threads));
        evaluate(&w, other);
        for (int i = 0; i < results; i++)
            cr_expect(same_bits(fused[i], other[i]), "%d gates, %s, %d threads, result %d", gates,
                      packed ? "packed" : "padded", threads, i);
    }
    rapt_module_free(&w.layer->module);
    expect_no_error();
}

/* The sizes are those of limbs, where there are any. */
Test(wide_recurrences, like_the_plain_way_on_any_number_of_threads)
{
    const int64_t rows = batch - short_ones * (steps - 1) / steps;
    const bool has_limbs = rapt_matmul_kernels_for(RAPT_FLOAT32, 1 << 10, 1 << 10, 1 << 10)->multiplies_limbs;
    cr_assert_eq(rapt_matmul_kernels_for(RAPT_FLOAT32, rows, 3 * hidden, hidden)->multiplies_limbs, has_limbs);
    cr_assert_eq(rapt_matmul_kernels_for(RAPT_FLOAT32, rows, hidden, 3 * hidden)->multiplies_limbs, has_limbs);
    for (int gates = 3; gates <= 4; gates++)
        for (int packed = 0; packed < 2; packed++) check(gates, packed);
}

/* Of fewer rows each has the bits that it has alone: no limbs, however many steps there are. */
Test(wide_recurrences, fewer_rows_have_the_bits_of_each_alone)
{
    enum { few = 100, one = 77 };
    RAPT_SCOPE;
    rapt_seed(3);
    rapt_gru *gru = rapt_gru_new(in, hidden, 1, 0);
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(steps, few, in));
    rapt_tensor *all = rapt_gru_forward(gru, x, NULL, NULL);
    rapt_tensor *alone = rapt_gru_forward(gru, rapt_slice(x, 1, one, one + 1, 1), NULL, NULL);
    cr_expect(same_bits(rapt_contiguous(rapt_slice(all, 1, one, one + 1, 1)), alone));
    rapt_module_free(&gru->recurrent.module);
    expect_no_error();
}
