/* GRU and LSTM on bad input and without memory. */
#include "modules.h"

Test(recurrent_errors, errors)
{
    RAPT_SCOPE;
    const struct {
        int64_t in, hidden;
        int layers;
        double dropout;
    } bad[] = {{-1, 2, 1, 0}, {0, 2, 1, 0},    {2, 0, 1, 0},   {2, -2, 1, 0},
               {2, 2, 0, 0},  {2, 2, 2000, 0}, {2, 2, 1, 1.5}, {2, 2, 1, (double)NAN}};
    for (int i = 0; i < 8; i++) {
        cr_expect_null(rapt_gru_new(bad[i].in, bad[i].hidden, bad[i].layers, bad[i].dropout));
        expect_error(RAPT_ERROR_VALUE, "GRU: input size");
        cr_expect_null(rapt_lstm_new(bad[i].in, bad[i].hidden, bad[i].layers, bad[i].dropout));
        expect_error(RAPT_ERROR_VALUE, "LSTM: input size");
    }
    cr_expect_null(rapt_gru_new(2, INT64_MAX / 2, 1, 0));
    expect_error(RAPT_ERROR_VALUE, "hidden size");
    cr_expect_null(rapt_gru_new(2, (int64_t)1 << 40, 1, 0));
    expect_error(RAPT_ERROR_MEMORY, sizeof(size_t) == 8 ? "no memory for 26388279066688 bytes" : TOO_MANY_BYTES);

    rapt_gru *gru = rapt_gru_new(3, 4, 2, 0);
    rapt_lstm *lstm = rapt_lstm_new(3, 4, 2, 0);
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(5, 2, 3)),
                *state = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 2, 4));
    for (int plain = 0; plain < 2; plain++) {
        gru->recurrent.plain = lstm->recurrent.plain = plain;
        rapt_tensor *wrong[] = {rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(5, 2, 4)), rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3)),
                                rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(0, 2, 3))};
        for (int i = 0; i < 3; i++) {
            cr_expect_null(rapt_gru_forward(gru, wrong[i], NULL, NULL));
            expect_error(RAPT_ERROR_SHAPE, "(T, B, 3)");
        }
        rapt_tensor *wrong_states[] = {rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 2, 4)),
                                       rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 4)),
                                       rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 2, 3)),
                                       rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 4))};
        for (int i = 0; i < 4; i++) {
            cr_expect_null(rapt_gru_forward(gru, x, wrong_states[i], NULL));
            expect_error(RAPT_ERROR_SHAPE, "state [2, 2, 4] expected");
            cr_expect_null(rapt_lstm_forward(lstm, x, state, wrong_states[i], NULL, NULL));
            expect_error(RAPT_ERROR_SHAPE, "state [2, 2, 4] expected");
        }
        cr_expect_null(rapt_gru_forward(gru, rapt_cast(x, RAPT_FLOAT64), NULL, NULL));
        expect_error(RAPT_ERROR_DTYPE, "float64");
        cr_expect_null(rapt_gru_forward(gru, x, rapt_cast(state, RAPT_FLOAT64), NULL));
        expect_error(RAPT_ERROR_DTYPE, "float64");
        cr_expect_null(rapt_gru_forward(gru, NULL, NULL, NULL));
        expect_error(RAPT_ERROR_NULL, "GRU: the input");
        cr_expect_null(rapt_lstm_forward(lstm, x, state, NULL, NULL, NULL));
        expect_error(RAPT_ERROR_NULL, "both or neither");
    }
    cr_expect_null(rapt_gru_forward(NULL, x, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "GRU: the layer");
    cr_expect_null(rapt_lstm_forward(NULL, x, NULL, NULL, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "LSTM: the layer");
    rapt_module_free(&gru->recurrent.module);
    rapt_module_free(&lstm->recurrent.module);
}

Test(recurrent_errors, forward_and_backward_without_memory)
{
    for (int plain = 0; plain < 2; plain++) {
        RAPT_SCOPE;
        rapt_lstm *lstm = rapt_lstm_new(2, 3, 2, 0.5);
        lstm->recurrent.plain = plain;
        rapt_tensor *leaves[] = {lstm->recurrent.layer[0].weight_ih, lstm->recurrent.layer[1].bias_hh}, *final[2],
                    *gradients[2];
        rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 4, 2)),
                    *state = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 4, 3));
        const int64_t before = live_bytes();
        int64_t failures = 0;
        for (bool done = false; !done; failures++) {
            rapt_scope scope = rapt_scope_begin();
            rapt_memory_fail_after(failures);
            rapt_tensor *y = rapt_lstm_forward(lstm, x, state, state, &final[0], &final[1]);
            if (y) expect_no_error();
            rapt_tensor *root = rapt_sum(y, RAPT_ALL_AXES, false);
            done = root && rapt_gradients(1, &root, NULL, 2, leaves, gradients, 0);
            rapt_memory_fail_after(-1);
            if (!done) expect_error(RAPT_ERROR_MEMORY, "no memory");
            rapt_scope_end(scope);
            cr_assert(live_bytes() == before, "bytes leak after failure %lld", (long long)failures);
        }
        expect_no_error();
        cr_expect_gt(failures, 20);
        rapt_module_free(&lstm->recurrent.module);
    }
}

/* The result is NULL, and so is what comes besides it, whatever was there. */
#define NOTHING_COMES(call)                                                                                            \
    do {                                                                                                               \
        rapt_tensor *garbage = (rapt_tensor *)(uintptr_t)1, *out = garbage, *out2 = garbage;                           \
        cr_expect_null(call, "%s", #call);                                                                             \
        cr_expect_null(out, "%s", #call);                                                                              \
        cr_expect(out2 == garbage || out2 == NULL, "%s", #call);                                                       \
        if (strstr(#call, "&out2")) cr_expect_null(out2, "%s", #call);                                                 \
        cr_expect_not_null(rapt_error(), "%s", #call);                                                                 \
        rapt_clear_error();                                                                                            \
    } while (0)

Test(recurrent_errors, nothing_comes_out_of_an_error)
{
    RAPT_SCOPE;
    rapt_gru *gru = rapt_gru_new(4, 2, 1, 0);
    rapt_lstm *lstm = rapt_lstm_new(4, 2, 1, 0);
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 2, 4)), *bad = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 2, 5)),
                *rows = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 4)),
                *state = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 2, 2)),
                *lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){3, 9}),
                *starts = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){0, 1, 3});
    NOTHING_COMES(rapt_gru_forward(NULL, x, NULL, &out));
    NOTHING_COMES(rapt_gru_forward(gru, NULL, NULL, &out));
    NOTHING_COMES(rapt_gru_forward(gru, bad, NULL, &out));
    NOTHING_COMES(rapt_gru_forward(gru, x, bad, &out));
    NOTHING_COMES(rapt_gru_forward(gru, rapt_cast(x, RAPT_FLOAT64), NULL, &out));
    NOTHING_COMES(rapt_gru_forward_padded(NULL, x, lengths, NULL, &out));
    NOTHING_COMES(rapt_gru_forward_padded(gru, bad, lengths, NULL, &out));
    NOTHING_COMES(rapt_gru_forward_padded(gru, x, NULL, NULL, &out));
    NOTHING_COMES(rapt_gru_forward_padded(gru, x, lengths, NULL, &out));
    NOTHING_COMES(rapt_gru_forward_packed(NULL, rows, starts, NULL, &out));
    NOTHING_COMES(rapt_gru_forward_packed(gru, x, starts, NULL, &out));
    NOTHING_COMES(rapt_gru_forward_packed(gru, rows, NULL, NULL, &out));
    NOTHING_COMES(rapt_gru_forward_packed(gru, rows, starts, bad, &out));
    NOTHING_COMES(rapt_lstm_forward(NULL, x, NULL, NULL, &out, &out2));
    NOTHING_COMES(rapt_lstm_forward(lstm, bad, NULL, NULL, &out, &out2));
    NOTHING_COMES(rapt_lstm_forward(lstm, x, state, NULL, &out, &out2));
    NOTHING_COMES(rapt_lstm_forward(lstm, x, state, bad, &out, &out2));
    NOTHING_COMES(rapt_lstm_forward_padded(NULL, x, lengths, NULL, NULL, &out, &out2));
    NOTHING_COMES(rapt_lstm_forward_padded(lstm, x, NULL, NULL, NULL, &out, &out2));
    NOTHING_COMES(rapt_lstm_forward_packed(NULL, rows, starts, NULL, NULL, &out, &out2));
    NOTHING_COMES(rapt_lstm_forward_packed(lstm, rows, NULL, NULL, NULL, &out, &out2));
    rapt_module_free(&gru->recurrent.module);
    rapt_module_free(&lstm->recurrent.module);
}

Test(recurrent_errors, nothing_comes_out_of_a_translators_error)
{
    RAPT_SCOPE;
    const rapt_bahdanau_config c = {.vocabulary = 5, .embedding = 3, .hidden = 4, .layers = 1};
    rapt_bahdanau_encoder *encoder = rapt_bahdanau_encoder_new(&c);
    rapt_bahdanau_decoder *decoder = rapt_bahdanau_decoder_new(&c);
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3)), *final,
                *tokens = rapt_from(RAPT_INT64, RAPT_SHAPE(2, 3), (int64_t[]){1, 2, 1, 1, 2, 3}),
                *bad = rapt_full(RAPT_INT64, RAPT_SHAPE(2, 3), 9);
    NOTHING_COMES(rapt_bahdanau_encoder_forward(NULL, tokens, &out));
    NOTHING_COMES(rapt_bahdanau_encoder_forward(encoder, NULL, &out));
    NOTHING_COMES(rapt_bahdanau_encoder_forward(encoder, x, &out));
    NOTHING_COMES(rapt_bahdanau_encoder_forward(encoder, bad, &out));
    NOTHING_COMES(rapt_bahdanau_encoder_forward_packed(NULL, tokens, NULL, &out));
    NOTHING_COMES(rapt_bahdanau_encoder_forward_packed(encoder, tokens, NULL, &out));
    rapt_tensor *outputs = rapt_bahdanau_encoder_forward(encoder, tokens, &final);
    rapt_bahdanau_state state = rapt_bahdanau_decoder_start(decoder, outputs, final, NULL);
    expect_no_error();
    NOTHING_COMES(rapt_bahdanau_decoder_forward(NULL, tokens, &state, &out));
    NOTHING_COMES(rapt_bahdanau_decoder_forward(decoder, NULL, &state, &out));
    NOTHING_COMES(rapt_bahdanau_decoder_forward(decoder, tokens, NULL, &out));
    NOTHING_COMES(rapt_bahdanau_decoder_forward(decoder, x, &state, &out));
    NOTHING_COMES(rapt_bahdanau_decoder_forward(decoder, bad, &state, &out));
    rapt_module_free(&encoder->module);
    rapt_module_free(&decoder->module);
}
