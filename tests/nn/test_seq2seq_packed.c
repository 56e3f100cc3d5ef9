/* Bahdanau's encoder and decoder on packed sequences give what each sequence gives alone. */
#include "packed_translator.h"

/* The rows of a sequence as a batch of one. */
static rapt_tensor *one(rapt_tensor *rows, rapt_tensor *starts, int b)
{
    const int64_t *start = rapt_data(starts);
    return rapt_unsqueeze(rapt_slice(rows, 0, start[b], start[b + 1], 1), 0);
}

static void forward_alone(const translator *t, rapt_tensor **to)
{
    rapt_tensor *parts[4][most_sequences];
    for (int b = 0; b < t->sequences; b++) {
        rapt_tensor *last,
            *outputs = rapt_bahdanau_encoder_forward(t->encoder, one(t->sources, t->source_starts, b), &last);
        rapt_bahdanau_state state = rapt_bahdanau_decoder_start(t->decoder, outputs, last, NULL);
        rapt_tensor *logits =
            rapt_bahdanau_decoder_forward(t->decoder, one(t->inputs, t->target_starts, b), &state, NULL);
        cr_assert(logits, "%s", rapt_error());
        parts[outputs_of_encoder][b] = rapt_squeeze(outputs, 1);
        parts[state_of_encoder][b] = last;
        parts[logits_of_rows][b] = rapt_squeeze(logits, 0);
        parts[state_of_decoder][b] = state.hidden;
    }
    for (int i = 0; i < 4; i++)
        to[i] = rapt_concat(t->sequences, parts[i], i == state_of_encoder || i == state_of_decoder);
}

/* The decoder on a padded batch, from what the packed encoder gives. With `spoils` NaN is where no sequence is; where
 * there is no padding, no lengths are given. */
static void forward_padded(const translator *t, rapt_tensor **to, bool is_packed, bool spoils)
{
    const double filling = spoils ? (double)NAN : 0;
    rapt_tensor *outputs = to[outputs_of_encoder] =
        rapt_bahdanau_encoder_forward_packed(t->encoder, t->sources, t->source_starts, &to[state_of_encoder]);
    rapt_tensor *memory = rapt_transpose(rapt_unpack(outputs, t->source_starts, spoils ? 95 : 0, filling), 0, 1),
                *lengths = rapt_sub(rapt_slice(t->source_starts, 0, 1, t->sequences + 1, 1),
                                    rapt_slice(t->source_starts, 0, 0, t->sequences, 1));
    if (rapt_size(memory, 0) * t->sequences == rapt_count(t->sources)) lengths = NULL;
    rapt_bahdanau_state state = rapt_bahdanau_decoder_start(t->decoder, memory, to[state_of_encoder], lengths);
    to[logits_of_rows] =
        is_packed ? rapt_bahdanau_decoder_forward_packed(t->decoder, t->inputs, t->target_starts, &state)
                  : rapt_pack(rapt_bahdanau_decoder_forward(t->decoder, rapt_unpack(t->inputs, t->target_starts, 0, 0),
                                                            &state, NULL),
                              t->target_starts);
    to[state_of_decoder] = state.hidden;
    cr_assert(to[logits_of_rows], "%s", rapt_error());
}

/* Of a loss of the first `values` results. */
static void differentiate(const translator *t, outcome *o, int values)
{
    const outcome leaves = leaves_of(t);
    rapt_tensor *loss = loss_of(o->results, values);
    cr_assert(rapt_gradients(1, &loss, NULL, leaves.count, leaves.results, o->results + 4, 0), "%s", rapt_error());
    o->count = 4 + leaves.count;
}

static void expect_same(const char *what, const outcome *a, const outcome *b, int values, double tolerance)
{
    cr_assert_eq(a->count, b->count);
    for (int i = 0; i < a->count; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s, result %d", what, i);
        rapt_tensor *x = a->results[i], *y = b->results[i];
        if (i < values && rapt_get_dtype(x) == RAPT_FLOAT64)
            cr_expect(same_bits(rapt_contiguous(x), rapt_contiguous(y)), "%s: other bits", text);
        expect_values(text, x, rapt_count(y), values_of(y), tolerance);
    }
}

static const setting settings[] = {
    {RAPT_FLOAT64, 6, 6, 2, 0, .plain = false},   {RAPT_FLOAT64, 6, 6, 1, 0, .plain = true},
    {RAPT_FLOAT64, 6, 6, 2, 0, .is_dot = true},   {RAPT_FLOAT64, 6, 6, 5, 0, .plain = false},
    {RAPT_FLOAT64, 70, 20, 2, 0, .plain = false}, {RAPT_FLOAT64, 6, 6, 2, 0, .alike = true},
    {RAPT_FLOAT64, 41, 6, 2, 0, .steep = true},   {RAPT_FLOAT64, 1, 6, 2, 0, .plain = false},
    {RAPT_FLOAT32, 41, 33, 2, 0, .plain = false},
};
enum { setting_count = sizeof settings / sizeof *settings };

Test(seq2seq_packed, like_each_sequence_alone)
{
    for (int i = 0; i < setting_count; i++) {
        RAPT_SCOPE;
        const setting *s = &settings[i];
        const translator t = translator_new(s);
        outcome packed = {0}, alone = {0};
        cr_assert(forward_packed(&t, packed.results), "%s", rapt_error());
        expect_shape(packed.results[outputs_of_encoder], RAPT_SHAPE(rapt_count(t.sources), s->hidden));
        expect_shape(packed.results[state_of_encoder], RAPT_SHAPE(s->layers, s->sequences, s->hidden));
        expect_shape(packed.results[logits_of_rows], RAPT_SHAPE(rapt_count(t.inputs), vocabulary));
        expect_shape(packed.results[state_of_decoder], RAPT_SHAPE(s->layers, s->sequences, s->hidden));
        forward_alone(&t, alone.results);
        differentiate(&t, &packed, 4);
        differentiate(&t, &alone, 4);
        char what[32];
        snprintf(what, sizeof what, "setting %d", i);
        expect_same(what, &packed, &alone, 4, s->dtype == RAPT_FLOAT64 ? 1e-12 : 1e-3);
        translator_free(&t);
        expect_no_error();
    }
}

/* The last states of a padded batch are other ones. */
Test(seq2seq_packed, decoder_like_padded_batch)
{
    for (int i = 0; i < setting_count; i++) {
        RAPT_SCOPE;
        const setting *s = &settings[i];
        const translator t = translator_new(s);
        outcome packed = {0}, padded = {0}, spoiled = {0};
        cr_assert(forward_packed(&t, packed.results), "%s", rapt_error());
        forward_padded(&t, padded.results, false, false);
        forward_padded(&t, spoiled.results, true, true);
        padded.results[state_of_decoder] = packed.results[state_of_decoder];
        differentiate(&t, &packed, 3);
        differentiate(&t, &padded, 3);
        differentiate(&t, &spoiled, 3);
        const double tolerance = s->dtype == RAPT_FLOAT64 ? 1e-12 : 1e-3;
        expect_same("padded", &packed, &padded, 4, tolerance);
        expect_same("spoiled", &packed, &spoiled, 4, tolerance);
        translator_free(&t);
        expect_no_error();
    }
}

/* Sequences of one length are in the order in which they come: then dropout too draws what it draws of a padded batch,
 * here between encoder and decoder, where a single layer has none. */
Test(seq2seq_packed, dropout)
{
    RAPT_SCOPE;
    const setting s = {RAPT_FLOAT64, 6, 6, 1, 0.4, .alike = true}, two = {RAPT_FLOAT64, 6, 6, 2, 0.4, .plain = false};
    const translator t = translator_new(&s), u = translator_new(&two);
    outcome packed = {0}, padded = {0}, again = {0};
    rapt_seed(9);
    cr_assert(forward_packed(&t, packed.results), "%s", rapt_error());
    rapt_seed(9);
    forward_padded(&t, padded.results, false, false);
    differentiate(&t, &packed, 4);
    differentiate(&t, &padded, 4);
    expect_same("padded", &packed, &padded, 4, 1e-12);
    rapt_seed(9);
    cr_assert(forward_packed(&u, packed.results), "%s", rapt_error());
    rapt_seed(9);
    cr_assert(forward_packed(&u, padded.results), "%s", rapt_error());
    cr_assert(forward_packed(&u, again.results), "%s", rapt_error());
    for (int i = 0; i < 4; i++) {
        cr_expect(same_bits(packed.results[i], padded.results[i]), "result %d", i);
        cr_expect(!same_bits(packed.results[i], again.results[i]), "result %d", i);
    }
    translator_free(&t);
    translator_free(&u);
    expect_no_error();
}

Test(seq2seq_packed, loss_is_that_of_its_logits)
{
    RAPT_SCOPE;
    const translator t = translator_new(&settings[0]);
    for (rapt_reduction reduction = RAPT_REDUCE_MEAN; reduction <= RAPT_REDUCE_NONE; reduction++) {
        const rapt_cross_entropy_options o = {.has_ignore_index = true, .ignore_index = 2, .reduction = reduction};
        rapt_tensor *values[4];
        cr_assert(forward_packed(&t, values));
        rapt_bahdanau_state state =
            rapt_bahdanau_decoder_start_packed(t.decoder, values[0], values[1], t.source_starts);
        rapt_tensor *loss =
                        rapt_bahdanau_decoder_loss_packed(t.decoder, t.inputs, t.target_starts, &state, t.labels, &o),
                    *expected = rapt_cross_entropy(values[logits_of_rows], t.labels, &o);
        expect_values("loss", loss, rapt_count(expected), values_of(expected), 1e-14);
        cr_expect(same_bits(state.hidden, values[state_of_decoder]));
    }
    translator_free(&t);
    expect_no_error();
}

/* From the state of packed sources, single steps go on as from any other. */
Test(seq2seq_packed, steps_one_by_one)
{
    RAPT_SCOPE;
    const setting s = {RAPT_FLOAT64, 6, 6, 2, 0, .alike = true};
    const translator t = translator_new(&s);
    rapt_tensor *values[4], *tokens = rapt_unpack(t.inputs, t.target_starts, 0, 0);
    cr_assert(forward_packed(&t, values));
    rapt_tensor *logits = rapt_unpack(values[logits_of_rows], t.target_starts, 0, 0);
    rapt_bahdanau_state state = rapt_bahdanau_decoder_start_packed(t.decoder, values[0], values[1], t.source_starts);
    for (int64_t step = 0; step < 4; step++) {
        rapt_tensor *y =
            rapt_bahdanau_decoder_forward(t.decoder, rapt_slice(tokens, 1, step, step + 1, 1), &state, NULL);
        cr_expect(same_bits(rapt_contiguous(rapt_select(y, 1, 0)), rapt_contiguous(rapt_select(logits, 1, step))));
    }
    cr_expect(same_bits(state.hidden, values[state_of_decoder]));
    translator_free(&t);
    expect_no_error();
}

/* By the definition of the op and by the plain way. */
Test(seq2seq_packed, second_derivatives)
{
    RAPT_SCOPE;
    rapt_tensor *second[2][most_results];
    int count = 0;
    for (int plain = 0; plain < 2; plain++) {
        const setting s = {RAPT_FLOAT64, 3, 3, 1, 0, .plain = plain};
        const translator t = translator_new(&s);
        const outcome leaves = leaves_of(&t);
        rapt_tensor *values[4], *gradients[most_results];
        cr_assert(forward_packed(&t, values), "%s", rapt_error());
        rapt_tensor *loss = loss_of(values, 4);
        cr_assert(rapt_gradients(1, &loss, NULL, leaves.count, leaves.results, gradients, RAPT_CREATE_GRAPH), "%s",
                  rapt_error());
        rapt_tensor *again = loss_of(gradients, leaves.count);
        cr_assert(rapt_gradients(1, &again, NULL, leaves.count, leaves.results, second[plain], 0), "%s", rapt_error());
        count = leaves.count;
        translator_free(&t);
    }
    for (int i = 0; i < count; i++)
        expect_values("second derivative", second[0][i], rapt_count(second[1][i]), values_of(second[1][i]), 1e-11);
    expect_no_error();
}

static rapt_tensor *checked_loss(rapt_tensor *const *inputs, void *context)
{
    (void)inputs;
    rapt_tensor *values[4];
    return forward_packed(context, values) ? loss_of(values, 4) : NULL;
}

Test(seq2seq_packed, gradients)
{
    for (int plain = 0; plain < 2; plain++) {
        RAPT_SCOPE;
        const setting s = {RAPT_FLOAT64, 3, 3, 2, 0, .plain = plain};
        translator t = translator_new(&s);
        const rapt_gradcheck_options options = {.context = &t, .second_order = plain};
        rapt_module *const modules[] = {&t.encoder->module, &t.decoder->module};
        for (int i = 0; i < 2; i++) {
            const rapt_gradcheck_result result = rapt_module_gradcheck(modules[i], checked_loss, 0, NULL, &options);
            cr_expect(result.passed, "plain %d, module %d: %s", plain, i, result.message);
        }
        translator_free(&t);
    }
    expect_no_error();
}

/* Enough sequences for several tasks. */
Test(seq2seq_packed, same_bits_on_any_number_of_threads)
{
    RAPT_SCOPE;
    const setting s = {RAPT_FLOAT32, 67, 48, 2, 0.3, .plain = false};
    const translator t = translator_new(&s);
    outcome first = {0};
    for (int threads = 1; threads <= 8; threads++) {
        outcome now = {0};
        cr_assert(rapt_set_threads(threads));
        rapt_seed(3);
        cr_assert(forward_packed(&t, now.results), "%s", rapt_error());
        differentiate(&t, &now, 4);
        if (threads == 1) first = now;
        for (int i = 0; i < now.count; i++)
            cr_expect(same_bits(rapt_contiguous(now.results[i]), rapt_contiguous(first.results[i])),
                      "%d threads, result %d", threads, i);
    }
    translator_free(&t);
    expect_no_error();
}
