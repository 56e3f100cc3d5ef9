/* Positions: sinusoidal and learned, ALiBi, and learned relative biases. */
#include "../integers.h"
#include "modules.h"

static const double *row_of(rapt_tensor *table, int64_t i)
{
    return values_of(rapt_select(table, 0, i));
}

/* --- sinusoidal --- */

/* Numbers of a table of 32 columns, computed elsewhere. */
Test(positions, sinusoidal_gives_known_numbers)
{
    RAPT_SCOPE;
    for (int dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
        rapt_tensor *table = rapt_sinusoidal((rapt_dtype)dtype, 0, 60, 32);
        expect_shape(table, RAPT_SHAPE(60, 32));
        cr_expect_eq((int)rapt_get_dtype(table), dtype);
        expect_close("row 1", row_of(table, 1), (double[]){.84147098, .54030231, .53316844, .84600911}, 4, 1e-8 * 6);
        expect_close("row 59", row_of(table, 59) + 6, (double[]){-.87579025, -.48269187, -.37387666, .92747843}, 4,
                     1e-8 * 6);
        expect_close("row 10", row_of(table, 10) + 30, (double[]){.00177828, .99999842}, 2, 1e-8 * 6);
        for (int j = 0; j < 32; j++) cr_expect_eq(row_of(table, 0)[j], j % 2);
    }
    expect_no_error();
}

/* P[i + δ] is P[i] with each pair turned by δ / 10000^(2j/size), to within 10⁻⁶ in float32. */
Test(positions, sinusoidal_positions_differ_by_a_turn)
{
    RAPT_SCOPE;
    enum { length = 1000, size = 32 };
    const double *p = values_of(rapt_sinusoidal(RAPT_FLOAT32, 0, length, size));
    double worst = 0;
    for (int j = 0; j < size / 2; j++)
        for (int delta = 0; delta < length; delta++) {
            const double angle = delta / pow(10000, 2.0 * j / size), c = cos(angle), s = sin(angle);
            for (int i = 0; i + delta < length; i++) {
                const double *from = p + i * size + 2 * j, *to = p + (i + delta) * size + 2 * j;
                worst = fmax(worst, fabs(from[0] * c + from[1] * s - to[0]));
                worst = fmax(worst, fabs(from[1] * c - from[0] * s - to[1]));
            }
        }
    cr_expect(worst < 1e-6, "%g", worst);
    cr_expect(worst > 0);
}

Test(positions, sinusoidal_of_any_size_and_offset)
{
    RAPT_SCOPE;
    const int64_t sizes[] = {1, 2, 7, 33};
    for (int k = 0; k < 4; k++) {
        const int64_t size = sizes[k];
        rapt_tensor *all = rapt_sinusoidal(RAPT_FLOAT64, -3, 20, size);
        for (int i = 0; i < 20; i++)
            for (int64_t j = 0; j < size; j++) {
                const double angle = (i - 3) / pow(10000, (double)(j - j % 2) / (double)size);
                cr_expect_float_eq(rapt_at(all, (int64_t[]){i, j}), j % 2 ? cos(angle) : sin(angle), 1e-15);
            }
        cr_expect(same_bits(rapt_sinusoidal(RAPT_FLOAT64, 2, 15, size), rapt_slice(all, 0, 5, 20, 1)));
        expect_shape(rapt_sinusoidal(RAPT_FLOAT32, 5, 0, size), RAPT_SHAPE(0, size));
    }
    expect_no_error();
}

Test(positions, sinusoidal_layer_adds_rows)
{
    RAPT_SCOPE;
    rapt_sinusoidal_positions *layer = rapt_sinusoidal_positions_new(6, 0);
    cr_assert_not_null(layer);
    /* Each call asks for more than the one before, or for another dtype; the last for more than is kept. */
    const int64_t offsets[] = {0, 0, 3, 7, 2, 1000, -5, (int64_t)1 << 40};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
        for (int dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
            rapt_tensor *x = rapt_require_gradient(rapt_randn((rapt_dtype)dtype, RAPT_SHAPE(2, 4, 6)));
            rapt_tensor *y = rapt_sinusoidal_positions_forward(layer, x, offsets[i]);
            cr_expect(same_bits(y, rapt_add(x, rapt_sinusoidal((rapt_dtype)dtype, offsets[i], 4, 6))), "offset %lld",
                      (long long)offsets[i]);
            cr_expect(rapt_backward(rapt_sum(y, RAPT_ALL_AXES, false)));
            cr_expect(same_bits(rapt_gradient(x), rapt_ones((rapt_dtype)dtype, RAPT_SHAPE(2, 4, 6))));
        }
    rapt_tensor *row = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4, 6));
    cr_expect(
        same_bits(rapt_module_forward(&layer->module, row), rapt_add(row, rapt_sinusoidal(RAPT_FLOAT32, 0, 4, 6))));
    cr_expect_eq(rapt_module_parameter_count(&layer->module), 0);
    rapt_module_free(&layer->module);

    layer = rapt_sinusoidal_positions_new(6, 1);
    cr_expect_eq(rapt_at(rapt_sinusoidal_positions_forward(layer, row, 0), (int64_t[]){1, 0}), 0);
    rapt_module_train(&layer->module, false);
    cr_expect(rapt_at(rapt_sinusoidal_positions_forward(layer, row, 0), (int64_t[]){1, 0}) > 1);
    rapt_module_free(&layer->module);
    expect_no_error();
}

/* A step at a time, as generation goes: few tables are made, and none in a steady step. */
Test(positions, table_grows_by_doubling)
{
    rapt_sinusoidal_positions *layer = rapt_sinusoidal_positions_new(6, 0);
    int64_t tables = 0;
    const rapt_tensor *table = NULL;
    for (int64_t i = 0; i < 1000; i++) {
        RAPT_SCOPE;
        rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 6));
        cr_assert(same_bits(rapt_sinusoidal_positions_forward(layer, x, i),
                            rapt_add(x, rapt_sinusoidal(RAPT_FLOAT32, i, 1, 6))));
        tables += layer->table != table;
        table = layer->table;
    }
    cr_expect_eq(tables, 11, "%lld tables", (long long)tables);
    rapt_module_free(&layer->module);
    expect_no_error();
}

/* --- learned --- */

Test(positions, learned_layer_adds_rows_of_its_parameter)
{
    RAPT_SCOPE;
    rapt_seed(1);
    rapt_learned_positions *layer = rapt_learned_positions_new(200, 100, 0);
    expect_parameter(layer, "weight", RAPT_SHAPE(200, 100));
    expect_moments(layer->weight, 0, 1, 3);
    cr_expect_eq(rapt_module_parameter_count(&layer->module), 20000);
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(3, 5, 100));
    rapt_tensor *y = rapt_learned_positions_forward(layer, x, 195);
    cr_expect(same_bits(y, rapt_add(x, rapt_slice(layer->weight, 0, 195, 200, 1))));
    cr_expect(same_bits(rapt_module_forward(&layer->module, x), rapt_learned_positions_forward(layer, x, 0)));
    cr_expect(rapt_backward(rapt_sum(y, RAPT_ALL_AXES, false)));
    for (int64_t i = 0; i < 200; i++)
        cr_expect_eq(rapt_at(rapt_gradient(layer->weight), (int64_t[]){i, 7}), i >= 195 ? 3 : 0);
    for (int64_t offset = -1; offset <= 196; offset += 197) {
        cr_expect_null(rapt_learned_positions_forward(layer, x, offset));
        expect_error(RAPT_ERROR_VALUE, "0 to 199 are learned");
    }
    cr_expect_null(rapt_learned_positions_forward(layer, x, INT64_MAX));
    expect_error(RAPT_ERROR_VALUE, "0 to 199");
    cr_expect_null(rapt_learned_positions_forward(layer, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(201, 100)), 0));
    expect_error(RAPT_ERROR_VALUE, "length of 201");
    layer->dropout = 1;
    cr_expect(same_bits(rapt_learned_positions_forward(layer, x, 0), rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(3, 5, 100))));
    rapt_module_free(&layer->module);
    expect_no_error();
}

/* --- relative biases --- */

static void expect_slopes(int heads, const double *slopes)
{
    RAPT_SCOPE;
    rapt_alibi *alibi = rapt_alibi_new(heads);
    for (int dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
        rapt_tensor *bias = rapt_alibi_forward(alibi, (rapt_dtype)dtype, 3);
        expect_shape(bias, RAPT_SHAPE(heads, 1, 7));
        cr_expect_eq((int)rapt_get_dtype(bias), dtype);
        const double *b = values_of(bias);
        for (int64_t i = 0; i < 7 * heads; i++) {
            double expected = -slopes[i / 7] * fabs((double)(i % 7 - 3));
            cr_expect_float_eq(b[i], expected, 1e-7, "%d heads, %lld: %.9g, not %.9g", heads, (long long)i, b[i],
                               expected);
        }
    }
    expect_shape(rapt_alibi_forward(alibi, RAPT_FLOAT32, 0), RAPT_SHAPE(heads, 1, 1));
    rapt_module_free(&alibi->module);
}

Test(positions, alibi_slopes)
{
    expect_slopes(1, (double[]){1.0 / 256});
    expect_slopes(2, (double[]){1.0 / 16, 1.0 / 256});
    expect_slopes(3, (double[]){1.0 / 16, 1.0 / 256, 1.0 / 4});
    expect_slopes(8, (double[]){1.0 / 2, 1.0 / 4, 1.0 / 8, 1.0 / 16, 1.0 / 32, 1.0 / 64, 1.0 / 128, 1.0 / 256});
    expect_slopes(12, (double[]){1.0 / 2, 1.0 / 4, 1.0 / 8, 1.0 / 16, 1.0 / 32, 1.0 / 64, 1.0 / 128, 1.0 / 256,
                                 0.70710678, 0.35355339, 0.17677670, 0.08838835});
    expect_no_error();
}

Test(positions, relative_bias_is_its_parameter)
{
    RAPT_SCOPE;
    rapt_relative_bias *bias = rapt_relative_bias_new(2, 3);
    expect_parameter(bias, "weight", RAPT_SHAPE(2, 7));
    expect_values("at first", bias->weight, 14, (double[14]){0}, 0);
    rapt_tensor *table = rapt_relative_bias_forward(bias);
    expect_shape(table, RAPT_SHAPE(2, 1, 7));
    cr_expect(rapt_backward(rapt_sum(rapt_select(table, 2, 6), RAPT_ALL_AXES, false)));
    expect_values("gradient", rapt_gradient(bias->weight), 14, (double[14]){[6] = 1, [13] = 1}, 0);
    rapt_module_free(&bias->module);
    expect_no_error();
}

/* --- errors --- */

Test(positions, constructor_errors)
{
    const int64_t before = live_bytes();
    for (int64_t size = -1; size <= 0; size++) {
        cr_expect_null(rapt_sinusoidal_positions_new(size, 0));
        expect_error(RAPT_ERROR_VALUE, "1 or more expected");
    }
    cr_expect_null(rapt_sinusoidal_positions_new(4, 1.5));
    expect_error(RAPT_ERROR_VALUE, "dropout 1.5");
    cr_expect_null(rapt_learned_positions_new(4, 4, -1));
    expect_error(RAPT_ERROR_VALUE, "dropout -1");
    cr_expect_null(rapt_learned_positions_new(-4, 4, 0));
    expect_error(RAPT_ERROR_VALUE, "-4");
    cr_expect_null(rapt_alibi_new(0));
    expect_error(RAPT_ERROR_VALUE, "0 heads");
    cr_expect_null(rapt_relative_bias_new(-1, 2));
    expect_error(RAPT_ERROR_VALUE, "-1 heads");
    cr_expect_null(rapt_relative_bias_new(1, -2));
    expect_error(RAPT_ERROR_VALUE, "reach -2");
    cr_expect_null(rapt_relative_bias_new(1, INT64_MAX));
    expect_error(RAPT_ERROR_VALUE, "reach 9223372036854775807 is too large");
    cr_expect_eq(live_bytes(), before);
}

Test(positions, table_errors)
{
    RAPT_SCOPE;
    cr_expect_null(rapt_sinusoidal(RAPT_INT64, 0, 3, 4));
    expect_error(RAPT_ERROR_DTYPE, "int64");
    cr_expect_null(rapt_sinusoidal(RAPT_FLOAT32, 0, -3, 4));
    expect_error(RAPT_ERROR_VALUE, "-3 positions");
    cr_expect_null(rapt_sinusoidal(RAPT_FLOAT32, 0, 3, 0));
    expect_error(RAPT_ERROR_VALUE, "size 0");
    cr_expect_null(rapt_sinusoidal(RAPT_FLOAT32, INT64_MAX, 3, 4));
    expect_error(RAPT_ERROR_VALUE, "3 positions from position 9223372036854775807 on are more than");
    cr_expect_null(rapt_sinusoidal(RAPT_FLOAT64, 0, (int64_t)1 << 60, (int64_t)1 << 10));
    expect_error(RAPT_ERROR_MEMORY, "1152921504606846976");
}

Test(positions, forward_errors)
{
    RAPT_SCOPE;
    rapt_sinusoidal_positions *sinusoidal = rapt_sinusoidal_positions_new(4, 0);
    rapt_learned_positions *learned = rapt_learned_positions_new(5, 4, 0);
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 4)),
                *bad[] = {rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4)), rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 5))};
    for (int i = 0; i < 2; i++) {
        cr_expect_null(rapt_sinusoidal_positions_forward(sinusoidal, bad[i], 0));
        expect_error(RAPT_ERROR_SHAPE, "(..., length, 4)");
        cr_expect_null(rapt_learned_positions_forward(learned, bad[i], 0));
        expect_error(RAPT_ERROR_SHAPE, "(..., length, 4)");
    }
    rapt_tensor *const integers = rapt_ones(RAPT_INT64, RAPT_SHAPE(3, 4));
    cr_expect_null(rapt_sinusoidal_positions_forward(sinusoidal, integers, 0));
    expect_error(RAPT_ERROR_DTYPE, "int64");
    cr_expect_null(rapt_learned_positions_forward(learned, integers, 0));
    expect_error(RAPT_ERROR_DTYPE, "int64");
    cr_expect_null(rapt_sinusoidal_positions_forward(NULL, x, 0));
    expect_error(RAPT_ERROR_NULL, "the layer");
    cr_expect_null(rapt_sinusoidal_positions_forward(sinusoidal, NULL, 0));
    expect_error(RAPT_ERROR_NULL, "the input");
    cr_expect_null(rapt_learned_positions_forward(NULL, x, 0));
    expect_error(RAPT_ERROR_NULL, "the layer");
    cr_expect_null(rapt_learned_positions_forward(learned, NULL, 0));
    expect_error(RAPT_ERROR_NULL, "the input");
    cr_expect_null(rapt_alibi_forward(NULL, RAPT_FLOAT32, 1));
    expect_error(RAPT_ERROR_NULL, "the layer");
    cr_expect_null(rapt_relative_bias_forward(NULL));
    expect_error(RAPT_ERROR_NULL, "the layer");
    rapt_alibi *alibi = rapt_alibi_new(2);
    cr_expect_null(rapt_alibi_forward(alibi, RAPT_INT32, 1));
    expect_error(RAPT_ERROR_DTYPE, "int32");
    cr_expect_null(rapt_alibi_forward(alibi, RAPT_FLOAT32, -1));
    expect_error(RAPT_ERROR_VALUE, "reach -1; 0 or more expected");
    cr_expect_null(rapt_alibi_forward(alibi, RAPT_FLOAT32, INT64_MAX));
    expect_error(RAPT_ERROR_VALUE, "reach 9223372036854775807 is too large");
    rapt_module_free(&sinusoidal->module);
    rapt_module_free(&learned->module);
    rapt_module_free(&alibi->module);
}

/* Sines go on below 0; learned positions end there. */
Test(positions, places_below_0)
{
    RAPT_SCOPE;
    rapt_sinusoidal_positions *sinusoidal = rapt_sinusoidal_positions_new(4, 0);
    rapt_learned_positions *learned = rapt_learned_positions_new(5, 4, 0);
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 4)),
                *places = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){-2, -1, 0});
    cr_expect(same_bits(rapt_sinusoidal_positions_forward_at(sinusoidal, x, places),
                        rapt_sinusoidal_positions_forward(sinusoidal, x, -2)));
    expect_no_error();
    cr_expect_null(rapt_learned_positions_forward_at(learned, x, places));
    expect_error(RAPT_ERROR_VALUE, "-2");
    rapt_module_free(&sinusoidal->module);
    rapt_module_free(&learned->module);
}

/* The allocator fails at every place in turn: an error, never a crash or a leak, and the layer works again after it. */
Test(positions, forward_without_memory)
{
    const int64_t before = live_bytes();
    rapt_sinusoidal_positions *sinusoidal = rapt_sinusoidal_positions_new(4, 0.5);
    rapt_learned_positions *learned = rapt_learned_positions_new(5, 4, 0.5);
    for (int64_t failures = 0, done = false; !done; failures++) {
        RAPT_SCOPE;
        rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 4));
        cr_assert_not_null(x);
        rapt_memory_fail_after(failures);
        done = rapt_sinusoidal_positions_forward(sinusoidal, x, 0) && rapt_learned_positions_forward(learned, x, 0);
        rapt_memory_fail_after(-1);
        if (!done) expect_error(RAPT_ERROR_MEMORY, "no memory");
        cr_assert_lt(failures, 100);
    }
    rapt_module_free(&sinusoidal->module);
    rapt_module_free(&learned->module);
    cr_expect_eq(live_bytes(), before);
    expect_no_error();
}

/* As many rows as there are places, wherever they are. */
Test(positions, places_far_away_cost_no_memory)
{
    rapt_sinusoidal_positions *sinusoidal = rapt_sinusoidal_positions_new(4, 0);
    rapt_rotary *rotary = rapt_rotary_new();
    for (int64_t place = 1; place < (int64_t)1 << 52; place = 5 * place + 3) {
        RAPT_SCOPE;
        rapt_tensor *x = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(1, 2, 4));
        rapt_tensor *places = int64_of(2, (int64_t[]){place, -place});
        rapt_memory_reset_peak();
        const int64_t before = live_bytes();
        rapt_tensor *at[] = {rapt_sinusoidal_positions_forward_at(sinusoidal, x, places),
                             rapt_rotary_forward_at(rotary, x, places)};
        cr_assert(at[0] && at[1], "place %lld: %s", (long long)place, rapt_error());
        if (place >= 1 << 18) cr_expect_lt(rapt_memory_get_statistics().peak_bytes - before, 1 << 20);
        for (int i = 0; i < 2; i++) {
            const int64_t offset = i == 0 ? place : -place;
            rapt_tensor *row = rapt_slice(x, 1, i, i + 1, 1);
            rapt_tensor *by_offset[] = {rapt_sinusoidal_positions_forward(sinusoidal, row, offset),
                                        rapt_rotary_forward(rotary, row, offset)};
            for (int k = 0; k < 2; k++)
                cr_expect(same_bits(rapt_slice(at[k], 1, i, i + 1, 1), by_offset[k]), "place %lld", (long long)offset);
        }
    }
    rapt_module_free(&sinusoidal->module);
    rapt_module_free(&rotary->module);
    expect_no_error();
}

/* Of wide rows few are kept: those of a table beyond that are made for the call, with the same bits. */
Test(positions, wide_rows_far_away_cost_no_memory)
{
    RAPT_SCOPE;
    enum { wide = 1024, far = 131000 };
    rapt_sinusoidal_positions *layer = rapt_sinusoidal_positions_new(wide, 0);
    rapt_tensor *x = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(1, wide)), *places = int64_of(1, (int64_t[]){far});
    rapt_memory_reset_peak();
    const int64_t before = live_bytes();
    rapt_tensor *rows[] = {rapt_sinusoidal_positions_forward(layer, x, far),
                           rapt_sinusoidal_positions_forward_at(layer, x, places)};
    cr_expect_lt(rapt_memory_get_statistics().peak_bytes - before, 1 << 20);
    for (int i = 0; i < 2; i++) cr_expect(same_bits(rows[i], rapt_sinusoidal(RAPT_FLOAT64, far, 1, wide)));
    rapt_module_free(&layer->module);
    expect_no_error();
}
