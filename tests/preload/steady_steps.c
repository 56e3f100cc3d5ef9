/* A steady step asks the system for nothing: training of every kind of model that we ship, and generation with a cache,
 * by whatever library. Runs with failing_malloc preloaded, which counts. Usage: steady_steps THREADS */
#include <stdio.h>
#include <stdlib.h>

#include <rapt.h>

#include "requests.h"

enum { warm_up = 5, steady = 20, vocabulary = 50, batch = 6, length = 9 };

typedef struct work {
    const char *name;
    void (*start)(void);
    void (*run)(void);
    void (*end)(void);
} work;

static rapt_module *modules[4]; /* of the model at work */
static rapt_optimizer *optimizer;

static bool add_parameter(const char *name, rapt_tensor *tensor, void *number)
{
    char full[256];
    snprintf(full, sizeof full, "%d.%s", *(const int *)number, name);
    return rapt_optimizer_add(optimizer, full, tensor);
}

static void start_training(int count, rapt_module *const *parts)
{
    optimizer = rapt_adamw_new(NULL, NULL);
    for (int i = 0; i < count; i++) {
        modules[i] = parts[i];
        rapt_module_visit(parts[i], RAPT_PARAMETERS, add_parameter, &i);
    }
}

static void end_training(void)
{
    rapt_optimizer_free(optimizer);
    for (int i = 0; i < 4; i++) {
        if (modules[i]) rapt_module_free(modules[i]);
        modules[i] = NULL;
    }
}

static void train(rapt_tensor *loss)
{
    rapt_backward(loss);
    rapt_clip_gradient_norm(optimizer, 1, NULL);
    rapt_optimizer_step(optimizer);
}

static rapt_tensor *draw_words(void)
{
    return rapt_randint(0, vocabulary, RAPT_SHAPE(batch, length));
}

/* The same in every step: what is packed or cut to the longest has the sizes that it had. */
static rapt_tensor *make_lengths(void)
{
    return rapt_arange(RAPT_INT64, length - batch + 1, length + 1, 1);
}

static const rapt_cross_entropy_options without_padding = {.has_ignore_index = true};

/* --- exclusive or --- */

static void start_loop(void)
{
    rapt_module *layers[] = {(rapt_module *)rapt_linear_new(2, 8, RAPT_BIAS), rapt_activation_new("Tanh", rapt_tanh),
                             (rapt_module *)rapt_linear_new(8, 1, RAPT_BIAS)};
    start_training(1, &(rapt_module *){(rapt_module *)rapt_sequential_new(3, layers)});
}

static void run_loop(void)
{
    rapt_tensor *x = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(4, 2), (float[]){0, 0, 0, 1, 1, 0, 1, 1});
    rapt_tensor *target = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(4, 1), (float[]){0, 1, 1, 0});
    train(rapt_mse_loss(rapt_sequential_forward((rapt_sequential *)modules[0], x), target, RAPT_REDUCE_MEAN));
}

/* --- Bahdanau's model --- */

static void start_bahdanau(void)
{
    const rapt_bahdanau_config config = {.vocabulary = vocabulary,
                                         .embedding = 24,
                                         .hidden = 40,
                                         .layers = 2,
                                         .dropout = 0.2};
    rapt_module *parts[] = {(rapt_module *)rapt_bahdanau_encoder_new(&config),
                            (rapt_module *)rapt_bahdanau_decoder_new(&config)};
    start_training(2, parts);
}

static void run_bahdanau(void)
{
    rapt_bahdanau_decoder *decoder = (rapt_bahdanau_decoder *)modules[1];
    rapt_tensor *state = NULL;
    rapt_tensor *outputs = rapt_bahdanau_encoder_forward((rapt_bahdanau_encoder *)modules[0], draw_words(), &state);
    rapt_bahdanau_state at = rapt_bahdanau_decoder_start(decoder, outputs, state, make_lengths());
    train(rapt_bahdanau_decoder_loss(decoder, draw_words(), &at, draw_words(), &without_padding));
}

static void run_packed_bahdanau(void)
{
    rapt_bahdanau_decoder *decoder = (rapt_bahdanau_decoder *)modules[1];
    rapt_tensor *starts = rapt_packing_starts(make_lengths()), *words = rapt_pack(draw_words(), starts), *state = NULL;
    rapt_tensor *outputs =
        rapt_bahdanau_encoder_forward_packed((rapt_bahdanau_encoder *)modules[0], words, starts, &state);
    rapt_bahdanau_state at = rapt_bahdanau_decoder_start_packed(decoder, outputs, state, starts);
    train(rapt_bahdanau_decoder_loss_packed(decoder, words, starts, &at, words, NULL));
}

/* --- a Transformer --- */

static void start_transformer(void)
{
    const rapt_transformer_config config = {.hidden = 48,
                                            .heads = 4,
                                            .feed_forward = 80,
                                            .encoder_layers = 2,
                                            .decoder_layers = 2,
                                            .dropout = 0.1,
                                            .attention_dropout = 0.1};
    rapt_module *parts[] = {(rapt_module *)rapt_transformer_new(&config),
                            (rapt_module *)rapt_embedding_new(vocabulary, config.hidden),
                            (rapt_module *)rapt_sinusoidal_positions_new(config.hidden, 0.1),
                            (rapt_module *)rapt_linear_new(config.hidden, vocabulary, RAPT_BIAS)};
    start_training(4, parts);
}

static rapt_tensor *embed_drawn(void)
{
    rapt_tensor *x = rapt_embedding_forward((rapt_embedding *)modules[1], draw_words());
    return rapt_sinusoidal_positions_forward((rapt_sinusoidal_positions *)modules[2], x, 0);
}

static void run_transformer(void)
{
    const rapt_mask padding = {.valid_lengths = make_lengths()};
    rapt_tensor *y = rapt_transformer_forward((rapt_transformer *)modules[0], embed_drawn(), embed_drawn(), &padding,
                                              RAPT_MASK(.causal = true), &padding);
    rapt_tensor *logits = rapt_linear_forward((rapt_linear *)modules[3], y);
    train(rapt_cross_entropy(logits, draw_words(), &without_padding));
}

/* --- a GPT --- */

static void start_gpt(void)
{
    const rapt_gpt_config config = {.vocabulary = vocabulary,
                                    .context = 3 * length,
                                    .hidden = 48,
                                    .layers = 2,
                                    .heads = 4,
                                    .dropout = 0.1,
                                    .bias = true,
                                    .kind = RAPT_FEED_FORWARD_GELU};
    start_training(1, &(rapt_module *){(rapt_module *)rapt_gpt_new(&config)});
}

static void run_gpt(void)
{
    train(rapt_gpt_loss((rapt_gpt *)modules[0], draw_words(), draw_words(), &without_padding));
}

/* --- generation --- */

static rapt_gpt_cache *cache;

static void start_generation(void)
{
    start_gpt();
    rapt_module_train(modules[0], false);
    cache = rapt_gpt_cache_new((rapt_gpt *)modules[0]);
}

static void generate(void)
{
    const rapt_token_model model = rapt_gpt_token_model(cache);
    rapt_gpt_cache_clear(cache);
    rapt_generate(&model, draw_words(), &(rapt_generation){.length = length, .temperature = 0.9, .top_k = 10});
    rapt_gpt_cache_clear(cache);
    rapt_generate(&model, draw_words(), &(rapt_generation){.length = length, .beams = 3});
}

static void end_generation(void)
{
    rapt_gpt_cache_free(cache);
    end_training();
}

/* --- all of them --- */

static const work works[] = {
    {"exclusive or", start_loop, run_loop, end_training},
    {"Bahdanau", start_bahdanau, run_bahdanau, end_training},
    {"packed Bahdanau", start_bahdanau, run_packed_bahdanau, end_training},
    {"Transformer", start_transformer, run_transformer, end_training},
    {"GPT", start_gpt, run_gpt, end_training},
    {"generation", start_generation, generate, end_generation},
};

static void run_some(const work *w, int count)
{
    for (int i = 0; i < count; i++) {
        RAPT_SCOPE;
        w->run();
    }
}

int main(int count, char **arguments)
{
    const int threads = count == 2 ? atoi(arguments[1]) : 0;
    if (threads < 1 || !preloaded_requests) {
        fprintf(stderr, "usage: LD_PRELOAD=libfailing_malloc.so %s THREADS\n", arguments[0]);
        return 2;
    }
    rapt_on_error(rapt_exit_on_error);
    rapt_set_threads(threads);
    int failures = 0;
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        RAPT_SCOPE;
        works[i].start();
        run_some(&works[i], warm_up);
        const long long before = preloaded_requests();
        run_some(&works[i], steady);
        const long long requests = preloaded_requests() - before;
        printf("%s: %lld requests in %d steady steps\n", works[i].name, requests, steady);
        failures += requests != 0;
        works[i].end();
    }
    return failures > 0;
}
