/* Errors say what usually helps, where it does help, and only there. */
#include "gpt.h"

#include <rapt/generate.h>
#include <rapt/module_values.h>
#include <rapt/recurrent.h>
#include <rapt/seq2seq.h>

static rapt_tensor *ones(int rank, const int64_t *shape)
{
    return rapt_ones(RAPT_FLOAT32, rank, shape);
}

static rapt_tensor *integers(int rank, const int64_t *shape, double value)
{
    return rapt_full(RAPT_INT64, rank, shape, value);
}

/* The message ends so. */
#define expect_end(code, end)                                                                                          \
    do {                                                                                                               \
        const char *text = rapt_error() ? rapt_error() : "";                                                           \
        const size_t length = strlen(text), wanted = strlen(end);                                                      \
        cr_expect(length >= wanted && strcmp(text + length - wanted, end) == 0, "'%s' does not end: %s", end, text);   \
        expect_error(code, "");                                                                                        \
    } while (0)

Test(error_cures, axes_behind_the_shorter_shape)
{
    RAPT_SCOPE;
    cr_expect_null(rapt_add(ones(RAPT_SHAPE(4, 3)), ones(RAPT_SHAPE(4))));
    expect_error(RAPT_ERROR_SHAPE,
                 "shapes [4, 3] and [4] do not broadcast: sizes 3 and 4, 0 from the last axis; axes of "
                 "size 1 behind the shorter shape make it fit (rapt_unsqueeze)");
    cr_expect_null(rapt_mul(ones(RAPT_SHAPE(2, 5)), ones(RAPT_SHAPE(2, 5, 3))));
    expect_end(RAPT_ERROR_SHAPE, "(rapt_unsqueeze)");
    cr_expect_null(rapt_add(ones(RAPT_SHAPE(4, 3)), ones(RAPT_SHAPE(2))));
    expect_end(RAPT_ERROR_SHAPE, "0 from the last axis");
    cr_expect_null(rapt_add(ones(RAPT_SHAPE(4, 3)), ones(RAPT_SHAPE(4, 2))));
    expect_end(RAPT_ERROR_SHAPE, "0 from the last axis");
}

Test(error_cures, transposed_matrices)
{
    RAPT_SCOPE;
    cr_expect_null(rapt_matmul(ones(RAPT_SHAPE(2, 3)), ones(RAPT_SHAPE(4, 3))));
    expect_error(RAPT_ERROR_SHAPE, "matmul: inner sizes differ: a is [2, 3], b is [4, 3]; b fits transposed");
    cr_expect_null(rapt_matmul(ones(RAPT_SHAPE(3, 2)), ones(RAPT_SHAPE(3, 4))));
    expect_error(RAPT_ERROR_SHAPE, "; a fits transposed");
    cr_expect_null(rapt_matmul(ones(RAPT_SHAPE(2, 3)), ones(RAPT_SHAPE(4, 5))));
    expect_end(RAPT_ERROR_SHAPE, "b is [4, 5]");
    cr_expect_null(rapt_matmul(ones(RAPT_SHAPE(3)), ones(RAPT_SHAPE(4))));
    expect_end(RAPT_ERROR_SHAPE, "b is [4]");
    cr_expect_null(rapt_matmul(ones(RAPT_SHAPE(2, 3, 3)), ones(RAPT_SHAPE(4, 3, 3))));
    expect_end(RAPT_ERROR_SHAPE, "leading axes do not broadcast: a is [2, 3, 3], b is [4, 3, 3]");
}

Test(error_cures, places_of_bad_indices)
{
    RAPT_SCOPE;
    rapt_tensor *indices = rapt_from(RAPT_INT64, RAPT_SHAPE(2, 3), (int64_t[]){0, 1, 2, 3, 7, 0});
    cr_expect_null(rapt_embed(ones(RAPT_SHAPE(4, 3)), indices));
    expect_end(RAPT_ERROR_VALUE, "index 7 at position [1, 1] is out of range; 4 places to choose from");
}

Test(error_cures, targets_of_classes)
{
    RAPT_SCOPE;
    rapt_tensor *logits = ones(RAPT_SHAPE(2, 3));
    cr_expect_null(rapt_cross_entropy(logits, ones(RAPT_SHAPE(2, 3)), NULL));
    expect_end(RAPT_ERROR_DTYPE, "class numbers (rapt_argmax makes them of one-hot rows)");
    cr_expect_null(rapt_cross_entropy(logits, integers(RAPT_SHAPE(2, 3), 0), NULL));
    expect_end(RAPT_ERROR_SHAPE, "; rapt_argmax makes class numbers of one-hot rows");
    cr_expect_null(rapt_cross_entropy(ones(RAPT_SHAPE(2, 3, 5)), integers(RAPT_SHAPE(2, 5), 0), NULL));
    expect_end(RAPT_ERROR_SHAPE, "; the classes are axis 1, and go to the end (rapt_permute)");
    cr_expect_null(rapt_cross_entropy(ones(RAPT_SHAPE(2, 3, 5)), integers(RAPT_SHAPE(2, 4), 0), NULL));
    expect_end(RAPT_ERROR_SHAPE, "(…) expected");
    cr_expect_null(rapt_cross_entropy(logits, integers(RAPT_SHAPE(2), 3), NULL));
    expect_end(RAPT_ERROR_VALUE, "target 3 in row 0; a class number from 0 to 2 expected; the first class is 0");
    cr_expect_null(rapt_cross_entropy(logits, integers(RAPT_SHAPE(2), -100), NULL));
    expect_end(RAPT_ERROR_VALUE, "from 0 to 2 expected, or the ignore_index");
    cr_expect_null(rapt_cross_entropy(logits, integers(RAPT_SHAPE(2), 9), NULL));
    expect_end(RAPT_ERROR_VALUE, "from 0 to 2 expected");
}

Test(error_cures, casts)
{
    RAPT_SCOPE;
    rapt_linear *linear = rapt_linear_new(3, 2, 0);
    cr_expect_null(rapt_linear_forward(linear, rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 3))));
    expect_error(RAPT_ERROR_DTYPE, "inputs of float64 and float32; one floating dtype expected (rapt_cast converts, "
                                   "rapt_module_cast a whole module); in Linear");
    cr_expect_null(rapt_exp(integers(RAPT_SHAPE(2), 1)));
    expect_end(RAPT_ERROR_DTYPE, "exp: not defined for int64 (rapt_cast converts)");
    rapt_module_free(&linear->module);
}

Test(error_cures, one_number_and_a_graph)
{
    RAPT_SCOPE;
    rapt_item(ones(RAPT_SHAPE(2)));
    expect_end(RAPT_ERROR_SHAPE, "not shape [2] (rapt_sum, rapt_mean or rapt_select make one)");
    cr_expect_not(rapt_backward(ones(RAPT_SHAPE(2))));
    expect_end(RAPT_ERROR_GRAPH, "made while nothing was recorded (RAPT_NO_GRADIENT, rapt_detach)");
    rapt_tensor *x = rapt_require_gradient(ones(RAPT_SHAPE(2)));
    cr_expect_not(rapt_backward(rapt_mul(x, x)));
    expect_end(RAPT_ERROR_SHAPE, "only one element (rapt_mean, rapt_sum) starts from 1");
    rapt_tensor *constant = ones(RAPT_SHAPE(2)), *y = rapt_sum(rapt_mul(x, constant), RAPT_ALL_AXES, false);
    rapt_fill(constant, 2);
    cr_expect_not(rapt_backward(y));
    expect_end(RAPT_ERROR_GRAPH, "; change a clone, or do it after backward");
}

Test(error_cures, an_axis_for_the_batch)
{
    RAPT_SCOPE;
    const char *cure = "; a batch of one has an axis, too (rapt_unsqueeze)";
    rapt_gpt *gpt = rapt_gpt_new(&tiny);
    cr_expect_null(rapt_gpt_forward(gpt, integers(RAPT_SHAPE(3), 1), NULL));
    expect_error(RAPT_ERROR_SHAPE, cure);
    cr_expect_null(rapt_gpt_forward(gpt, integers(RAPT_SHAPE(1, 1, 3), 1), NULL));
    expect_end(RAPT_ERROR_SHAPE, "int64 [1, 1, 3]");
    rapt_multi_head_attention *heads =
        rapt_multi_head_attention_new(&(rapt_multi_head_attention_config){.hidden = 4, .heads = 2});
    rapt_tensor *x = ones(RAPT_SHAPE(3, 4)), *batch = ones(RAPT_SHAPE(2, 3, 4));
    cr_expect_null(rapt_multi_head_attention_forward(heads, x, x, x, NULL, NULL));
    expect_error(RAPT_ERROR_SHAPE, cure);
    cr_expect_null(rapt_multi_head_attention_forward(heads, batch, x, x, NULL, NULL));
    expect_error(RAPT_ERROR_SHAPE, cure);
    rapt_gru *gru = rapt_gru_new(4, 2, 1, 0);
    cr_expect_null(rapt_gru_forward(gru, x, NULL, NULL));
    expect_error(RAPT_ERROR_SHAPE, cure);
    rapt_module_free(&gpt->module);
    rapt_module_free(&heads->module);
    rapt_module_free((rapt_module *)gru);
}

Test(error_cures, masks_of_keys)
{
    RAPT_SCOPE;
    rapt_tensor *seen = rapt_ones(RAPT_BOOL, RAPT_SHAPE(2, 5));
    cr_expect_null(rapt_masked_softmax(ones(RAPT_SHAPE(2, 4, 3, 5)), RAPT_MASK(.seen = seen)));
    expect_end(RAPT_ERROR_SHAPE, "the same for all heads and queries has the shape (B, 1, 1, K)");
    cr_expect_null(rapt_masked_softmax(ones(RAPT_SHAPE(2, 3, 5)), RAPT_MASK(.seen = seen)));
    expect_end(RAPT_ERROR_SHAPE, "the same for all queries has the shape (B, 1, K)");
    cr_expect_null(rapt_masked_softmax(ones(RAPT_SHAPE(3, 3, 5)), RAPT_MASK(.seen = seen)));
    expect_end(RAPT_ERROR_SHAPE, "scores [3, 3, 5]");
}

Test(error_cures, files_of_others)
{
    RAPT_SCOPE;
    rapt_linear *linear = rapt_linear_new(3, 2, 0);
    rapt_archive *archive = rapt_archive_new();
    rapt_archive_add(archive, "other", ones(RAPT_SHAPE(1)));
    cr_expect_not(rapt_module_from_archive(&linear->module, NULL, archive));
    expect_end(RAPT_ERROR_FORMAT, "no tensor weight (float32 [2, 3] expected)");
    rapt_archive_add(archive, "module.weight", ones(RAPT_SHAPE(2, 3)));
    cr_expect_not(rapt_module_from_archive(&linear->module, NULL, archive));
    expect_end(RAPT_ERROR_FORMAT, "; there is 'module.weight': rapt_load_part takes a prefix off");
    cr_expect_not(rapt_module_from_archive_part(&linear->module, &(rapt_load_part){.allow_missing = true}, archive));
    expect_end(RAPT_ERROR_FORMAT, "not even weight; there is 'module.weight': rapt_load_part takes a prefix off");
    rapt_archive_add(archive, "weight", rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 3)));
    cr_expect_not(rapt_module_from_archive(&linear->module, NULL, archive));
    expect_end(RAPT_ERROR_SHAPE, "float32 [2, 3] expected (rapt_module_cast gives the module that dtype)");
    rapt_archive_free(archive);
    rapt_module_free(&linear->module);
}

static const rapt_module_class counter_class = {.name = "Counter"};

/* A cast gives floats to floats alone. */
Test(error_cures, files_of_whole_numbers)
{
    static const rapt_dtype dtypes[][2] = {{RAPT_FLOAT32, RAPT_INT64},
                                           {RAPT_FLOAT32, RAPT_BOOL},
                                           {RAPT_INT64, RAPT_INT32},
                                           {RAPT_INT64, RAPT_FLOAT32}};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        RAPT_SCOPE;
        rapt_module *module = rapt_module_new(sizeof *module, &counter_class);
        rapt_module_add_buffer(module, "count", rapt_zeros(dtypes[i][0], RAPT_SHAPE(2)));
        rapt_archive *archive = rapt_archive_new();
        rapt_archive_add(archive, "count", rapt_zeros(dtypes[i][1], RAPT_SHAPE(2)));
        cr_expect_not(rapt_module_from_archive(module, NULL, archive));
        expect_end(RAPT_ERROR_SHAPE, "[2] expected");
        rapt_archive_free(archive);
        rapt_module_free(module);
    }
}

Test(error_cures, memory_that_is_in_use)
{
    RAPT_SCOPE;
    cr_expect_null(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(SIZE_MAX / 16)));
    expect_end(RAPT_ERROR_MEMORY, " in use");
    cr_expect_null(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(SIZE_MAX / 16)));
    expect_error(RAPT_ERROR_MEMORY, "zeros: no memory for ");
}
