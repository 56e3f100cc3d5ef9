/* Bahdanau's decoder in one op against its steps one by one, which are what runs when its attention keeps weights. */
#include "modules.h"

#include <rapt/profile.h>
#include <rapt/seq2seq.h>

#include "../text_stream.h"
#include "tensor/core.h"

enum { most_results = 40 };

/* What a decoder gives: outputs, last states, and the gradients of everything that has one. */
typedef struct outcome {
    int count;
    rapt_tensor *results[most_results];
} outcome;

typedef struct setting {
    rapt_dtype dtype;
    int64_t batch, keys, steps, hidden;
    int layers;
    double dropout, scale;    /* scale: of the projected keys */
    bool has_lengths, spoils; /* spoils: padding becomes NaN */
    int root;                 /* 0: outputs and last states, 1: outputs, 2: last states, 3: outputs and weights, 4:
                               * weights */
} setting;

static bool add_leaf(const char *name, rapt_tensor *tensor, void *context)
{
    (void)name;
    outcome *leaves = context;
    cr_assert_lt(leaves->count, most_results);
    leaves->results[leaves->count++] = tensor;
    return true;
}

static rapt_tensor *weighted(rapt_tensor *x)
{
    rapt_tensor *factors = rapt_arange(x->dtype, 0, (double)x->count, 1);
    return rapt_sum(rapt_mul(x, rapt_cos(rapt_reshape(factors, x->rank, x->shape))), RAPT_ALL_AXES, false);
}

static rapt_tensor *lengths_for(const setting *s)
{
    if (!s->has_lengths) return NULL;
    rapt_tensor *lengths = rapt_zeros(RAPT_INT64, RAPT_SHAPE(s->batch));
    for (int64_t i = 0; i < s->batch; i++) ((int64_t *)rapt_data(lengths))[i] = (3 * i + 2) % (s->keys + 1);
    return lengths;
}

static outcome run(const setting *s, bool by_step)
{
    rapt_seed(7);
    const rapt_bahdanau_config config = {.vocabulary = 11,
                                         .embedding = 5,
                                         .hidden = s->hidden,
                                         .layers = s->layers,
                                         .dropout = s->dropout};
    rapt_bahdanau_decoder *decoder = rapt_bahdanau_decoder_new(&config);
    cr_assert(decoder && rapt_module_cast(&decoder->module, s->dtype), "%s", rapt_error());
    decoder->attention->keep_weights = by_step;
    outcome leaves = {0}, o = {0};
    rapt_tensor *memory = rapt_require_gradient(rapt_randn(s->dtype, RAPT_SHAPE(s->keys, s->batch, s->hidden)));
    rapt_tensor *hidden = rapt_require_gradient(rapt_randn(s->dtype, RAPT_SHAPE(s->layers, s->batch, s->hidden))),
                *lengths = lengths_for(s), *weights = NULL;
    if (s->spoils)
        for (int64_t i = 0; i < s->batch; i++)
            for (int64_t j = (3 * i + 2) % (s->keys + 1); j < s->keys; j++)
                rapt_fill(rapt_select(rapt_select(rapt_detach(memory), 0, j), 0, i), (double)NAN);
    rapt_tensor *key = rapt_module_find(&decoder->module, "attention.W_k.weight");
    cr_assert(rapt_copy(key, rapt_mul_scalar(rapt_detach(key), s->scale)), "%s", rapt_error());
    add_leaf("", memory, &leaves);
    add_leaf("", hidden, &leaves);
    rapt_module_visit(&decoder->module, RAPT_PARAMETERS, add_leaf, &leaves);
    rapt_tensor *tokens = rapt_randint(0, 11, RAPT_SHAPE(s->batch, s->steps));
    rapt_bahdanau_state state = rapt_bahdanau_decoder_start(decoder, memory, hidden, lengths);
    FILE *stream = open_text();
    rapt_trace(stream);
    rapt_tensor *outputs = rapt_bahdanau_decoder_forward(decoder, tokens, &state, s->root >= 3 ? &weights : NULL);
    rapt_trace(NULL);
    char *trace = close_text(stream);
    cr_assert_not_null(outputs, "%s", rapt_error());
    cr_expect_eq(strstr(trace, "bahdanau_steps: ") != NULL, !by_step && s->layers <= 4, "%s", trace);
    free(trace);
    rapt_tensor *root = s->root == 1   ? weighted(outputs)
                        : s->root == 2 ? weighted(state.hidden)
                        : s->root == 3 ? rapt_add(weighted(outputs), weighted(weights))
                        : s->root == 4 ? weighted(weights)
                                       : rapt_add(weighted(outputs), weighted(state.hidden));
    o.results[o.count++] = rapt_contiguous(rapt_detach(outputs));
    o.results[o.count++] = rapt_contiguous(rapt_detach(state.hidden));
    cr_assert(rapt_gradients(1, &root, NULL, leaves.count, leaves.results, o.results + 2, 0), "%s", rapt_error());
    o.count += leaves.count;
    if (weights) o.results[o.count++] = rapt_contiguous(rapt_detach(weights));
    rapt_module_free(&decoder->module);
    return o;
}

static void expect_same_as_steps(const setting *s)
{
    RAPT_SCOPE;
    const double tolerance = s->dtype == RAPT_FLOAT64 ? 1e-11 : 2e-3;
    const outcome actual = run(s, false), expected = run(s, true);
    for (int i = 0; i < actual.count; i++) {
        rapt_tensor *a = actual.results[i], *b = expected.results[i];
        cr_assert_eq(!a, !b, "result %d", i);
        if (!a) continue;
        cr_assert_eq(a->count, b->count);
        char what[32];
        snprintf(what, sizeof what, "result %d", i);
        expect_values(what, a, a->count, values_of(b), tolerance);
    }
    expect_no_error();
}

Test(bahdanau_steps, equal_single_steps)
{
    const setting settings[] = {
        {RAPT_FLOAT64, 3, 5, 4, 6, 2, 0, 1, .has_lengths = true},
        {RAPT_FLOAT64, 3, 5, 4, 6, 2, 0, 1, .has_lengths = true, .spoils = true},
        {RAPT_FLOAT64, 1, 3, 1, 4, 1, 0, 1, .root = 0},
        {RAPT_FLOAT64, 2, 3, 3, 4, 4, 0, 1, .root = 1},
        {RAPT_FLOAT64, 2, 3, 3, 4, 5, 0, 1, .root = 2},
        {RAPT_FLOAT64, 2, 3, 3, 4, 3, 0, 1, .root = 2},
        {RAPT_FLOAT64, 37, 4, 3, 70, 2, 0, 1, .has_lengths = true},
        {RAPT_FLOAT64, 3, 140, 2, 6, 1, 0, 1, .has_lengths = true},
        {RAPT_FLOAT64, 3, 5, 4, 6, 2, 0, 1000, .has_lengths = true}, /* exponentials would overflow */
        {RAPT_FLOAT64, 3, 5, 4, 6, 1, 0.4, 1, .has_lengths = true},  /* a single layer draws as its steps do */
        {RAPT_FLOAT64, 3, 5, 4, 6, 1, 1, 1, .root = 0},
        {RAPT_FLOAT32, 40, 5, 4, 33, 2, 0, 1, .has_lengths = true},
        {RAPT_FLOAT32, 150, 5, 3, 136, 2, 0, 1, .has_lengths = true}, /* of limbs, where there are any */
        {RAPT_FLOAT64, 3, 5, 4, 6, 2, 0, 1, .has_lengths = true, .spoils = true, .root = 3},
        {RAPT_FLOAT64, 3, 140, 2, 6, 1, 0.4, 1, .has_lengths = true, .root = 3},
        {RAPT_FLOAT64, 37, 4, 3, 70, 2, 0, 1, .root = 4},
        {RAPT_FLOAT32, 40, 5, 4, 33, 2, 0, 1, .has_lengths = true, .root = 3},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) expect_same_as_steps(&settings[i]);
}

/* --- what is left to the steps --- */

static void set_plain(rapt_bahdanau_decoder *decoder)
{
    decoder->attention->plain = true;
}

static void set_plain_recurrence(rapt_bahdanau_decoder *decoder)
{
    decoder->rnn->recurrent.plain = true;
}

static void set_cap(rapt_bahdanau_decoder *decoder)
{
    cr_assert(rapt_attention_modify(decoder->attention, "cap", rapt_soft_cap_new(0.5)));
}

static void set_sinks(rapt_bahdanau_decoder *decoder)
{
    cr_assert(rapt_fill(rapt_attention_learn_sinks(decoder->attention, 1), 0.7));
}

static void set_sparsemax(rapt_bahdanau_decoder *decoder)
{
    decoder->attention->normalizer = rapt_masked_sparsemax;
}

/* What the op does not do goes step by step, with or without weights that are kept. */
Test(bahdanau_steps, what_the_op_does_not_do)
{
    void (*const set[])(rapt_bahdanau_decoder *) = {set_plain, set_plain_recurrence, set_cap, set_sinks, set_sparsemax};
    enum { batch = 2, keys = 3, steps = 4, hidden = 6 };
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        RAPT_SCOPE;
        rapt_seed(7);
        const rapt_bahdanau_config config = {.vocabulary = 11, .embedding = 5, .hidden = hidden, .layers = 1};
        rapt_bahdanau_decoder *decoder = rapt_bahdanau_decoder_new(&config);
        cr_assert(decoder && rapt_module_cast(&decoder->module, RAPT_FLOAT64), "%s", rapt_error());
        set[i](decoder);
        rapt_module_cast(&decoder->module, RAPT_FLOAT64);
        rapt_tensor *memory = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(keys, batch, hidden));
        rapt_tensor *first = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(1, batch, hidden));
        rapt_tensor *tokens = rapt_randint(0, 11, RAPT_SHAPE(batch, steps)), *outputs[2];
        for (int by_step = 0; by_step < 2; by_step++) {
            decoder->attention->keep_weights = by_step;
            rapt_bahdanau_state state = rapt_bahdanau_decoder_start(decoder, memory, first, NULL);
            FILE *stream = open_text();
            rapt_trace(stream);
            outputs[by_step] = rapt_contiguous(rapt_bahdanau_decoder_forward(decoder, tokens, &state, NULL));
            rapt_trace(NULL);
            char *trace = close_text(stream);
            cr_assert_not_null(outputs[by_step], "%s", rapt_error());
            cr_expect_null(strstr(trace, "bahdanau_steps: "), "way %zu: %s", i, trace);
            free(trace);
        }
        expect_values("outputs", outputs[0], outputs[0]->count, values_of(outputs[1]), 1e-11);
        rapt_module_free(&decoder->module);
    }
    expect_no_error();
}

/* Half of the units of the first layer are dropped, and the others doubled: on average nothing changes. */
Test(bahdanau_steps, dropout_between_layers)
{
    RAPT_SCOPE;
    const setting s = {RAPT_FLOAT64, 8, 5, 3, 6, 2, 0.5, 1, .has_lengths = false};
    const outcome one = run(&s, false), two = run(&s, false);
    for (int i = 0; i < one.count; i++)
        cr_expect(same_bits(rapt_contiguous(one.results[i]), rapt_contiguous(two.results[i])), "result %d", i);
    const setting without = {RAPT_FLOAT64, 8, 5, 3, 6, 2, 0, 1, .has_lengths = false};
    cr_expect(!same_bits(one.results[0], run(&without, false).results[0]));
    expect_no_error();
}

Test(bahdanau_steps, threads_do_not_change_a_bit)
{
    RAPT_SCOPE;
    const setting s = {RAPT_FLOAT32, 67, 6, 5, 48, 2, 0.3, 1, .has_lengths = true, .root = 3};
    cr_assert(rapt_set_threads(1));
    const outcome expected = run(&s, false);
    for (int threads = 2; threads <= 4; threads++) {
        cr_assert(rapt_set_threads(threads));
        const outcome actual = run(&s, false);
        for (int i = 0; i < actual.count; i++)
            cr_expect(same_bits(rapt_contiguous(actual.results[i]), rapt_contiguous(expected.results[i])),
                      "%d threads, result %d", threads, i);
    }
    expect_no_error();
}

/* Wanting one weight's gradient alone changes nothing of it. */
Test(bahdanau_steps, gradients_that_nobody_wants)
{
    RAPT_SCOPE;
    rapt_seed(3);
    const rapt_bahdanau_config config = {.vocabulary = 7, .embedding = 3, .hidden = 4, .layers = 2};
    rapt_bahdanau_decoder *decoder = rapt_bahdanau_decoder_new(&config);
    rapt_tensor *memory = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(3, 2, 4)),
                *tokens = rapt_zeros(RAPT_INT64, RAPT_SHAPE(2, 3)),
                *hidden = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2, 2, 4));
    for (int i = 0; i < 5; i++) {
        const char *const names[] = {"rnn.weight_hh_l1", "rnn.weight_ih_l0", "rnn.bias_ih_l1", "attention.W_q.weight",
                                     "attention.w_v.weight"};
        rapt_tensor *wanted = rapt_module_find(&decoder->module, names[i]), *alone = NULL, *gradients[most_results];
        outcome leaves = {0};
        add_leaf("", wanted, &leaves);
        rapt_module_visit(&decoder->module, RAPT_PARAMETERS, add_leaf, &leaves);
        for (int count = 1; count <= leaves.count; count += leaves.count - 1) {
            rapt_bahdanau_state state = rapt_bahdanau_decoder_start(decoder, memory, hidden, NULL);
            rapt_tensor *root = weighted(rapt_bahdanau_decoder_forward(decoder, tokens, &state, NULL));
            cr_assert(rapt_gradients(1, &root, NULL, count, leaves.results, gradients, 0), "%s", rapt_error());
            if (count == 1) alone = gradients[0];
        }
        cr_expect(same_bits(alone, gradients[0]), "%s", names[i]);
    }
    rapt_module_free(&decoder->module);
    expect_no_error();
}

Test(bahdanau_steps, without_memory)
{
    RAPT_SCOPE;
    const rapt_bahdanau_config config = {.vocabulary = 7, .embedding = 3, .hidden = 4, .layers = 2, .dropout = 0.5};
    rapt_bahdanau_decoder *decoder = rapt_bahdanau_decoder_new(&config);
    rapt_tensor *memory = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 9, 4))),
                *tokens = rapt_zeros(RAPT_INT64, RAPT_SHAPE(9, 3)),
                *hidden = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2, 9, 4)), *gradient, *weights;
    const int64_t before = live_bytes();
    int64_t failures = 0;
    for (bool done = false; !done; failures++) {
        rapt_scope scope = rapt_scope_begin();
        rapt_memory_fail_after(failures);
        rapt_bahdanau_state state = rapt_bahdanau_decoder_start(decoder, memory, hidden, NULL);
        rapt_tensor *outputs = state.keys ? rapt_bahdanau_decoder_forward(decoder, tokens, &state, &weights) : NULL;
        rapt_tensor *root = outputs ? rapt_add(rapt_sum(outputs, RAPT_ALL_AXES, false), weighted(weights)) : NULL;
        done = root && rapt_gradients(1, &root, NULL, 1, &memory, &gradient, 0);
        rapt_memory_fail_after(-1);
        if (!done) expect_error(RAPT_ERROR_MEMORY, "no memory");
        rapt_scope_end(scope);
        cr_assert(live_bytes() == before, "bytes leak after failure %lld", (long long)failures);
    }
    expect_no_error();
    cr_expect_gt(failures, 40);
    rapt_module_free(&decoder->module);
}

/* Where words are few, the encoder projects each once: outputs and gradients are those of the embeddings' way, whatever
 * stands in the row of a word that does not occur. */
Test(bahdanau_steps, encoder_of_few_words)
{
    RAPT_SCOPE;
    rapt_seed(8);
    const rapt_bahdanau_config config = {.vocabulary = 5, .embedding = 4, .hidden = 6, .layers = 2};
    rapt_bahdanau_encoder *encoder = rapt_bahdanau_encoder_new(&config);
    cr_assert(encoder && rapt_module_cast(&encoder->module, RAPT_FLOAT64), "%s", rapt_error());
    rapt_tensor *tokens = rapt_randint(0, 4, RAPT_SHAPE(7, 3)), *gradients[2][most_results], *outputs[2];
    outcome leaves = {0};
    cr_assert(rapt_fill(rapt_select(rapt_detach(encoder->embedding->weight), 0, 4), (double)NAN));
    rapt_module_visit(&encoder->module, RAPT_PARAMETERS, add_leaf, &leaves);
    for (int by_hand = 0; by_hand < 2; by_hand++) {
        rapt_tensor *embedded = rapt_embedding_forward(encoder->embedding, rapt_transpose(tokens, 0, 1));
        outputs[by_hand] = by_hand ? rapt_gru_forward(encoder->rnn, embedded, NULL, NULL)
                                   : rapt_bahdanau_encoder_forward(encoder, tokens, NULL);
        rapt_tensor *root = weighted(outputs[by_hand]);
        cr_assert(rapt_gradients(1, &root, NULL, leaves.count, leaves.results, gradients[by_hand], 0), "%s",
                  rapt_error());
    }
    cr_expect(same_bits(outputs[0], outputs[1]));
    for (int i = 0; i < leaves.count; i++)
        expect_values("gradient", gradients[0][i], gradients[0][i]->count, values_of(gradients[1][i]), 1e-12);
    rapt_module_free(&encoder->module);
    expect_no_error();
}

/* Fields set by hand give the error that they give in rapt_attention_forward; without a scoring function it crashed. */
Test(bahdanau_steps, attention_is_checked)
{
    RAPT_SCOPE;
    const double bad[] = {1.5, -0.5, NAN};
    const rapt_bahdanau_config config = {.vocabulary = 7, .embedding = 3, .hidden = 4, .layers = 1};
    rapt_bahdanau_decoder *decoder = rapt_bahdanau_decoder_new(&config);
    rapt_tensor *tokens = rapt_zeros(RAPT_INT64, RAPT_SHAPE(2, 3)), *rows = rapt_zeros(RAPT_INT64, RAPT_SHAPE(6)),
                *starts = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){0, 3, 6}),
                *memory = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(5, 2, 4)),
                *hidden = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(1, 2, 4)),
                *packed = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(6, 4));
    rapt_bahdanau_state state = rapt_bahdanau_decoder_start(decoder, memory, hidden, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        decoder->attention->dropout = bad[i];
        cr_expect_null(rapt_bahdanau_decoder_forward(decoder, tokens, &state, NULL));
        expect_error(RAPT_ERROR_VALUE, "Attention: dropout");
        cr_expect_null(rapt_bahdanau_decoder_loss_packed(decoder, rows, starts, &state, rows, NULL));
        expect_error(RAPT_ERROR_VALUE, "Attention: dropout");
    }
    decoder->attention->dropout = 0;
    rapt_scoring *scoring = decoder->attention->scoring;
    decoder->attention->scoring = NULL;
    cr_expect_null(rapt_bahdanau_decoder_forward(decoder, tokens, &state, NULL));
    expect_error(RAPT_ERROR_NULL, "the scoring function is NULL");
    cr_expect_null(rapt_bahdanau_decoder_start_packed(decoder, packed, hidden, starts).keys);
    expect_error(RAPT_ERROR_NULL, "the scoring function is NULL");
    decoder->attention->scoring = scoring;
    cr_expect(rapt_bahdanau_decoder_forward(decoder, tokens, &state, NULL), "%s", rapt_error());
    rapt_module_free(&decoder->module);
    expect_no_error();
}
