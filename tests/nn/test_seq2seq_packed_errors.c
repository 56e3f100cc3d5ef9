/* Bahdanau's encoder and decoder on packed sequences: bad input and missing memory give errors. */
#include "packed_translator.h"

Test(seq2seq_packed_errors, errors)
{
    RAPT_SCOPE;
    const setting s = {RAPT_FLOAT64, 6, 6, 2, 0, .plain = false};
    const translator t = translator_new(&s);
    rapt_bahdanau_decoder *d = t.decoder;
    rapt_tensor *empty =
                    rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){0, rapt_count(t.sources), rapt_count(t.sources)}),
                *none = rapt_zeros(RAPT_INT64, RAPT_SHAPE(1)), *no_words = rapt_zeros(RAPT_INT64, RAPT_SHAPE(0)), *last,
                *values[4];
    cr_expect_null(rapt_bahdanau_encoder_forward_packed(NULL, t.sources, t.source_starts, &last));
    expect_error(RAPT_ERROR_NULL, "the encoder is NULL");
    cr_expect_null(rapt_bahdanau_encoder_forward_packed(t.encoder, NULL, t.source_starts, &last));
    expect_error(RAPT_ERROR_NULL, "the tokens are NULL");
    cr_expect_null(rapt_bahdanau_encoder_forward_packed(t.encoder, t.sources, NULL, &last));
    expect_error(RAPT_ERROR_NULL, "starts");
    cr_expect_null(
        rapt_bahdanau_encoder_forward_packed(t.encoder, rapt_unsqueeze(t.sources, 0), t.source_starts, NULL));
    expect_error(RAPT_ERROR_SHAPE, "packed tokens (rows) expected, not");
    cr_expect_null(rapt_bahdanau_encoder_forward_packed(t.encoder, t.sources, empty, &last));
    expect_error(RAPT_ERROR_VALUE, "sequence 1 has no rows");
    cr_expect_null(rapt_bahdanau_encoder_forward_packed(t.encoder, no_words, none, &last));
    expect_error(RAPT_ERROR_VALUE, "no sequences");
    cr_expect_null(
        rapt_bahdanau_encoder_forward_packed(t.encoder, rapt_slice(t.sources, 0, 0, 3, 1), t.source_starts, &last));
    expect_error(RAPT_ERROR_SHAPE, "3 rows");
    cr_assert(forward_packed(&t, values));
    cr_expect_null(rapt_bahdanau_decoder_start_packed(NULL, values[0], values[1], t.source_starts).keys);
    expect_error(RAPT_ERROR_NULL, "the decoder is NULL");
    cr_expect_null(rapt_bahdanau_decoder_start_packed(d, values[0], values[1], NULL).keys);
    expect_error(RAPT_ERROR_NULL, "the starts are NULL");
    cr_expect_null(rapt_bahdanau_decoder_start_packed(d, NULL, values[1], t.source_starts).keys);
    expect_error(RAPT_ERROR_NULL, "the encoder's output is NULL");
    cr_expect_null(rapt_bahdanau_decoder_start_packed(d, values[0], values[1], none).keys);
    expect_error(RAPT_ERROR_SHAPE, "rows (0, ...) expected");
    rapt_bahdanau_state state = rapt_bahdanau_decoder_start_packed(d, values[0], values[1], t.source_starts),
                        nothing = {0};
    rapt_tensor *hidden = state.hidden;
    cr_expect_null(rapt_bahdanau_decoder_forward_packed(d, t.inputs, t.target_starts, &nothing));
    expect_error(RAPT_ERROR_NULL, "the state is NULL");
    cr_expect_null(rapt_bahdanau_decoder_forward_packed(NULL, t.inputs, t.target_starts, &state));
    expect_error(RAPT_ERROR_NULL, "the decoder is NULL");
    cr_expect_null(rapt_bahdanau_decoder_forward_packed(d, rapt_slice(t.inputs, 0, 0, 3, 1),
                                                        rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){0, 3}),
                                                        &state));
    expect_error(RAPT_ERROR_SHAPE, "1 packed sequences, but the state is of 6");
    cr_expect_null(rapt_bahdanau_decoder_loss_packed(d, t.inputs, t.target_starts, &state, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "the targets are NULL");
    cr_expect_eq(state.hidden, hidden, "the state stays where it was");
    cr_expect_null(rapt_bahdanau_decoder_loss_packed(d, t.inputs, t.target_starts, &state,
                                                     rapt_slice(t.labels, 0, 0, 3, 1), NULL));
    expect_error(RAPT_ERROR_SHAPE, "targets (23) expected");
    cr_expect_null(rapt_bahdanau_decoder_loss_packed(d, t.inputs, t.target_starts, &state,
                                                     rapt_full(RAPT_INT64, RAPT_SHAPE(23), 1000), NULL));
    expect_error(RAPT_ERROR_VALUE, "target 1000");
    cr_expect_eq(state.hidden, hidden, "an error leaves the state as it was");
    translator_free(&t);
}

/* The allocator fails at every place of forward and backward in turn: an error, never a crash or a leak. */
Test(seq2seq_packed_errors, no_memory)
{
    const int64_t before = live_bytes();
    for (int plain = 0; plain < 2; plain++) {
        RAPT_SCOPE;
        const setting s = {RAPT_FLOAT64, 3, 3, 1, 0.2, .plain = plain};
        const translator t = translator_new(&s);
        const outcome leaves = leaves_of(&t);
        bool done = false;
        for (int64_t failures = 0; !done; failures++) {
            RAPT_SCOPE;
            rapt_tensor *values[4], *gradients[most_results];
            rapt_memory_fail_after(failures);
            rapt_tensor *loss = forward_packed(&t, values) ? loss_of(values, 4) : NULL;
            done = loss && rapt_gradients(1, &loss, NULL, leaves.count, leaves.results, gradients, 0);
            rapt_memory_fail_after(-1);
            if (!done) expect_error(RAPT_ERROR_MEMORY, "no memory");
            cr_assert_lt(failures, 20000);
        }
        translator_free(&t);
    }
    cr_expect_eq(live_bytes(), before);
    expect_no_error();
}
