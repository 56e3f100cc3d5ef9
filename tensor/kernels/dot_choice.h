/* Which kernels of fused dot-product attention a piece of work goes to. Part of dot_template.h. */

/* Few rows of a group go their own way; how many are few was measured: keys in the cache, at all levels. Distances have no
 * such way. All pieces of a call go the same way, forward and backward: scores summed in another order would not fit the
 * statistics. */
enum { few_rows = 4 };

static bool are_few(const rapt_dot_attention *call)
{
    return call->mask.heads / call->groups * call->mask.queries <= few_rows && !call->distances;
}

static size_t any_forward_bytes(const rapt_dot_attention *call, int64_t rows)
{
    few_work w;
    return (size_t)larger_of((int64_t)forward_bytes(call, rows),
                             (int64_t)lay_few(&w, call, smaller_of(rows, few_rows), NULL));
}

static size_t any_backward_bytes(const rapt_dot_attention *call, int64_t rows)
{
    few_backward b;
    return (size_t)larger_of((int64_t)backward_bytes(call, rows),
                             (int64_t)lay_few_backward(&b, call, smaller_of(rows, few_rows), NULL));
}

static void any_forward(const rapt_dot_attention *call, const rapt_dot_piece *piece, void *scratch)
{
    (are_few(call) ? forward_few : forward)(call, piece, scratch);
}

static void any_weights(const rapt_dot_attention *call, const rapt_dot_piece *piece, void *scratch, void *weights)
{
    (are_few(call) ? weigh_few : weigh)(call, piece, scratch, weights);
}

static void any_backward(const rapt_dot_attention *call, const rapt_dot_piece *piece, void *scratch, void *part)
{
    (are_few(call) ? backward_few : backward)(call, piece, scratch, part);
}
