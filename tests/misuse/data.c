/* Mistakes with data: loaders, batches, tokens and targets. */
#include "mistakes.h"

static rapt_loader *loader_of(int64_t items, int64_t batch_size)
{
    const rapt_column column = {.values = rapt_arange(RAPT_FLOAT32, 0, (double)items, 1)};
    return rapt_loader_new(&(rapt_loader_config){.columns = &column, .column_count = 1, .batch_size = batch_size});
}

static bool no_items(void)
{
    return !loader_of(0, 2);
}

static bool no_batch_size(void)
{
    return !loader_of(4, 0);
}

static bool columns_differ(void)
{
    const rapt_column columns[] = {{.values = ones(RAPT_SHAPE(4, 3))}, {.values = ones(RAPT_SHAPE(5))}};
    return !rapt_loader_new(&(rapt_loader_config){.columns = columns, .column_count = 2, .batch_size = 2});
}

static bool fewer_than_a_batch(void)
{
    const rapt_column column = {.values = ones(RAPT_SHAPE(3))};
    return !rapt_loader_new(
        &(rapt_loader_config){.columns = &column, .column_count = 1, .batch_size = 4, .drop_last = true});
}

static bool end_of_epoch(void)
{
    rapt_loader *loader = loader_of(4, 2);
    rapt_batch batch;
    bool good = rapt_loader_next(loader, &batch) && rapt_loader_next(loader, &batch);
    good = good && !rapt_loader_next(loader, &batch) && !rapt_error() && rapt_loader_next(loader, &batch);
    rapt_loader_free(loader);
    return good;
}

static bool batch_after_next(void)
{
    rapt_loader *loader = loader_of(4, 2);
    rapt_batch first, second;
    return rapt_loader_next(loader, &first) && rapt_loader_next(loader, &second) && !rapt_neg(first.tensors[0]);
}

static bool loader_after_free(void)
{
    rapt_loader *loader = loader_of(4, 2);
    rapt_batch batch;
    rapt_loader_free(loader);
    return !rapt_loader_next(loader, &batch);
}

static bool loader_freed_twice(void)
{
    rapt_loader *loader = loader_of(4, 2);
    rapt_loader_free(loader);
    rapt_loader_free(loader);
    return true;
}

static bool make_nothing(void *context, rapt_batch *batch)
{
    (void)context, (void)batch;
    return false;
}

static bool failing_function(void)
{
    rapt_loader *loader = rapt_loader_new(&(rapt_loader_config){.items = 4, .make = make_nothing, .batch_size = 2});
    rapt_batch batch;
    return !rapt_loader_next(loader, &batch);
}

static bool token_too_large(void)
{
    return !rapt_embedding_forward(rapt_embedding_new(5, 3), integers(2, (int64_t[]){1, 5}));
}

static bool token_negative(void)
{
    return !rapt_embedding_forward(rapt_embedding_new(5, 3), integers(2, (int64_t[]){1, -1}));
}

static bool token_float(void)
{
    return !rapt_embedding_forward(rapt_embedding_new(5, 3), ones(RAPT_SHAPE(2)));
}

static bool class_too_large(void)
{
    return !rapt_cross_entropy(ones(RAPT_SHAPE(2, 3)), integers(2, (int64_t[]){1, 3}), NULL);
}

static bool padding_target(void)
{
    return !rapt_cross_entropy(ones(RAPT_SHAPE(2, 3)), integers(2, (int64_t[]){1, -100}), NULL);
}

static bool one_hot_targets(void)
{
    return !rapt_cross_entropy(ones(RAPT_SHAPE(2, 3)), ones(RAPT_SHAPE(2, 3)), NULL);
}

static bool targets_in_a_column(void)
{
    return !rapt_cross_entropy(ones(RAPT_SHAPE(2, 3)), rapt_zeros(RAPT_INT64, RAPT_SHAPE(2, 1)), NULL);
}

static bool integers_divided_by_zero(void)
{
    return !rapt_div(integers(2, (int64_t[]){1, 2}), integers(2, (int64_t[]){1, 0}));
}

static bool mean_of_integers(void)
{
    return rapt_item(rapt_mean(integers(2, (int64_t[]){1, 2}), RAPT_ALL_AXES, false)) == 1.5;
}

static bool largest_of_none(void)
{
    return !rapt_max(ones(RAPT_SHAPE(0, 3)), RAPT_ALL_AXES, false);
}

static bool index_too_large(void)
{
    return !rapt_select(ones(RAPT_SHAPE(2, 3)), 0, 2);
}

static bool reshape_to_other_count(void)
{
    return !rapt_reshape(ones(RAPT_SHAPE(2, 3)), RAPT_SHAPE(4, 2));
}

static bool logarithms_as_weights(void)
{
    return !rapt_multinomial(rapt_neg(ones(RAPT_SHAPE(3))), 1, false);
}

static bool size_overflows(void)
{
    return !rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(INT64_C(1) << 40, INT64_C(1) << 40));
}

static bool negative_size(void)
{
    return !rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(3 - 5));
}

/* The bytes of the doubles are taken for floats. */
static bool doubles_as_floats(void)
{
    rapt_tensor *x = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(2), (double[]){1, 2});
    return x && (rapt_at(x, (int64_t[]){0}) != 1 || rapt_at(x, (int64_t[]){1}) != 2);
}

/* The first less the second, or the second less the first. */
static bool drawn_in_arguments(void)
{
    rapt_seed(1);
    rapt_tensor *x = rapt_sub(rapt_randint(0, 1000, RAPT_SHAPE(8)), rapt_randint(0, 1000, RAPT_SHAPE(8)));
    rapt_seed(1);
    rapt_tensor *first = rapt_randint(0, 1000, RAPT_SHAPE(8)), *second = rapt_randint(0, 1000, RAPT_SHAPE(8));
    return is_all(rapt_sub(x, rapt_sub(first, second)), 0) || is_all(rapt_sub(x, rapt_sub(second, first)), 0);
}

const mistake data_mistakes[] = {
    {"A loader of no items", no_items, FAILS, RAPT_ERROR_VALUE, "loader: 0 items; 1 to 2^48 expected",
     "Look whether the data was read."},
    {"A loader without a batch size", no_batch_size, FAILS, RAPT_ERROR_VALUE,
     "neither a batch size nor the most tokens of a batch are given", "Set `batch_size`, or `most_tokens`."},
    {"Columns of different numbers of items", columns_differ, FAILS, RAPT_ERROR_SHAPE,
     "loader: column 1 has 5 items; 4 expected, as column 0 has", "Inputs and targets belong together."},
    {"`drop_last` with fewer items than a batch", fewer_than_a_batch, FAILS, RAPT_ERROR_VALUE,
     "3 items are no batch of 4", "A smaller batch, or keep the last."},
    {"The end of an epoch is taken for an error", end_of_epoch, WORKS, RAPT_OK,
     "`rapt_loader_next` is false, `rapt_error` NULL, and the next call begins the next epoch",
     "Ask `rapt_error` after the loop."},
    {"A batch is used after the loader's next one", batch_after_next, GONE, RAPT_ERROR_GONE, "neg: input 0 is gone",
     "`rapt_retain` what is to stay."},
    {"A loader is used after it was freed", loader_after_free, GONE, RAPT_ERROR_GONE, "loader_next: the loader is gone",
     "Free it last."},
    {"A loader is freed twice", loader_freed_twice, GONE, RAPT_ERROR_GONE, "loader_free: the loader is gone",
     "Set the pointer to NULL."},
    {"The function that makes batches fails, and does not say why", failing_function, FAILS, RAPT_ERROR_VALUE,
     "the function that makes batches failed", "`rapt_fail` before it returns false."},
    {"A token of another vocabulary", token_too_large, FAILS, RAPT_ERROR_VALUE,
     "index 5 at position [1] is out of range", "The table has one row more than the largest token."},
    {"Padding by −1 goes into an embedding", token_negative, FAILS, RAPT_ERROR_VALUE,
     "index -1 at position [1] is out of range", "Pad with a token of its own."},
    {"Tokens are floats", token_float, FAILS, RAPT_ERROR_DTYPE, "indices are float32; int64 or int32 expected",
     "`rapt_cast` to RAPT_INT64."},
    {"A class that is not there", class_too_large, FAILS, RAPT_ERROR_VALUE,
     "target 3 in row 1; a class number from 0 to 2 expected", "Labels begin at 0."},
    {"Targets of padding are −100", padding_target, FAILS, RAPT_ERROR_VALUE, "target -100 in row 1",
     "Set `has_ignore_index` and `ignore_index`."},
    {"One-hot targets", one_hot_targets, FAILS, RAPT_ERROR_DTYPE, "class numbers (rapt_argmax makes them",
     "`rapt_argmax(targets, -1, false)`."},
    {"Targets (B, 1)", targets_in_a_column, FAILS, RAPT_ERROR_SHAPE, "(…, classes) and (…) expected",
     "`rapt_squeeze(targets, 1)`."},
    {"Integers are divided by 0", integers_divided_by_zero, FAILS, RAPT_ERROR_VALUE,
     "an integer is divided by 0 (element 1 of the divisor)", "Divide floats, or `rapt_where`."},
    {"The mean of integers", mean_of_integers, WORKS, RAPT_OK, "it is a float32", "None needed."},
    {"The largest element of an empty batch", largest_of_none, FAILS, RAPT_ERROR_SHAPE,
     "max: no elements along the axes of shape [0, 3]", "Leave empty batches out."},
    {"An index beyond the end", index_too_large, FAILS, RAPT_ERROR_VALUE, "index 2 of axis 0, which has size 2",
     "It counts from 0, or from −1 backwards."},
    {"A shape of another number of elements", reshape_to_other_count, FAILS, RAPT_ERROR_SHAPE,
     "6 elements of shape [2, 3] do not fit shape [4, 2]", "Let one size be −1."},
    {"Logits, or their logarithms, as weights to draw from", logarithms_as_weights, FAILS, RAPT_ERROR_VALUE,
     "finite ones, not below 0, expected", "`rapt_softmax` first."},
    {"A size that is too large", size_overflows, FAILS, RAPT_ERROR_MEMORY,
     "a tensor of shape [1099511627776, 1099511627776] has more bytes than", "A size was computed wrong."},
    {"A negative size", negative_size, FAILS, RAPT_ERROR_SHAPE, "size -2 of axis 0 is negative",
     "A difference the wrong way round."},
    {"`rapt_from(RAPT_FLOAT32, …)` of an array of doubles", doubles_as_floats, WORKS, RAPT_OK,
     "but the numbers are others: C hides of what type the array is", "`(float[]){1, 2}`, or RAPT_FLOAT64."},
    {"Random tensors, or new layers, are two arguments of one call", drawn_in_arguments, WORKS, RAPT_OK,
     "but C leaves open which is drawn first, and gcc and clang differ",
     "Name them first, one declaration each. The layers of `RAPT_SEQUENTIAL`, whose order C leaves open too, both make "
     "from left to right."},
    {0},
};
