/* Whole training steps: a steady one takes nothing from the system, and what was trained is freed. */
#include <criterion/criterion.h>

#include <rapt.h>

struct translator {
    rapt_bahdanau_encoder *encoder;
    rapt_bahdanau_decoder *decoder;
    rapt_optimizer *optimizers[2];
    rapt_tensor *sources, *targets, *lengths;
};

enum { words = 11, batch = 8, length = 6 };

static struct translator make(void)
{
    const rapt_bahdanau_config config = {.vocabulary = words,
                                         .embedding = 12,
                                         .hidden = 16,
                                         .layers = 2,
                                         .dropout = 0.2};
    struct translator t = {.encoder = rapt_bahdanau_encoder_new(&config),
                           .decoder = rapt_bahdanau_decoder_new(&config)};
    t.optimizers[0] = rapt_adam_new(&t.encoder->module, NULL);
    t.optimizers[1] = rapt_adam_new(&t.decoder->module, NULL);
    t.sources = rapt_randint(0, words, RAPT_SHAPE(batch, length));
    t.targets = rapt_randint(0, words, RAPT_SHAPE(batch, length));
    t.lengths = rapt_randint(1, length + 1, RAPT_SHAPE(batch));
    return t;
}

static void step(struct translator *t)
{
    RAPT_SCOPE;
    rapt_tensor *state = NULL, *outputs = rapt_bahdanau_encoder_forward(t->encoder, t->sources, &state);
    rapt_bahdanau_state start = rapt_bahdanau_decoder_start(t->decoder, outputs, state, t->lengths);
    rapt_tensor *logits = rapt_bahdanau_decoder_forward(t->decoder, t->targets, &start, NULL);
    cr_assert(rapt_backward(rapt_cross_entropy(logits, t->targets, NULL)), "%s", rapt_error());
    for (int i = 0; i < 2; i++) {
        cr_assert(rapt_clip_gradient_norm(t->optimizers[i], 1, NULL));
        cr_assert(rapt_optimizer_step(t->optimizers[i]));
    }
}

static void end(struct translator *t)
{
    for (int i = 0; i < 2; i++) rapt_optimizer_free(t->optimizers[i]);
    rapt_module_free(&t->encoder->module);
    rapt_module_free(&t->decoder->module);
}

Test(training, a_steady_step_allocates_nothing_from_the_system)
{
    RAPT_SCOPE;
    struct translator t = make();
    for (int i = 0; i < 3; i++) step(&t);
    rapt_memory_statistics before = rapt_memory_get_statistics();
    for (int i = 0; i < 50; i++) step(&t);
    rapt_memory_statistics after = rapt_memory_get_statistics();
    cr_assert_eq(after.system_allocations, before.system_allocations);
    cr_assert_eq(after.live_bytes, before.live_bytes);
    end(&t);
}

Test(training, everything_is_freed)
{
    int64_t before = rapt_memory_get_statistics().live_bytes;
    {
        RAPT_SCOPE;
        struct translator t = make();
        for (int i = 0; i < 3; i++) step(&t);
        end(&t);
    }
    cr_assert_eq(rapt_memory_get_statistics().live_bytes, before);
    cr_assert_null(rapt_error());
}
