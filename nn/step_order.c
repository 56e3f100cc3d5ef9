/* The order of packed sequences' rows in a recurrence. */
#include "step_order.h"

#include "tensor/packing.h"

static bool take(const char *op, int64_t count, rapt_tensor **tensor, int64_t **data)
{
    *tensor = rapt_new(op, RAPT_INT64, RAPT_SHAPE(count));
    *data = *tensor ? (int64_t *)(void *)(*tensor)->data : NULL;
    return *tensor != NULL;
}

bool rapt_step_order_make(const char *op, const rapt_tensor *starts, int64_t rows, rapt_step_order *order)
{
    rapt_raw_packing p;
    rapt_tensor *counts;
    int64_t *longer, *step, *row, *packed, *sequence, *place, *last;
    if (!rapt_read_packing(op, starts, &p) || !rapt_check_packed_rows(op, "rows", &p, rows)) return false;
    if (p.sequences == 0) return rapt_fail(RAPT_ERROR_VALUE, op, "no sequences; 1 or more expected");
    const int64_t empty = rapt_find_empty_sequence(&p);
    if (empty >= 0)
        return rapt_fail(RAPT_ERROR_VALUE, op, "sequence %lld has no rows; 1 or more expected", (long long)empty);
    if (!take(op, p.longest + 1, &counts, &longer) || !take(op, p.longest + 1, &order->step_starts, &step) ||
        !take(op, p.rows, &order->rows, &row) || !take(op, p.rows, &order->packed, &packed) ||
        !take(op, p.sequences, &order->sequences, &sequence) || !take(op, p.sequences, &order->places, &place) ||
        !take(op, p.sequences, &order->last, &last))
        return false;
    /* longer[t]: how many sequences have more than t rows, which are those of step t */
    for (int64_t t = 0; t <= p.longest; t++) longer[t] = 0;
    for (int64_t b = 0; b < p.sequences; b++) longer[rapt_packed_length(&p, b) - 1]++;
    for (int64_t t = p.longest - 1; t >= 0; t--) longer[t] += longer[t + 1];
    step[0] = 0;
    for (int64_t t = 0; t < p.longest; t++) step[t + 1] = step[t] + longer[t];
    for (int64_t b = 0; b < p.sequences; b++) {
        const int64_t length = rapt_packed_length(&p, b);
        place[b] = longer[length]++;
        sequence[place[b]] = b;
        last[b] = step[length - 1] + place[b];
        for (int64_t t = 0; t < length; t++) {
            packed[p.starts[b] + t] = step[t] + place[b];
            row[step[t] + place[b]] = p.starts[b] + t;
        }
    }
    return true;
}

rapt_tensor *rapt_step_order_mirror(const char *op, const rapt_step_order *order)
{
    rapt_tensor *mirror;
    int64_t *to, length = order->step_starts->count - 1;
    const int64_t *step = (const int64_t *)(const void *)order->step_starts->data;
    if (!take(op, order->rows->count, &mirror, &to)) return NULL;
    for (int64_t place = 0; place < order->places->count; place++) {
        while (step[length] - step[length - 1] <= place) length--;
        for (int64_t t = 0; t < length; t++) to[step[t] + place] = step[length - 1 - t] + place;
    }
    return mirror;
}
