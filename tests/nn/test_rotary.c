/* Rotary positions: pairs turned by angles that grow with the position. */
#include "modules.h"

/* The definition: the pair number j of a vector at position i turned by i / base^(2j/size). */
static void expect_turned(rapt_tensor *turned, rapt_tensor *x, int64_t offset, double base, bool halves,
                          double tolerance)
{
    const int64_t size = rapt_size(x, -1), length = rapt_size(x, -2);
    cr_assert_not_null(turned, "%s", rapt_error());
    cr_assert(rapt_same_shape(turned, x));
    const double *from = values_of(x), *to = values_of(turned);
    for (int64_t row = 0; row < rapt_count(x) / size; row++, from += size, to += size)
        for (int64_t j = 0; j < size / 2; j++) {
            const int64_t a = halves ? j : 2 * j, b = halves ? j + size / 2 : 2 * j + 1;
            const double angle = (double)(offset + row % length) / pow(base, 2 * (double)j / (double)size);
            cr_assert_float_eq(to[a], from[a] * cos(angle) - from[b] * sin(angle), tolerance);
            cr_assert_float_eq(to[b], from[a] * sin(angle) + from[b] * cos(angle), tolerance);
        }
}

Test(rotary, turns_pairs)
{
    RAPT_SCOPE;
    rapt_seed(2);
    const int64_t sizes[] = {2, 6, 32, 34, 128}, offsets[] = {0, 5, -7, 1000000};
    for (int k = 0; k < 5; k++)
        for (int variant = 0; variant < 16; variant++) {
            RAPT_SCOPE;
            const bool halves = variant % 2;
            const rapt_dtype dtype = variant / 2 % 2 ? RAPT_FLOAT64 : RAPT_FLOAT32;
            const int64_t offset = offsets[variant / 4];
            const double tolerance = dtype == RAPT_FLOAT64 ? 1e-14 : 1e-6;
            rapt_tensor *x = rapt_randn(dtype, RAPT_SHAPE(2, 9, 3 * sizes[k]));
            rapt_tensor *heads = rapt_permute(rapt_reshape(x, RAPT_SHAPE(2, 9, 3, sizes[k])), RAPT_AXES(0, 2, 1, 3));
            rapt_tensor *turned = rapt_rotate(heads, offset, 10000, halves);
            expect_turned(turned, heads, offset, 10000, halves, tolerance);
            cr_expect(same_bits(turned, rapt_rotate(rapt_contiguous(heads), offset, 10000, halves)));
            rapt_tensor *matrix = rapt_select(rapt_select(heads, 0, 1), 0, 2), *columns = rapt_transpose(heads, -1, -2);
            expect_turned(rapt_rotate(matrix, offset, 500, halves), matrix, offset, 500, halves, tolerance);
            columns = rapt_slice(columns, -1, 0, 8, 1); /* the last axis is not dense */
            expect_turned(rapt_rotate(columns, offset, 10000, halves), columns, offset, 10000, halves, tolerance);
        }
    expect_shape(rapt_rotate(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(3, 0, 4)), 0, 10000, false), RAPT_SHAPE(3, 0, 4));
    expect_shape(rapt_rotate(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(0, 3, 4)), 0, 10000, false), RAPT_SHAPE(0, 3, 4));
    expect_no_error();
}

static double norm(rapt_tensor *x)
{
    return sqrt(rapt_item(rapt_sum(rapt_mul(x, x), RAPT_ALL_AXES, false)));
}

/* A turn keeps the norm, and the product of a turned query and a turned key knows only how far they are apart. */
Test(rotary, keeps_norms_and_shows_distances)
{
    rapt_seed(3);
    for (int halves = 0; halves < 2; halves++) {
        RAPT_SCOPE;
        rapt_tensor *q = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(1, 16)), *k = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(1, 16));
        for (int64_t i = 0; i < 400; i += 57) {
            cr_expect_float_eq(norm(rapt_rotate(q, i, 10000, halves)), norm(q), 1e-14);
            for (int64_t distance = -20; distance <= 20; distance += 5) {
                rapt_tensor *turned = rapt_rotate(q, i, 10000, halves);
                double product = rapt_item(
                    rapt_sum(rapt_mul(turned, rapt_rotate(k, i + distance, 10000, halves)), RAPT_ALL_AXES, false));
                double expected =
                    rapt_item(rapt_sum(rapt_mul(q, rapt_rotate(k, distance, 10000, halves)), RAPT_ALL_AXES, false));
                cr_expect_float_eq(product, expected, 1e-12, "position %lld, distance %lld: %.17g, not %.17g",
                                   (long long)i, (long long)distance, product, expected);
            }
        }
    }
    expect_no_error();
}

static rapt_tensor *rotate(rapt_tensor *const *inputs, void *context)
{
    return rapt_rotate(rapt_permute(inputs[0], RAPT_AXES(0, 2, 1, 3)), 3, 100, *(bool *)context);
}

Test(rotary, gradcheck)
{
    for (int variant = 0; variant < 4; variant++) {
        RAPT_SCOPE;
        rapt_seed(4);
        bool halves = variant % 2;
        rapt_tensor *x = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 3, 2, 6)));
        rapt_gradcheck_options options = {.context = &halves, .second_order = variant / 2};
        rapt_gradcheck_result result = rapt_gradcheck("rotate", rotate, 1, &x, &options);
        cr_expect(result.passed, "%s", result.message);
    }
    expect_no_error();
}

/* Enough rows for several threads. */
Test(rotary, gives_the_same_bits_on_any_number_of_threads)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(4, 3, 301, 34)), *turned[3];
    for (int threads = 1; threads <= 3; threads++) {
        rapt_set_threads(threads);
        turned[threads - 1] = rapt_rotate(rapt_transpose(x, 0, 1), 11, 10000, false);
    }
    cr_expect(same_bits(turned[0], turned[1]) && same_bits(turned[0], turned[2]));
    expect_no_error();
}

Test(rotary, layer_rotates)
{
    RAPT_SCOPE;
    rapt_rotary *rotary = rapt_rotary_new();
    cr_expect(rotary->base == 10000 && !rotary->halves);
    const int64_t offsets[] = {0, 3, 1, 100, -2, (int64_t)1 << 40};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
        for (int variant = 0; variant < 8; variant++) { /* each field alone changes from one call to the next */
            rapt_tensor *x = rapt_randn(variant / 4 ? RAPT_FLOAT64 : RAPT_FLOAT32, RAPT_SHAPE(2, 5, 8));
            rotary->base = (variant + 1) / 2 % 2 ? 100 : 10000;
            rotary->halves = variant / 2 % 2;
            cr_expect(same_bits(rapt_rotary_forward(rotary, x, offsets[i]),
                                rapt_rotate(x, offsets[i], rotary->base, rotary->halves)));
        }
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(5, 6));
    rotary->base = 10000;
    cr_expect(same_bits(rapt_module_forward(&rotary->module, x), rapt_rotate(x, 0, 10000, true)), "another size");
    cr_expect_eq(rapt_module_parameter_count(&rotary->module), 0);
    rapt_module_free(&rotary->module);
    expect_no_error();
}

Test(rotary, errors)
{
    RAPT_SCOPE;
    rapt_rotary *rotary = rapt_rotary_new();
    rapt_tensor *bad[] = {rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4)), rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 5)),
                          rapt_ones(RAPT_INT64, RAPT_SHAPE(2, 4))},
                *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 4));
    for (int i = 0; i < 3; i++) {
        cr_expect_null(rapt_rotate(bad[i], 0, 10000, false));
        expect_error(i < 2 ? RAPT_ERROR_SHAPE : RAPT_ERROR_DTYPE, "(..., length, an even size)");
        cr_expect_null(rapt_rotary_forward(rotary, bad[i], 0));
        expect_error(i < 2 ? RAPT_ERROR_SHAPE : RAPT_ERROR_DTYPE, "(..., length, an even size)");
    }
    const double bases[] = {0, -1, NAN, INFINITY};
    for (int i = 0; i < 4; i++) {
        cr_expect_null(rapt_rotate(x, 0, bases[i], false));
        expect_error(RAPT_ERROR_VALUE, "a positive number expected");
        rotary->base = bases[i];
        cr_expect_null(rapt_rotary_forward(rotary, x, 0));
        expect_error(RAPT_ERROR_VALUE, "a positive number expected");
    }
    cr_expect_null(rapt_rotate(x, INT64_MAX, 10000, false));
    expect_error(RAPT_ERROR_VALUE, "2 positions from position 9223372036854775807 on are more than");
    cr_expect_null(rapt_rotary_forward(rotary, x, INT64_MAX));
    expect_error(RAPT_ERROR_VALUE, "on are more than 64 bits can count");
    rotary->base = 10000;
    cr_expect_null(rapt_rotate(NULL, 0, 10000, false));
    expect_error(RAPT_ERROR_NULL, "x is NULL");
    cr_expect_null(rapt_rotary_forward(NULL, x, 0));
    expect_error(RAPT_ERROR_NULL, "the layer");
    cr_expect_null(rapt_rotary_forward(rotary, NULL, 0));
    expect_error(RAPT_ERROR_NULL, "the input");
    rapt_module_free(&rotary->module);
}

/* A step at a time, as generation goes; and the allocator fails at every place in turn. */
Test(rotary, table_is_kept)
{
    RAPT_SCOPE;
    rapt_rotary *rotary = rapt_rotary_new();
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 6)), *y = NULL;
    for (int64_t failures = 0; !y; failures++) {
        rapt_memory_fail_after(failures);
        y = rapt_rotary_forward(rotary, x, 0);
        rapt_memory_fail_after(-1);
        if (!y) expect_error(RAPT_ERROR_MEMORY, "no memory");
        cr_assert_lt(failures, 100);
    }
    int64_t tables = 0;
    const rapt_tensor *table = NULL;
    for (int64_t i = 0; i < 1000; i++) {
        RAPT_SCOPE;
        cr_assert(same_bits(rapt_rotary_forward(rotary, x, i), rapt_rotate(x, i, 10000, false)));
        tables += rotary->table != table;
        table = rotary->table;
    }
    cr_expect_eq(tables, 11, "%lld tables", (long long)tables);
    rapt_module_free(&rotary->module);
    expect_no_error();
}

/* Places may be below 0: packed, by places and by an offset the same angles. */
Test(rotary, places_below_0)
{
    RAPT_SCOPE;
    rapt_rotary *rotary = rapt_rotary_new();
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(4, 8));
    const int64_t offsets[] = {-1, -3, -4, -9, -((int64_t)1 << 40)};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        rapt_tensor *places = rapt_add(rapt_arange(RAPT_INT64, 0, 4, 1), rapt_from(RAPT_INT64, 0, NULL, &offsets[i]));
        cr_expect(same_bits(rapt_rotary_forward_at(rotary, x, places), rapt_rotate(x, offsets[i], 10000, false)),
                  "offset %lld: %s", (long long)offsets[i], rapt_error());
    }
    const int64_t far_apart[] = {INT64_MIN, INT64_MAX - 1, 1, 2};
    rapt_tensor *turned = rapt_rotary_forward_at(rotary, x, rapt_from(RAPT_INT64, RAPT_SHAPE(4), far_apart));
    cr_assert(turned, "%s", rapt_error());
    for (int64_t i = 0; i < 4; i++) {
        cr_expect(same_bits(rapt_slice(turned, 0, i, i + 1, 1),
                            rapt_rotate(rapt_slice(x, 0, i, i + 1, 1), far_apart[i], 10000, false)),
                  "place %lld", (long long)far_apart[i]);
    }
    rapt_multi_head_attention *m =
        rapt_multi_head_attention_new(&(rapt_multi_head_attention_config){.hidden = 8, .heads = 2, .rotary = rotary});
    rapt_tensor *starts = rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){0, 4}), *batch = rapt_unsqueeze(x, 0);
    rapt_tensor *padded = rapt_multi_head_attention_forward(m, batch, batch, batch, RAPT_MASK(.offset = -1), NULL);
    rapt_tensor *packed =
        rapt_multi_head_attention_forward(m, x, x, x, RAPT_MASK(.offset = -1, .starts = starts), NULL);
    cr_assert(padded && packed, "%s", rapt_error());
    expect_close("packed", values_of(packed), values_of(padded), rapt_count(x), 1e-6);
    rapt_module_free(&m->module);
    expect_no_error();
}

/* Bases that are one number in float32, and past it: each has its own angles. */
Test(rotary, bases_that_differ_little)
{
    RAPT_SCOPE;
    rapt_rotary *rotary = rapt_rotary_new();
    const double bases[] = {10000, 10000.0004, nextafter(10000, 0), 1e39, 1e45, 1e-60, 1e-50};
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(1 << 12, 8));
    for (int i = 0; i < 7; i++) {
        rotary->base = bases[i];
        cr_expect(same_bits(rapt_rotary_forward(rotary, x, 0), rapt_rotate(x, 0, bases[i], false)), "%.17g", bases[i]);
    }
    rapt_module_free(&rotary->module);
    expect_no_error();
}

/* By the wavelengths in positions, as LLaMA 3.1's program has it. */
static double defined_frequency(const rapt_rotary_scaling *s, double frequency)
{
    const double wavelength = 2 * acos(-1) / frequency, context = (double)s->context;
    if (s->factor == 0) return frequency;
    if (s->context == 0 || (s->low_turns > 0 && wavelength > context / s->low_turns)) return frequency / s->factor;
    if (wavelength < context / s->high_turns) return frequency;
    const double smooth = (context / wavelength - s->low_turns) / (s->high_turns - s->low_turns);
    return (1 - smooth) * frequency / s->factor + smooth * frequency;
}

/* Each scaling has its own angles, whatever the layer's table held before; that table's rows may be shorter than what
 * tells scalings apart. */
Test(rotary, scaled)
{
    RAPT_SCOPE;
    rapt_rotary *rotary = rapt_rotary_new();
    /* each field alone changes */
    static const rapt_rotary_scaling scalings[] =
        {{0},         {8, 1, 4, 64}, {8, 1, 4, 65}, {8, 1, 4.5, 65}, {8, 2, 4.5, 65}, {9, 2, 4.5, 65}, {9, 0, 4.5, 65},
         {9, 0, 0, 0}};
    const int64_t sizes[] = {2, 4, 64}, places[] = {0, 7, 1, 300};
    for (int i = 0; i < 3 * 8 * 2; i++) {
        RAPT_SCOPE;
        const int64_t size = sizes[i / 16], half = size / 2;
        const rapt_dtype dtype = i / 8 % 2 ? RAPT_FLOAT64 : RAPT_FLOAT32;
        rotary->scaling = scalings[i % 8];
        rapt_tensor *x = rapt_zeros(dtype, RAPT_SHAPE(4, size));
        rapt_fill(rapt_slice(x, 1, 0, size, 2), 1); /* each pair (1, 0) */
        rapt_tensor *turned = rapt_rotary_forward_at(rotary, x, rapt_from(RAPT_INT64, RAPT_SHAPE(4), places));
        for (int64_t k = 0; k < 4 * half; k++) {
            const int64_t row = k / half, j = k % half;
            const double frequency = pow(10000, -2 * (double)j / (double)size);
            const double angle = (double)places[row] * defined_frequency(&rotary->scaling, frequency);
            const double cosine = rapt_at(turned, (int64_t[]){row, 2 * j}),
                         sine = rapt_at(turned, (int64_t[]){row, 2 * j + 1});
            const double bound = i / 8 % 2 ? 1e-12 : 1e-7;
            cr_assert(fabs(cosine - cos(angle)) < bound && fabs(sine - sin(angle)) < bound, "scaling %d, size %d, %d",
                      i % 8, (int)size, (int)k);
        }
    }
    char text[64];
    rotary->module.kind->describe(&rotary->module, text, sizeof text);
    cr_expect_str_eq(text, "base 10000, neighbours, scaled by 1/9");
    rotary->scaling = (rapt_rotary_scaling){.factor = -1};
    cr_expect_null(rapt_rotary_forward(rotary, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 4)), 0));
    expect_error(RAPT_ERROR_VALUE, "the factor of rotary scaling -1; a finite number above 0 expected");
    rapt_module_free(&rotary->module);
}
