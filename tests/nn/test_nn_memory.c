/* Modules' files and values, caches, masks and generation while memory runs out: an error, nothing lost, nothing left
 * behind. (What layers compute is tried by catalogue_without_memory.) */
#include "gpt.h"

#include <stdio.h>
#include <unistd.h>

#include <rapt/generate.h>

#include "memory_trials.h"
#include "text_stream.h"

static rapt_gpt *gpt;
static FILE *nowhere;
static char path[] = "/tmp/rapt-nn-memory-XXXXXX";

static void begin(void)
{
    RAPT_SCOPE;
    rapt_seed(3);
    gpt = drawn_gpt(&tiny);
    nowhere = fopen("/dev/null", "w");
    const int file = mkstemp(path);
    cr_assert(nowhere && file >= 0);
    close(file);
}

static void end(void)
{
    unlink(path);
    fclose(nowhere);
    rapt_module_free(&gpt->module);
}

TestSuite(nn_memory, .init = begin, .fini = end);

/* --- modules --- */

static bool averages_snapshot(void)
{
    rapt_archive *snapshot = rapt_module_snapshot(&gpt->module);
    const bool good = snapshot && rapt_module_average(&gpt->module, snapshot, 0.5) &&
                      rapt_module_from_archive(&gpt->module, NULL, snapshot);
    rapt_archive_free(snapshot);
    return good;
}

static bool copies(void)
{
    rapt_gpt *other = rapt_gpt_new(&tiny);
    const bool good =
        other && rapt_module_cast(&other->module, RAPT_FLOAT64) && rapt_module_copy(&other->module, &gpt->module);
    rapt_module_free((rapt_module *)other);
    return good;
}

static bool saves_and_loads(void)
{
    return rapt_module_save(&gpt->module, path) && rapt_module_load(&gpt->module, path);
}

static bool loads_part(void)
{
    return rapt_module_load_part(&gpt->module, &(rapt_load_part){.pattern = "*.bias", .allow_missing = true}, path);
}

static bool lists_and_freezes(void)
{
    rapt_tensor_list *list = rapt_module_list(&gpt->module, RAPT_PARAMETERS);
    const bool good = list && list->count > 0;
    rapt_tensor_list_free(list);
    return good && rapt_module_freeze(&gpt->module, "*.bias", false) > 0 &&
           rapt_module_parameter_count(&gpt->module) > 0;
}

static bool prints(void)
{
    return rapt_module_print(&gpt->module, nowhere);
}

static bool prints_graph(void)
{
    rapt_tensor *logits = rapt_gpt_forward(gpt, rapt_zeros(RAPT_INT64, RAPT_SHAPE(1, 2)), NULL);
    return logits && rapt_module_print_graph(&gpt->module, nowhere, logits, true);
}

Test(nn_memory, of_modules)
{
    try_all_failures("snapshot and average", averages_snapshot);
    try_all_failures("copy", copies);
    try_all_failures("save and load", saves_and_loads);
    cr_assert(rapt_module_save(&gpt->module, path));
    try_all_failures("load a part", loads_part);
    try_all_failures("list and freeze", lists_and_freezes);
    try_all_failures("print", prints);
    try_all_failures("print a graph", prints_graph);
}

/* --- generation --- */

static bool generates(const rapt_generation *how, bool packed)
{
    rapt_gpt_cache *cache = rapt_gpt_cache_new(gpt);
    const rapt_token_model model = rapt_gpt_token_model(cache);
    rapt_tensor *starts = packed ? rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){0, 1, 4}) : NULL;
    rapt_tensor *prompts = packed ? rapt_zeros(RAPT_INT64, RAPT_SHAPE(4)) : rapt_zeros(RAPT_INT64, RAPT_SHAPE(2, 2));
    const bool good =
        cache && (packed ? rapt_generate_packed(&model, prompts, starts, how) : rapt_generate(&model, prompts, how));
    rapt_gpt_cache_free(cache);
    return good;
}

static const rapt_generation greedy = {.length = 3, .stops = true, .end_token = 1, .padding = -1},
                             beyond_the_context = {.length = 12},
                             sampled = {.length = 3, .temperature = 0.8, .top_k = 5, .top_p = 0.9},
                             beams = {.length = 3, .beams = 3, .length_penalty = 0.6, .stops = true, .end_token = 2};

#define GENERATES(name, how, packed)                                                                                   \
    static bool name(void)                                                                                             \
    {                                                                                                                  \
        return generates(&how, packed);                                                                                \
    }
GENERATES(generates_greedily, greedy, false)
GENERATES(generates_beyond_the_context, beyond_the_context, false)
GENERATES(goes_on_beyond_the_context, beyond_the_context, true)
GENERATES(generates_at_random, sampled, false)
GENERATES(generates_by_beams, beams, false)
GENERATES(goes_on_greedily, greedy, true)
GENERATES(goes_on_by_beams, beams, true)

Test(nn_memory, of_generation)
{
    try_all_failures("greedy", generates_greedily);
    try_all_failures("beyond the context", generates_beyond_the_context);
    try_all_failures("beyond the context, of packed prompts", goes_on_beyond_the_context);
    try_all_failures("sampled", generates_at_random);
    try_all_failures("beams", generates_by_beams);
    try_all_failures("greedy, of packed prompts", goes_on_greedily);
    try_all_failures("beams, of packed prompts", goes_on_by_beams);
}

/* --- a decoder's caches --- */

static const rapt_transformer_config turning = {.hidden = 8,
                                                .heads = 4,
                                                .groups = 2,
                                                .feed_forward = 5,
                                                .encoder_layers = 1,
                                                .decoder_layers = 1,
                                                .attention_bias = true,
                                                .rotary = true};

static rapt_transformer_encoder *encoder;
static rapt_transformer_decoder *decoder;

static bool decodes(void)
{
    RAPT_NO_GRADIENT;
    rapt_decoder_cache cache = {0};
    rapt_tensor *memory = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 3, 8)), *rows = rapt_arange(RAPT_INT64, 1, -1, -1);
    const rapt_mask memory_mask = {.valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){3, 1})};
    bool good = memory && rows && memory_mask.valid_lengths;
    for (int step = 0; step < 3 && good; step++)
        good = rapt_transformer_decoder_forward(decoder, rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 1, 8)), memory,
                                                RAPT_MASK(.causal = true), &memory_mask, &cache) &&
               rapt_decoder_cache_select(&cache, rows);
    rapt_decoder_cache_clear(&cache);
    return good;
}

/* Sequences of different lengths first, then a step of each. */
static bool goes_on_from_packed_rows(void)
{
    RAPT_NO_GRADIENT;
    rapt_attention_cache cache = {0};
    const rapt_mask mask = {.causal = true, .starts = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){0, 2, 3})};
    const bool good =
        mask.starts &&
        rapt_transformer_encoder_forward(encoder, rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(3, 8)), &mask, &cache) &&
        rapt_transformer_encoder_forward(encoder, rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 1, 8)),
                                         RAPT_MASK(.causal = true), &cache);
    rapt_attention_cache_clear(&cache);
    return good;
}

Test(nn_memory, of_caches)
{
    RAPT_SCOPE;
    decoder = drawn(rapt_transformer_decoder_new(&turning));
    try_all_failures("decode", decodes);
    encoder = drawn(rapt_transformer_encoder_new(&turning));
    try_all_failures("go on from packed rows", goes_on_from_packed_rows);
    rapt_module_free(&encoder->module);
    rapt_module_free(&decoder->module);
}

/* --- summaries --- */

static rapt_sequential *layers;
static FILE *text;
static char expected[1000];

static size_t read_text(char *to)
{
    const size_t size = (size_t)ftell(text);
    cr_assert_lt(size, sizeof expected);
    rewind(text);
    return fread(to, 1, size, text);
}

/* All of the text, or what it begins with. */
static bool summarizes(void)
{
    char found[sizeof expected] = "";
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4, 2));
    rewind(text);
    const bool good = x && rapt_module_summarize(&layers->module, text, NULL, 1, &x, NULL);
    const size_t size = read_text(found);
    cr_expect(good ? strcmp(found, expected) == 0 : memcmp(found, expected, size) == 0, "%s", found);
    return good;
}

Test(nn_memory, of_summaries)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4, 2));
    layers = RAPT_SEQUENTIAL((rapt_module *)rapt_linear_new(2, 16, RAPT_BIAS), (rapt_module *)rapt_dropout_new(0.5),
                             (rapt_module *)rapt_linear_new(16, 1, RAPT_NO_BIAS));
    text = open_text();
    cr_assert(rapt_module_summarize(&layers->module, text, NULL, 1, &x, NULL), "%s", rapt_error());
    cr_assert_lt(100, (int)read_text(expected));
    try_all_failures("summarize", summarizes);
    fclose(text);
    rapt_module_free(&layers->module);
}
