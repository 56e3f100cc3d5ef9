/* Softmax with sinks and sigmoid with biases, in attention: what they compute, derivatives, threads, memory. */
#include "attention_memory.h"

/* One query 1, three keys ln 1, ln 2, ln 3: exponentials 1, 2, 3. */
static rapt_tensor *pool_three(rapt_attention *attention, const double *values, int64_t keys_seen)
{
    rapt_tensor *query = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(1, 1, 1)),
                *keys = doubles(RAPT_SHAPE(1, 3, 1), (double[]){0, log(2), log(3)});
    rapt_tensor *length = rapt_from(RAPT_INT64, RAPT_SHAPE(1), &keys_seen);
    return rapt_attention_forward(attention, query, keys, doubles(RAPT_SHAPE(1, 3, 1), values),
                                  RAPT_MASK(.valid_lengths = length));
}

static rapt_attention *new_dot(void)
{
    rapt_attention *attention = rapt_attention_new(rapt_dot_product_scoring_new(), 0);
    attention->keep_weights = true;
    return attention;
}

Test(head_terms, a_sink_takes_its_share)
{
    for (int plain = 0; plain < 2; plain++) {
        RAPT_SCOPE;
        rapt_attention *attention = new_dot();
        attention->plain = plain;
        attention->sink = 0;
        rapt_tensor *y = pool_three(attention, (double[]){7, 14, 21}, 3);
        expect_values("off by one", y, 1, (double[]){14}, 1e-14);
        expect_values("weights", attention->weights, 3, (double[]){1. / 7, 2. / 7, 3. / 7}, 1e-15);
        expect_values("two keys", pool_three(attention, (double[]){4, 8, 100}, 2), 1, (double[]){5}, 1e-14);
        attention->sink = log(6);
        expect_values("sink ln 6", pool_three(attention, (double[]){7, 14, 21}, 3), 1, (double[]){98. / 12}, 1e-14);
        attention->sink = 1000; /* far above the scores, and far below */
        expect_values("all to the sink", pool_three(attention, (double[]){7, 14, 21}, 3), 1, (double[]){0}, 0);
        attention->sink = -1000;
        expect_values("none to it", pool_three(attention, (double[]){6, 12, 18}, 3), 1, (double[]){14}, 1e-14);
        rapt_module_free(&attention->module);
    }
    expect_no_error();
}

Test(head_terms, sigmoid_weighs_each_key_by_itself)
{
    for (int plain = 0; plain < 2; plain++) {
        RAPT_SCOPE;
        rapt_attention *attention = new_dot();
        attention->plain = plain;
        attention->normalizer = rapt_masked_sigmoid;
        expect_values("sigmoid", pool_three(attention, (double[]){2, 3, 4}, 3), 1, (double[]){6}, 1e-14);
        expect_values("weights", attention->weights, 3, (double[]){1. / 2, 2. / 3, 3. / 4}, 1e-15);
        expect_values("one key", pool_three(attention, (double[]){2, 3, 4}, 1), 1, (double[]){1}, 1e-15);
        attention->sigmoid_bias = log(2);
        rapt_tensor *y = pool_three(attention, (double[]){3, 5, 7}, 3);
        expect_values("bias ln 2", y, 1, (double[]){12}, 1e-14);
        attention->sigmoid_bias = -1000;
        expect_values("far below", pool_three(attention, (double[]){3, 5, 7}, 3), 1, (double[]){0}, 0);
        rapt_module_free(&attention->module);
    }
    expect_no_error();
}

/* With sink ln 6 half goes to it: dO/dsink = −½ · 98/12. Of sigmoid Σ w (1 − w) v. */
Test(head_terms, gradients_of_learned_head_terms_by_hand)
{
    for (int which = 0; which < 4; which++) {
        RAPT_SCOPE;
        rapt_attention *attention = new_dot();
        const bool is_sigmoid = which % 2;
        rapt_tensor *head_terms =
            is_sigmoid ? rapt_attention_learn_sigmoid(attention, 1, 0) : rapt_attention_learn_sinks(attention, 1);
        cr_assert(rapt_module_cast(&attention->module, RAPT_FLOAT64));
        attention->plain = which > 1;
        rapt_fill(head_terms, is_sigmoid ? log(2) : log(6));
        const double *values = is_sigmoid ? (double[]){2, 3, 4} : (double[]){7, 14, 21};
        cr_assert(rapt_backward(pool_three(attention, values, 3)), "%s", rapt_error());
        const double expected = is_sigmoid ? 2. / 9 * 2 + 4. / 25 * 3 + 6. / 49 * 4 : -98. / 24;
        expect_values(is_sigmoid ? "bias" : "sink", rapt_gradient(head_terms), 1, &expected, 1e-14);
        rapt_module_free(&attention->module);
    }
    expect_no_error();
}

/* --- rows that see nothing --- */

static rapt_attention *with_head_terms(rapt_scoring *scoring, bool is_sigmoid, int64_t heads, rapt_dtype dtype)
{
    rapt_attention *attention = rapt_attention_new(scoring, 0);
    rapt_tensor *head_terms =
        is_sigmoid ? rapt_attention_learn_sigmoid(attention, heads, -2) : rapt_attention_learn_sinks(attention, heads);
    cr_assert(head_terms && rapt_fill_normal(head_terms, 0, 1) && rapt_module_cast(&attention->module, dtype), "%s",
              rapt_error());
    return attention;
}

static rapt_scoring *scoring_for(bool additive, int64_t size)
{
    return additive ? rapt_additive_scoring_new(size, size, 20) : rapt_scaled_dot_product_scoring_new();
}

Test(head_terms, a_query_that_sees_nothing_gives_zeros_and_finite_gradients)
{
    for (int which = 0; which < 16; which++) {
        RAPT_SCOPE;
        rapt_seed(2);
        const bool is_sigmoid = which & 1, additive = which & 2, plain = which & 4, few = which & 8;
        rapt_attention *attention = with_head_terms(scoring_for(additive, 4), is_sigmoid, 3, RAPT_FLOAT64);
        attention->plain = plain;
        const int64_t queries = few ? 1 : 9;
        rapt_tensor *q = leaf(RAPT_FLOAT64, RAPT_SHAPE(2, 3, queries, 4)),
                    *k = leaf(RAPT_FLOAT64, RAPT_SHAPE(2, 3, 7, 4)), *v = leaf(RAPT_FLOAT64, RAPT_SHAPE(2, 3, 7, 5));
        rapt_tensor *y = rapt_attention_forward(attention, q, k, v, RAPT_MASK(.valid_lengths = lengths_of(0, 4)));
        cr_assert(y, "%s", rapt_error());
        cr_expect_eq(largest_of(rapt_slice(y, 0, 0, 1, 1)), 0);
        cr_assert(rapt_backward(rapt_sum(rapt_mul(y, y), RAPT_ALL_AXES, false)), "%s", rapt_error());
        rapt_tensor *head_terms = is_sigmoid ? attention->sigmoid_biases : attention->sinks;
        rapt_tensor *all[] = {rapt_gradient(q), rapt_gradient(k), rapt_gradient(v), rapt_gradient(head_terms)};
        for (int i = 0; i < 4; i++) {
            cr_expect(isfinite(largest_of(all[i])), "%d: gradient %d", which, i);
            cr_expect_gt(largest_of(all[i]), 0, "%d: gradient %d", which, i);
            if (i < 3) cr_expect_eq(largest_of(rapt_slice(all[i], 0, 0, 1, 1)), 0, "%d: gradient %d", which, i);
        }
        rapt_module_free(&attention->module);
    }
    expect_no_error();
}

/* --- derivatives --- */

static rapt_tensor *call(rapt_tensor *const *inputs, void *attention)
{
    return rapt_attention_forward(attention, inputs[0], inputs[1], inputs[2], RAPT_MASK(.window = 3, .offset = 1));
}

Test(head_terms, gradcheck_of_both_orders)
{
    for (int which = 0; which < 16; which++) {
        RAPT_SCOPE;
        rapt_seed((uint64_t)which + 3);
        const bool is_sigmoid = which & 1, additive = which & 2, plain = which & 4, second = which & 8;
        rapt_attention *attention = with_head_terms(scoring_for(additive, 3), is_sigmoid, 4, RAPT_FLOAT64);
        attention->plain = plain;
        rapt_tensor *inputs[] = {leaf(RAPT_FLOAT64, RAPT_SHAPE(2, 4, 3, 3)), leaf(RAPT_FLOAT64, RAPT_SHAPE(2, 2, 5, 3)),
                                 leaf(RAPT_FLOAT64, RAPT_SHAPE(2, 2, 5, 2))};
        const rapt_gradcheck_options options = {.context = attention,
                                                .second_order = second,
                                                .random_projection = second};
        rapt_gradcheck_result result = rapt_module_gradcheck(&attention->module, call, 3, inputs, &options);
        cr_expect(result.passed, "%d: %s", which, result.message);
        rapt_module_free(&attention->module);
    }
    expect_no_error();
}

/* Along a tangent of the sinks: what the gradient says of each element. */
Test(head_terms, forward_mode_fits_the_gradient)
{
    for (int which = 0; which < 4; which++) {
        RAPT_SCOPE;
        rapt_seed(5);
        rapt_attention *attention = with_head_terms(scoring_for(which & 2, 3), which & 1, 2, RAPT_FLOAT64);
        rapt_tensor *head_terms = which & 1 ? attention->sigmoid_biases : attention->sinks, *gradient, *moved;
        rapt_tensor *x = leaf(RAPT_FLOAT64, RAPT_SHAPE(1, 2, 6, 3)), *tangent = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2));
        rapt_tensor *y = rapt_sum(rapt_attention_forward(attention, x, x, x, NULL), RAPT_ALL_AXES, false);
        cr_assert(rapt_gradients(1, &y, NULL, 1, &head_terms, &gradient, RAPT_RETAIN_GRAPH), "%s", rapt_error());
        cr_assert(rapt_jvp(1, &y, 1, &head_terms, &tangent, &moved, RAPT_RETAIN_GRAPH), "%s", rapt_error());
        const double expected = rapt_item(rapt_sum(rapt_mul(gradient, tangent), RAPT_ALL_AXES, false));
        cr_expect_float_eq(rapt_item(moved), expected, 1e-12);
        rapt_module_free(&attention->module);
    }
    expect_no_error();
}

/* --- packed batches, threads and memory --- */

Test(head_terms, packed_sequences_give_what_each_gives_alone)
{
    for (int which = 0; which < 4; which++) {
        RAPT_SCOPE;
        rapt_seed(9);
        rapt_attention *attention = with_head_terms(scoring_for(which & 2, 4), which & 1, 2, RAPT_FLOAT64);
        rapt_tensor *head_terms = which & 1 ? attention->sigmoid_biases : attention->sinks;
        rapt_tensor *x = leaf(RAPT_FLOAT64, RAPT_SHAPE(2, 9, 4)), *gradient, *sum = NULL;
        const int64_t ends[] = {0, 3, 9};
        rapt_tensor *starts = rapt_from(RAPT_INT64, RAPT_SHAPE(3), ends);
        rapt_tensor *packed = rapt_attention_forward(attention, x, x, x, RAPT_MASK(.starts = starts, .causal = true));
        cr_assert(packed, "%s", rapt_error());
        rapt_tensor *root = rapt_sum(rapt_mul(packed, packed), RAPT_ALL_AXES, false);
        cr_assert(rapt_gradients(1, &root, NULL, 1, &head_terms, &gradient, 0), "%s", rapt_error());
        for (int i = 0; i < 2; i++) {
            rapt_tensor *part = rapt_unsqueeze(rapt_slice(x, 1, ends[i], ends[i + 1], 1), 0), *of_part;
            rapt_tensor *y = rapt_attention_forward(attention, part, part, part, RAPT_MASK(.causal = true));
            rapt_tensor *same = rapt_slice(packed, 1, ends[i], ends[i + 1], 1);
            cr_expect_leq(largest_of(rapt_sub(rapt_squeeze(y, 0), same)), 1e-14);
            root = rapt_sum(rapt_mul(y, y), RAPT_ALL_AXES, false);
            cr_assert(rapt_gradients(1, &root, NULL, 1, &head_terms, &of_part, 0), "%s", rapt_error());
            sum = sum ? rapt_add(sum, of_part) : of_part;
        }
        cr_expect_leq(largest_of(rapt_sub(sum, gradient)), 1e-13);
        rapt_module_free(&attention->module);
    }
    expect_no_error();
}

static const struct {
    int64_t heads, groups, queries, keys;
} shapes[] = {{1, 1, 1, 3000}, {1, 1, 700, 700}, {6, 2, 90, 130}, {8, 1, 4, 1500}};

/* The outcome, and the gradient of the head_terms. */
static outcome differentiate_all(const subject *s, rapt_tensor **gradient)
{
    outcome o = {{pool(s)}};
    rapt_seed(4);
    rapt_tensor *from = rapt_randn(rapt_get_dtype(o.tensors[0]), rapt_rank(o.tensors[0]), rapt_shape(o.tensors[0]));
    rapt_tensor *head_terms = s->attention->sinks ? s->attention->sinks : s->attention->sigmoid_biases;
    rapt_tensor *inputs[] = {s->queries, s->keys, s->values, head_terms}, *all[4];
    cr_assert(rapt_gradients(1, o.tensors, &from, 4, inputs, all, 0), "%s", rapt_error());
    for (int i = 0; i < 3; i++) o.tensors[1 + i] = all[i];
    *gradient = all[3];
    return o;
}

static subject subject_with_head_terms(int which, rapt_dtype dtype)
{
    const int n = which / 4;
    subject s = new_subject(dtype, shapes[n].heads, shapes[n].groups, shapes[n].queries, shapes[n].keys, 8);
    rapt_module_free(&s.attention->module);
    s.attention = with_head_terms(scoring_for(which & 2, 8), which & 1, shapes[n].heads, dtype);
    return s;
}

Test(head_terms, any_number_of_threads_gives_the_same_bits)
{
    for (int which = 0; which < 16; which++) {
        RAPT_SCOPE;
        subject s = subject_with_head_terms(which, RAPT_FLOAT32);
        rapt_tensor *ones, *many;
        rapt_set_threads(1);
        outcome one = differentiate_all(&s, &ones);
        for (int threads = 2; threads <= 4; threads++) {
            rapt_set_threads(threads);
            outcome other = differentiate_all(&s, &many);
            expect_same_bits("threads", &one, &other);
            cr_expect(same_bits(ones, many), "%d: the gradient of the head_terms has other bits", which);
        }
        rapt_module_free(&s.attention->module);
    }
    expect_no_error();
}

/* Among the shapes are those whose keys are worked on in parts. */
Test(head_terms, parts_of_keys_give_what_the_plain_way_gives)
{
    for (int which = 0; which < 16; which++) {
        RAPT_SCOPE;
        subject s = subject_with_head_terms(which, RAPT_FLOAT64);
        rapt_tensor *gradients[2];
        outcome fused = differentiate_all(&s, &gradients[0]);
        s.attention->plain = true;
        outcome plain = differentiate_all(&s, &gradients[1]);
        expect_near("fused", &plain, &fused, 1e-12);
        const double off = largest_of(rapt_sub(gradients[0], gradients[1])) / largest_of(gradients[1]);
        cr_expect(off <= 1e-12, "%d: the gradient of the head terms is off by %g", which, off);
        rapt_module_free(&s.attention->module);
    }
    expect_no_error();
}

Test(head_terms, nothing_as_large_as_the_scores_is_stored)
{
    for (int which = 0; which < 4; which++) {
        RAPT_SCOPE;
        const int64_t length = which & 2 ? 4096 : 16384;
        subject s = new_subject(RAPT_FLOAT32, 1, 1, length, length, 8);
        rapt_module_free(&s.attention->module);
        s.attention = with_head_terms(scoring_for(which & 2, 8), which & 1, 1, RAPT_FLOAT32);
        s.mask = *RAPT_MASK(.causal = true);
        rapt_set_threads(2);
        expect_less_than_a_byte_for(2, &s);
        rapt_module_free(&s.attention->module);
    }
}

Test(head_terms, without_memory_it_is_an_error_and_nothing_leaks)
{
    for (int which = 8; which < 16; which++) {
        RAPT_SCOPE;
        subject s = subject_with_head_terms(which % 4 + 8, RAPT_FLOAT32);
        s.attention->plain = which > 11;
        rapt_tensor *head_terms = s.attention->sinks ? s.attention->sinks : s.attention->sigmoid_biases;
        expect_errors_without_memory(&s, head_terms);
        rapt_module_free(&s.attention->module);
    }
    expect_no_error();
}
