/* Batches of columns: rows of items, and their sequences padded or packed. */
#include <stdlib.h>
#include <string.h>

#include <rapt/autograd.h>

#include "loader.h"
#include "tensor/core.h"

static const char op[] = "loader";

static bool check_starts(int number, const rapt_tensor *starts, int64_t rows)
{
    char found[RAPT_SHAPE_TEXT + 16];
    if (starts->dtype != RAPT_INT64 || starts->rank != 1 || starts->count < 1)
        return rapt_fail(RAPT_ERROR_SHAPE, op, "the starts of column %d are %s; int64 (items + 1) expected", number,
                         rapt_describe(starts, found, sizeof found));
    const int64_t *at = rapt_data(starts);
    for (int64_t i = 0; i < starts->count; i++)
        if (at[i] < (i > 0 ? at[i - 1] : 0) || at[i] > rows || (i == 0 && at[i] != 0))
            return rapt_fail(RAPT_ERROR_VALUE, op,
                             "start %lld of column %d is %lld; starts that rise from 0 to its %lld rows expected",
                             (long long)i, number, (long long)at[i], (long long)rows);
    return at[starts->count - 1] == rows ||
           rapt_fail(RAPT_ERROR_VALUE, op, "the last start of column %d is %lld; its number of rows, %lld, expected",
                     number, (long long)at[starts->count - 1], (long long)rows);
}

/* A share of the tensor, or of a contiguous copy. */
static rapt_tensor *take(rapt_tensor *tensor)
{
    RAPT_SCOPE;
    return rapt_retain(rapt_contiguous(rapt_detach(tensor)));
}

/* A copy, of which what is checked stays true. */
static rapt_tensor *take_starts(const rapt_tensor *starts)
{
    RAPT_SCOPE;
    return rapt_retain(rapt_clone(starts));
}

static bool check_padding(int number, const rapt_column *column)
{
    RAPT_SCOPE;
    const rapt_dtype dtype = column->values->dtype;
    rapt_tensor *padding = rapt_scalar(dtype, column->padding);
    if (!padding) return false;
    return rapt_is_floating(padding) || rapt_item(padding) == column->padding ||
           rapt_fail(RAPT_ERROR_VALUE, op, "the padding of column %d, %g, is no %s", number, column->padding,
                     rapt_dtype_name(dtype));
}

static bool take_column(rapt_loader *loader, int number)
{
    const rapt_column *given = &loader->config.columns[number];
    rapt_column *column = &loader->columns[number];
    if (!given->values) return rapt_fail(RAPT_ERROR_NULL, op, "the values of column %d are NULL", number);
    if (given->values->rank < 1)
        return rapt_fail(RAPT_ERROR_SHAPE, op, "column %d is a single number; an axis of items expected", number);
    column->padding = given->padding;
    column->packed = given->packed;
    if (given->packed && !given->starts)
        return rapt_fail(RAPT_ERROR_NULL, op, "column %d is packed, which needs starts of its sequences", number);
    if (given->starts && !given->packed && !check_padding(number, given)) return false;
    column->values = take(given->values);
    column->starts = given->starts ? take_starts(given->starts) : NULL;
    if (!column->values || (given->starts && !column->starts)) return false;
    const int64_t rows = column->values->shape[0];
    if (column->starts && !check_starts(number, column->starts, rows)) return false;
    const int64_t items = column->starts ? column->starts->count - 1 : rows;
    if (number == 0) loader->items = items;
    return items == loader->items ||
           rapt_fail(RAPT_ERROR_SHAPE, op, "column %d has %lld items; %lld expected, as column 0 has", number,
                     (long long)items, (long long)loader->items);
}

static bool take_lengths(rapt_loader *loader)
{
    const int64_t *lengths = loader->config.lengths, *starts = NULL, most = INT64_C(1) << 48;
    if (loader->items < 1 || loader->items > most)
        return rapt_fail(RAPT_ERROR_VALUE, op, "%lld items; 1 to 2^48 expected", (long long)loader->items);
    for (int i = 0; !lengths && !starts && i < loader->config.column_count; i++)
        if (loader->columns[i].starts) starts = rapt_data(loader->columns[i].starts);
    if (!lengths && !starts) return true;
    loader->lengths = malloc((size_t)loader->items * sizeof *lengths);
    if (!loader->lengths)
        return rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for %lld lengths", (long long)loader->items);
    for (int64_t i = 0; i < loader->items; i++) {
        loader->lengths[i] = lengths ? lengths[i] : starts[i + 1] - starts[i];
        if (loader->lengths[i] < 0)
            return rapt_fail(RAPT_ERROR_VALUE, op, "the length of item %lld is %lld; 0 or more expected", (long long)i,
                             (long long)lengths[i]);
    }
    return true;
}

bool rapt_loader_take_columns(rapt_loader *loader)
{
    const int count = loader->config.column_count;
    if (count < 0 || count > RAPT_BATCH_TENSORS)
        return rapt_fail(RAPT_ERROR_VALUE, op, "%d columns; 0 to %d expected", count, RAPT_BATCH_TENSORS);
    int tensors = 0;
    for (int i = 0; i < count; i++) tensors += loader->config.columns[i].starts ? 2 : 1;
    if (tensors > RAPT_BATCH_TENSORS)
        return rapt_fail(RAPT_ERROR_VALUE, op, "%d tensors in a batch; at most %d expected", tensors,
                         RAPT_BATCH_TENSORS);
    loader->columns = calloc((size_t)count + 1, sizeof *loader->columns);
    if (!loader->columns) return rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for %d columns", count);
    int packed = 0;
    for (int i = 0; i < count; i++) {
        if (!take_column(loader, i)) return false;
        packed += loader->columns[i].packed;
    }
    if (loader->config.packed && count > 0 && packed == 0)
        return rapt_fail(RAPT_ERROR_VALUE, op,
                         "padding is not to be counted (packed), and none of the %d columns is packed", count);
    return take_lengths(loader);
}

/* Bytes of one row. */
static size_t row_bytes(const rapt_tensor *values)
{
    size_t bytes = rapt_dtype_size(values->dtype);
    for (int axis = 1; axis < values->rank; axis++) bytes *= (size_t)values->shape[axis];
    return bytes;
}

static rapt_tensor *new_of(const rapt_tensor *values, int lead_count, const int64_t *lead)
{
    int64_t shape[RAPT_MAX_RANK + 1];
    const int rank = values->rank - 1 + lead_count;
    if (rank > RAPT_MAX_RANK) return rapt_fail(RAPT_ERROR_SHAPE, op, "padded, it would have %d axes", rank), NULL;
    for (int i = 0; i < lead_count; i++) shape[i] = lead[i];
    for (int axis = 1; axis < values->rank; axis++) shape[lead_count + axis - 1] = values->shape[axis];
    return rapt_empty(values->dtype, rank, shape);
}

static rapt_tensor *gather_rows(const rapt_column *column, const rapt_batch *batch)
{
    rapt_tensor *rows = new_of(column->values, 1, &batch->count);
    const size_t bytes = row_bytes(column->values);
    for (int64_t i = 0; rows && i < batch->count && bytes > 0; i++)
        memcpy(rows->data + (size_t)i * bytes, column->values->data + (size_t)batch->items[i] * bytes, bytes);
    return rows;
}

/* Sequences of the batch: packed, or each at the beginning of `longest` places. */
static rapt_tensor *gather_sequences(const rapt_column *column, const rapt_batch *batch, int64_t total, int64_t longest)
{
    const int64_t *starts = rapt_data(column->starts);
    rapt_tensor *out = column->packed ? new_of(column->values, 1, &total)
                                      : new_of(column->values, 2, (int64_t[]){batch->count, longest});
    if (!out || (!column->packed && !rapt_fill(out, column->padding))) return NULL;
    const size_t bytes = row_bytes(column->values);
    int64_t place = 0;
    for (int64_t i = 0; i < batch->count && bytes > 0; i++) {
        const int64_t first = starts[batch->items[i]], length = starts[batch->items[i] + 1] - first;
        const int64_t to = column->packed ? place : i * longest;
        if (length > 0)
            memcpy(out->data + (size_t)to * bytes, column->values->data + (size_t)first * bytes,
                   (size_t)length * bytes);
        place += length;
    }
    return out;
}

/* The sequences, and their lengths or starts. */
static bool make_sequences(const rapt_column *column, const rapt_batch *batch, rapt_tensor **tensors)
{
    const int64_t *starts = rapt_data(column->starts);
    const int64_t count = batch->count + (column->packed ? 1 : 0);
    tensors[1] = rapt_empty(RAPT_INT64, RAPT_SHAPE(count));
    if (!tensors[1]) return false;
    int64_t *numbers = (int64_t *)(void *)tensors[1]->data, total = 0, longest = 0;
    for (int64_t i = 0; i < batch->count; i++) {
        const int64_t length = starts[batch->items[i] + 1] - starts[batch->items[i]];
        numbers[i] = column->packed ? total : length;
        total += length;
        longest = length > longest ? length : longest;
    }
    if (column->packed) numbers[batch->count] = total;
    tensors[0] = gather_sequences(column, batch, total, longest);
    return tensors[0] != NULL;
}

bool rapt_loader_make_columns(void *context, rapt_batch *batch)
{
    const rapt_loader *loader = context;
    rapt_tensor **tensors = batch->tensors;
    for (int i = 0; i < loader->config.column_count; i++) {
        const rapt_column *column = &loader->columns[i];
        if (column->starts) {
            if (!make_sequences(column, batch, tensors)) return false;
            tensors += 2;
        } else {
            *tensors = gather_rows(column, batch);
            if (!*tensors++) return false;
        }
    }
    return true;
}
