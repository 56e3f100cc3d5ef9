/* Which kernels of fused dot-product attention a piece of work goes to. Part of dot_tmpl.c. */

/* Few rows of a group go their own way, that of decoding; how many are few was measured: keys in the cache, at all
 * levels. Gaussian scores have no such way. All pieces of a call go the same way, forward and backward: scores summed
 * in another order would not fit the statistics. So do all sequences of a packed batch: as the padded one goes. */
enum { decoding_rows = 4 };

static bool is_decoding(const rapt_dot_attention *call)
{
    const int64_t longest = call->mask.queries + call->mask.more_queries;
    return call->mask.heads / call->groups * longest <= decoding_rows && !call->is_gaussian;
}

static size_t forward_scratch(const rapt_dot_attention *call, int64_t rows)
{
    decoding_work w;
    return (size_t)larger_of((int64_t)forward_bytes(call, rows),
                             (int64_t)layout_decoding(&w, call, smaller_of(rows, decoding_rows), NULL));
}

static size_t backward_scratch(const rapt_dot_attention *call, int64_t rows)
{
    decoding_backward_work b;
    return (size_t)larger_of((int64_t)backward_bytes(call, rows),
                             (int64_t)layout_decoding_backward(&b, call, smaller_of(rows, decoding_rows), NULL));
}

static void dispatch_forward(const rapt_dot_attention *call, const rapt_attention_piece *piece, void *scratch)
{
    (is_decoding(call) ? forward_decoding : forward)(call, piece, scratch);
}

static void dispatch_weights(const rapt_dot_attention *call, const rapt_attention_piece *piece, void *scratch,
                             void *weights)
{
    (is_decoding(call) ? weigh_decoding : weigh)(call, piece, scratch, weights);
}

static void dispatch_backward(const rapt_dot_attention *call, const rapt_attention_piece *piece, void *scratch,
                              void *part)
{
    (is_decoding(call) ? backward_decoding : backward)(call, piece, scratch, part);
}
