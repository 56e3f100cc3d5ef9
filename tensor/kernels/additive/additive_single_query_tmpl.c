/* The gradients of hidden units for one query at a time. Part of additive_tmpl.c. */

/* One query of one head, whose keys no other head of the chunk reads; each key is then touched once, and in order. */
typedef struct single_query {
    head_rows place;
    rapt_key_range keys;
    int64_t query;                   /* its number */
    const T *raw_weight, *scores;    /* scores: their gradient */
    T *query_row, *key_rows, *units; /* where gradients go; units: that of the weights */
    bool adds_keys, adds_units;
} single_query;

/* With t = tanh(a + b) and ds the gradient of the score of j: da += ds (1 − t²), db_j likewise, dw += ds t; for C
 * vectors of units, of which there are `lanes` each. */
#define SINGLE_UNITS(name, C)                                                                                          \
    static inline __attribute__((always_inline)) void name(const single_query *s, int64_t first, int64_t lanes)        \
    {                                                                                                                  \
        const head_rows *p = &s->place;                                                                                \
        const vector half = (vector){0} + (T)0.5, one = (vector){0} + (T)1;                                            \
        vector a[C], w[C], da[C] = {0}, dw[C] = {0};                                                                   \
        for (int c = 0; c < C; c++) {                                                                                  \
            a[c] = load(p->query_powers + s->query * p->padded + first + c * width);                                   \
            w[c] = load_some(s->raw_weight + first + c * width, lanes);                                                \
        }                                                                                                              \
        for (int64_t j = s->keys.first; j < s->keys.last; j++) {                                                       \
            const T ds = s->scores[j];                                                                                 \
            for (int c = 0; c < C; c++) {                                                                              \
                const vector b = load(p->key_powers + j * p->padded + first + c * width);                              \
                const vector t = minus_reciprocal(one, half + a[c] * b), weighted = ds * t, slope = ds - weighted * t; \
                T *to = s->key_rows + j * p->hidden + first + c * width;                                               \
                vector sum = w[c] * slope;                                                                             \
                da[c] += slope;                                                                                        \
                dw[c] += weighted;                                                                                     \
                if (s->adds_keys) sum += load_some(to, lanes);                                                         \
                store_some(to, sum, lanes);                                                                            \
            }                                                                                                          \
        }                                                                                                              \
        for (int c = 0; c < C; c++) {                                                                                  \
            T *unit = s->units + first + c * width;                                                                    \
            if (s->adds_units) dw[c] += load_some(unit, lanes);                                                        \
            store_some(unit, dw[c], lanes);                                                                            \
            store_some(s->query_row + first + c * width, w[c] * da[c], lanes);                                         \
        }                                                                                                              \
    }

enum { single_vectors = 4 }; /* side by side */
SINGLE_UNITS(single_wide, single_vectors)
SINGLE_UNITS(single_narrow, 1)
#undef SINGLE_UNITS

static void single_backward(const single_query *s, int64_t all_keys, int64_t first, int64_t last)
{
    enum { wide = single_vectors * width };
    const size_t bytes = (size_t)(last - first) * sizeof(T);
    for (int64_t j = 0; j < all_keys && !s->adds_keys; j++)
        if (j < s->keys.first || j >= s->keys.last) memset(s->key_rows + j * s->place.hidden + first, 0, bytes);
    int64_t h = first;
    for (; h + wide <= last; h += wide) single_wide(s, h, width);
    for (; h + width <= last; h += width) single_narrow(s, h, width);
    if (h < last) single_narrow(s, h, last - h);
}
