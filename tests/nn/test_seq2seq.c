/* Bahdanau's encoder and decoder: shapes, sizes, steps, weights, and that they learn. */
#include "modules.h"

#include <rapt/optim.h>

/* The shape test of the literature: 4 sentences of 7 tokens. */
static const rapt_bahdanau_config config = {.vocabulary = 10, .embedding = 8, .hidden = 16, .layers = 2};
enum { batch = 4, length = 7, vocabulary = 10, embedding = 8, hidden = 16, layers = 2 };

typedef struct translator {
    rapt_bahdanau_encoder *encoder;
    rapt_bahdanau_decoder *decoder;
} translator;

static translator translator_new(const rapt_bahdanau_config *c, rapt_dtype dtype)
{
    translator t = {rapt_bahdanau_encoder_new(c), rapt_bahdanau_decoder_new(c)};
    cr_assert(t.encoder && t.decoder, "%s", rapt_error());
    cr_assert(rapt_module_cast(&t.encoder->module, dtype) && rapt_module_cast(&t.decoder->module, dtype));
    return t;
}

static void translator_free(const translator *t)
{
    rapt_module_free(&t->encoder->module);
    rapt_module_free(&t->decoder->module);
}

static rapt_bahdanau_state encode(const translator *t, rapt_tensor *tokens, rapt_tensor *lengths)
{
    rapt_tensor *state, *outputs = rapt_bahdanau_encoder_forward(t->encoder, tokens, &state);
    rapt_bahdanau_state start = rapt_bahdanau_decoder_start(t->decoder, outputs, state, lengths);
    cr_assert_not_null(start.keys, "%s", rapt_error());
    return start;
}

static rapt_tensor *random_tokens(void)
{
    return rapt_randint(0, vocabulary, RAPT_SHAPE(batch, length));
}

Test(seq2seq, shapes)
{
    RAPT_SCOPE;
    translator t = translator_new(&config, RAPT_FLOAT32);
    rapt_tensor *tokens = rapt_zeros(RAPT_INT64, RAPT_SHAPE(batch, length)), *state, *weights;
    rapt_tensor *outputs = rapt_bahdanau_encoder_forward(t.encoder, tokens, &state);
    expect_shape(outputs, RAPT_SHAPE(length, batch, hidden));
    expect_shape(state, RAPT_SHAPE(layers, batch, hidden));
    rapt_bahdanau_state start = rapt_bahdanau_decoder_start(t.decoder, outputs, state, NULL);
    rapt_tensor *logits = rapt_bahdanau_decoder_forward(t.decoder, tokens, &start, &weights);
    expect_shape(logits, RAPT_SHAPE(batch, length, vocabulary));
    expect_shape(weights, RAPT_SHAPE(batch, length, length));
    expect_shape(start.values, RAPT_SHAPE(batch, length, hidden));
    expect_shape(start.keys, RAPT_SHAPE(batch, length, hidden));
    expect_shape(start.hidden, RAPT_SHAPE(layers, batch, hidden));
    expect_shape(rapt_bahdanau_encoder_forward(t.encoder, tokens, NULL), RAPT_SHAPE(length, batch, hidden));
    translator_free(&t);
    expect_no_error();
}

Test(seq2seq, parameter_counts_and_initial_values)
{
    rapt_seed(1);
    rapt_bahdanau_config c = {.vocabulary = 194, .embedding = 256, .hidden = 256, .layers = 2, .dropout = 0.2};
    rapt_bahdanau_encoder *encoder = rapt_bahdanau_encoder_new(&c);
    c.vocabulary = 214;
    rapt_bahdanau_decoder *decoder = rapt_bahdanau_decoder_new(&c);
    int64_t of_encoder = rapt_module_parameter_count(&encoder->module),
            of_decoder = rapt_module_parameter_count(&decoder->module);
    cr_expect_eq(of_encoder, 839168);
    cr_expect_eq(rapt_module_parameter_count(&decoder->attention->module), 131328);
    cr_expect_eq(of_decoder, 1227222);
    cr_expect_eq(of_encoder + of_decoder, 2066390);

    expect_parameter(decoder, "rnn.weight_ih_l0", RAPT_SHAPE(768, 512));
    expect_parameter(decoder, "attention.W_q.weight", RAPT_SHAPE(256, 256));
    expect_parameter(encoder, "rnn.bias_hh_l1", RAPT_SHAPE(768));
    /* GRU weights Xavier-uniform as a whole, the rest as the layers themselves start */
    expect_uniform(rapt_module_find(&decoder->module, "rnn.weight_ih_l0"), sqrt(6.0 / (768 + 512)));
    expect_uniform(rapt_module_find(&encoder->module, "rnn.weight_hh_l1"), sqrt(6.0 / (768 + 256)));
    expect_uniform(rapt_module_find(&encoder->module, "rnn.bias_hh_l1"), 1.0 / 16);
    expect_uniform(rapt_module_find(&decoder->module, "attention.W_k.weight"), 1.0 / 16);
    expect_uniform(rapt_module_find(&decoder->module, "dense.weight"), 1.0 / 16);
    expect_moments(rapt_module_find(&encoder->module, "embedding.weight"), 0, 1, 3);
    rapt_module_free(&encoder->module);
    rapt_module_free(&decoder->module);
    expect_no_error();
}

Test(seq2seq, all_steps_at_once_equal_single_steps)
{
    RAPT_SCOPE;
    rapt_seed(2);
    translator t = translator_new(&config, RAPT_FLOAT64);
    rapt_tensor *tokens = random_tokens(), *lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(batch), (int64_t[]){3, 7, 1, 5});
    rapt_bahdanau_state start = encode(&t, tokens, lengths), at_once = start, single = start;
    rapt_tensor *weights, *logits = rapt_bahdanau_decoder_forward(t.decoder, tokens, &at_once, &weights);
    for (int64_t step = 0; step < length; step++) {
        rapt_tensor *token = rapt_slice(tokens, 1, step, step + 1, 1), *step_weights;
        rapt_tensor *y = rapt_bahdanau_decoder_forward(t.decoder, token, &single, &step_weights);
        expect_shape(y, RAPT_SHAPE(batch, 1, vocabulary));
        expect_values("logits", y, batch * vocabulary, values_of(rapt_select(logits, 1, step)), 1e-13);
        expect_values("weights", step_weights, batch * length, values_of(rapt_select(weights, 1, step)), 1e-13);
    }
    expect_values("state", single.hidden, layers * batch * hidden, values_of(at_once.hidden), 1e-13);
    cr_expect(!same_bits(at_once.hidden, start.hidden) && single.keys == start.keys, "only the hidden state moves on");
    translator_free(&t);
    expect_no_error();
}

Test(seq2seq, weights_respect_the_lengths)
{
    RAPT_SCOPE;
    rapt_seed(3);
    translator t = translator_new(&config, RAPT_FLOAT32);
    const int64_t valid[batch] = {3, 7, 0, 5};
    rapt_bahdanau_state state = encode(&t, random_tokens(), rapt_from(RAPT_INT64, RAPT_SHAPE(batch), valid));
    rapt_tensor *weights;
    cr_assert(rapt_bahdanau_decoder_forward(t.decoder, random_tokens(), &state, &weights), "%s", rapt_error());
    const double *w = values_of(weights);
    for (int i = 0; i < batch * length * length; i++)
        cr_expect((w[i] > 0) == (i % length < valid[i / length / length]), "weight %d is %g", i, w[i]);
    cr_expect(rapt_requires_gradient(weights));
    cr_expect_not(t.decoder->attention->keep_weights, "as before");
    translator_free(&t);
    expect_no_error();
}

/* One step put together by hand: the last layer's state asks, and the context stands before the embedding. */
Test(seq2seq, one_step_by_hand)
{
    RAPT_SCOPE;
    rapt_seed(4);
    translator t = translator_new(&config, RAPT_FLOAT64);
    rapt_tensor *source = random_tokens(), *token = rapt_slice(source, 1, 2, 3, 1),
                *lengths = rapt_full(RAPT_INT64, RAPT_SHAPE(batch), 4);
    rapt_tensor *state, *outputs = rapt_bahdanau_encoder_forward(t.encoder, source, &state), *state_by_hand, *next;
    rapt_tensor *embedded = rapt_embedding_forward(t.encoder->embedding, rapt_transpose(source, 0, 1));
    rapt_tensor *by_hand = rapt_gru_forward(t.encoder->rnn, embedded, NULL, &state_by_hand);
    expect_values("encoder", outputs, length * batch * hidden, values_of(by_hand), 0);
    expect_values("its state", state, layers * batch * hidden, values_of(state_by_hand), 0);

    rapt_tensor *memory = rapt_transpose(outputs, 0, 1), *query = rapt_unsqueeze(rapt_select(state, 0, layers - 1), 1);
    rapt_tensor *context =
        rapt_attention_forward(t.decoder->attention, query, memory, memory, RAPT_MASK(.valid_lengths = lengths));
    rapt_tensor *parts[] = {context, rapt_embedding_forward(t.decoder->embedding, token)};
    rapt_tensor *input = rapt_transpose(rapt_concat(2, parts, 2), 0, 1);
    rapt_tensor *expected =
        rapt_linear_forward(t.decoder->dense, rapt_gru_forward(t.decoder->rnn, input, state, &next));
    rapt_bahdanau_state start = encode(&t, source, lengths);
    expect_values("decoder", rapt_bahdanau_decoder_forward(t.decoder, token, &start, NULL), batch * vocabulary,
                  values_of(expected), 1e-13);
    expect_values("state", start.hidden, layers * batch * hidden, values_of(next), 1e-13);
    translator_free(&t);
    expect_no_error();
}

Test(seq2seq, loss_is_that_of_its_logits)
{
    RAPT_SCOPE;
    rapt_seed(5);
    translator t = translator_new(&config, RAPT_FLOAT64);
    rapt_tensor *tokens = random_tokens(), *targets = random_tokens(),
                *lengths = rapt_full(RAPT_INT64, RAPT_SHAPE(batch), 5);
    for (rapt_reduction reduction = RAPT_REDUCE_MEAN; reduction <= RAPT_REDUCE_NONE; reduction++) {
        const rapt_cross_entropy_options o = {.has_ignore_index = true, .ignore_index = 2, .reduction = reduction};
        rapt_bahdanau_state states[] = {encode(&t, tokens, lengths), encode(&t, tokens, lengths)};
        rapt_tensor *loss = rapt_bahdanau_decoder_loss(t.decoder, tokens, &states[0], targets, &o);
        rapt_tensor *logits = rapt_bahdanau_decoder_forward(t.decoder, tokens, &states[1], NULL);
        rapt_tensor *expected = rapt_cross_entropy(logits, targets, &o);
        expect_values("loss", loss, rapt_count(expected), values_of(expected), 1e-14);
        expect_values("state", states[0].hidden, rapt_count(states[1].hidden), values_of(states[1].hidden), 0);
    }
    cr_expect_null(rapt_bahdanau_decoder_loss(NULL, tokens, NULL, targets, NULL));
    expect_error(RAPT_ERROR_NULL, "decoder");
    translator_free(&t);
}

Test(seq2seq, gradients_reach_every_parameter)
{
    RAPT_SCOPE;
    rapt_seed(5);
    translator t = translator_new(&config, RAPT_FLOAT64);
    rapt_tensor *tokens = random_tokens();
    rapt_bahdanau_state state = encode(&t, tokens, rapt_full(RAPT_INT64, RAPT_SHAPE(batch), 5));
    cr_assert(rapt_backward(
        rapt_cross_entropy(rapt_bahdanau_decoder_forward(t.decoder, tokens, &state, NULL), tokens, NULL)));
    const rapt_module *modules[] = {&t.encoder->module, &t.decoder->module};
    const char *const names[2][4] = {{"embedding.weight", "rnn.weight_ih_l0", "rnn.weight_hh_l1", "rnn.bias_hh_l1"},
                                     {"attention.W_k.weight", "attention.w_v.weight", "embedding.weight",
                                      "dense.bias"}};
    for (int i = 0; i < 8; i++) {
        rapt_tensor *gradient = rapt_gradient(rapt_module_find(modules[i / 4], names[i / 4][i % 4]));
        cr_assert_not_null(gradient, "%s", names[i / 4][i % 4]);
        cr_expect_gt(rapt_item(rapt_sum(rapt_abs(gradient), RAPT_ALL_AXES, false)), 1e-6, "%s", names[i / 4][i % 4]);
    }
    translator_free(&t);
    expect_no_error();
}

Test(seq2seq, errors)
{
    RAPT_SCOPE;
    rapt_bahdanau_config fits = {.vocabulary = 10, .embedding = 8, .hidden = 16, .layers = 2};
    rapt_bahdanau_config bad[] = {fits, fits, fits, fits, fits}, drops = fits;
    bad[0].vocabulary = 0;
    bad[1].embedding = 0;
    bad[2].hidden = -1;
    bad[3].layers = 0;
    bad[4].embedding = bad[4].hidden = INT64_MAX;
    drops.dropout = 2;
    for (int i = 0; i < 5; i++) {
        cr_expect_null(rapt_bahdanau_encoder_new(&bad[i]));
        expect_error(RAPT_ERROR_VALUE, "BahdanauEncoder: vocabulary");
        cr_expect_null(rapt_bahdanau_decoder_new(&bad[i]));
        expect_error(RAPT_ERROR_VALUE, "BahdanauDecoder: vocabulary");
    }
    cr_expect_null(rapt_bahdanau_encoder_new(&drops));
    expect_error(RAPT_ERROR_VALUE, "dropout");
    cr_expect_null(rapt_bahdanau_decoder_new(NULL));
    expect_error(RAPT_ERROR_NULL, "configuration");

    translator t = translator_new(&config, RAPT_FLOAT32);
    rapt_tensor *tokens = random_tokens(), *state, *outputs = rapt_bahdanau_encoder_forward(t.encoder, tokens, &state);
    cr_expect_null(rapt_bahdanau_encoder_forward(NULL, tokens, NULL));
    expect_error(RAPT_ERROR_NULL, "the encoder");
    cr_expect_null(rapt_bahdanau_encoder_forward(t.encoder, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "the tokens");
    cr_expect_null(rapt_bahdanau_encoder_forward(t.encoder, rapt_zeros(RAPT_INT64, RAPT_SHAPE(3)), NULL));
    expect_error(RAPT_ERROR_SHAPE, "BahdanauEncoder: tokens (B, T) with T of 1 or more expected, not int64 [3]");
    cr_expect_null(rapt_bahdanau_encoder_forward(t.encoder, rapt_full(RAPT_INT64, RAPT_SHAPE(2, 2), 10), NULL));
    expect_error(RAPT_ERROR_VALUE, "10");
    cr_expect_null(rapt_bahdanau_encoder_forward(t.encoder, rapt_zeros(RAPT_INT64, RAPT_SHAPE(2, 0)), NULL));
    expect_error(RAPT_ERROR_SHAPE, "BahdanauEncoder: tokens (B, T) with T of 1 or more expected, not int64 [2, 0]");
    cr_expect_null(rapt_bahdanau_decoder_start(NULL, outputs, state, NULL).keys);
    expect_error(RAPT_ERROR_NULL, "the decoder");
    cr_expect_null(rapt_bahdanau_decoder_start(t.decoder, NULL, state, NULL).keys);
    expect_error(RAPT_ERROR_NULL, "output");
    cr_expect_null(rapt_bahdanau_decoder_start(t.decoder, outputs, NULL, NULL).keys);
    expect_error(RAPT_ERROR_NULL, "state");
    cr_expect_null(rapt_bahdanau_decoder_start(t.decoder, rapt_select(outputs, 0, 0), state, NULL).keys);
    expect_error(RAPT_ERROR_SHAPE, "(B, length, size)");

    rapt_bahdanau_state good = encode(&t, tokens, NULL), none = {0};
    cr_expect_null(rapt_bahdanau_decoder_forward(NULL, tokens, &good, NULL));
    expect_error(RAPT_ERROR_NULL, "the decoder");
    cr_expect_null(rapt_bahdanau_decoder_forward(t.decoder, tokens, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "the state");
    cr_expect_null(rapt_bahdanau_decoder_forward(t.decoder, tokens, &none, NULL));
    expect_error(RAPT_ERROR_NULL, "the state");
    cr_expect_null(rapt_bahdanau_decoder_forward(t.decoder, NULL, &good, NULL));
    expect_error(RAPT_ERROR_NULL, "the tokens");
    cr_expect_null(rapt_bahdanau_decoder_forward(t.decoder, rapt_zeros(RAPT_INT64, RAPT_SHAPE(batch, 0)), &good, NULL));
    expect_error(RAPT_ERROR_SHAPE, "BahdanauDecoder: tokens (B, T) with T of 1 or more expected, not int64 [4, 0]");
    cr_expect_null(
        rapt_bahdanau_decoder_forward(t.decoder, rapt_zeros(RAPT_INT64, RAPT_SHAPE(batch + 1, 2)), &good, NULL));
    expect_error(RAPT_ERROR_SHAPE, "5");
    cr_expect_null(
        rapt_bahdanau_decoder_forward(t.decoder, rapt_full(RAPT_INT64, RAPT_SHAPE(batch, 2), 10), &good, NULL));
    expect_error(RAPT_ERROR_VALUE, "10");
    rapt_tensor *before = good.hidden, *no_class = rapt_full(RAPT_INT64, RAPT_SHAPE(batch, rapt_size(tokens, 1)), 10);
    cr_expect_null(rapt_bahdanau_decoder_loss(t.decoder, tokens, &good, no_class, NULL));
    expect_error(RAPT_ERROR_VALUE, "target 10");
    cr_expect_null(rapt_bahdanau_decoder_loss(t.decoder, tokens, &good, rapt_slice(no_class, 1, 0, 1, 1), NULL));
    expect_error(RAPT_ERROR_SHAPE, "targets");
    cr_expect_eq(good.hidden, before, "an error leaves the state as it was");
    good.valid_lengths = rapt_ones(RAPT_INT64, RAPT_SHAPE(batch + 1));
    cr_expect_null(rapt_bahdanau_decoder_forward(t.decoder, tokens, &good, NULL));
    expect_error(RAPT_ERROR_SHAPE, "valid lengths");
    translator_free(&t);
}

/* Copying: the target is the source, the decoder's input the same behind a first token 0. */
static rapt_tensor *copy_loss(const translator *t, rapt_tensor *source)
{
    int64_t items = rapt_size(source, 0), steps = rapt_size(source, 1);
    rapt_tensor *first = rapt_zeros(RAPT_INT64, RAPT_SHAPE(items, 1)),
                *parts[] = {first, rapt_slice(source, 1, 0, steps - 1, 1)};
    rapt_bahdanau_state state = encode(t, source, rapt_full(RAPT_INT64, RAPT_SHAPE(items), (double)steps));
    return rapt_bahdanau_decoder_loss(t->decoder, rapt_concat(2, parts, 1), &state, source, NULL);
}

Test(seq2seq, learns_to_copy)
{
    rapt_seed(6);
    const rapt_bahdanau_config c = {.vocabulary = 7, .embedding = 12, .hidden = 24, .layers = 1};
    translator t = translator_new(&c, RAPT_FLOAT32);
    static const rapt_module_class kind = {.name = "Translator"};
    rapt_module *both = rapt_module_new(sizeof *both, &kind);
    rapt_module_add_child(both, "encoder", &t.encoder->module);
    rapt_module_add_child(both, "decoder", &t.decoder->module);
    rapt_optimizer *adam = rapt_adam_new(both, &(rapt_adam_config){.learning_rate = 0.02});
    double first = 0, last = 0;
    for (int step = 0; step < 1000; step++) {
        RAPT_SCOPE;
        rapt_tensor *loss = copy_loss(&t, rapt_randint(1, 7, RAPT_SHAPE(32, 4)));
        cr_assert(rapt_backward(loss) && rapt_clip_gradient_norm(adam, 1, NULL) && rapt_optimizer_step(adam), "%s",
                  rapt_error());
        last = rapt_item(loss);
        if (step == 0) first = last;
    }
    cr_expect(first > 1.5 && last < 0.005, "the loss went from %g to %g", first, last);
    rapt_optimizer_free(adam);
    rapt_module_free(both);
    expect_no_error();
}

/* Each block alone, and all from one on, fail in turn: logits, weights and the next state come together, or none. */
Test(seq2seq, without_memory_the_state_stays)
{
    RAPT_SCOPE;
    rapt_bahdanau_decoder *decoder = rapt_bahdanau_decoder_new(&config);
    rapt_tensor *memory = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, batch, hidden)),
                *last = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(layers, batch, hidden)),
                *tokens = rapt_zeros(RAPT_INT64, RAPT_SHAPE(batch, length)), *weights;
    for (int way = 0; way < 4; way++) {
        decoder->attention->plain = way % 2;
        for (int64_t block = 0, failed = 1; failed; block++) {
            RAPT_SCOPE;
            rapt_bahdanau_state state = rapt_bahdanau_decoder_start(decoder, memory, last, NULL);
            cr_assert(state.keys && block < 10000);
            if (way < 2)
                rapt_memory_fail_once(block);
            else
                rapt_memory_fail_after(block);
            rapt_tensor *logits = rapt_bahdanau_decoder_forward(decoder, tokens, &state, &weights);
            failed = rapt_memory_fail_after(-1) <= 0;
            cr_expect(!logits == !weights && !logits == (state.hidden == last) && !logits == (rapt_error() != NULL),
                      "way %d, block %lld", way, (long long)block);
            rapt_clear_error();
        }
    }
    rapt_module_free(&decoder->module);
}
