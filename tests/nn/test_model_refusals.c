/* What models of tokens and modules refuse, one argument at a time: the sentence names what is wrong. */
#include "modules.h"

#include <rapt/generate.h>
#include <rapt/gpt.h>

#include "refused.h"

static rapt_tensor *x, *tokens;

static void begin(void)
{
    x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 4));
    tokens = rapt_zeros(RAPT_INT64, RAPT_SHAPE(2, 3));
}

TestSuite(model_refusals, .init = begin);

#define GENERATE(...) rapt_generate(&model, tokens, RAPT_STRUCT_OF(rapt_generation, __VA_ARGS__))

Test(model_refusals, models_of_tokens)
{
    const rapt_gpt_config config = {.vocabulary = 5, .context = 4, .hidden = 4, .layers = 1, .heads = 2};
    const rapt_generation how = {.length = 2};
    rapt_gpt *gpt = rapt_gpt_new(&config);
    rapt_gpt_cache *cache = rapt_gpt_cache_new(gpt);
    const rapt_token_model model = rapt_gpt_token_model(cache);
    rapt_tensor *row = rapt_zeros(RAPT_INT64, RAPT_SHAPE(3)),
                *starts = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){0, 1, 3});
    NULL_IN(rapt_gpt_new(NULL), "GPT: the configuration is NULL");
    rapt_gpt_config bad = config;
    bad.window = -1;
    BAD_VALUE(rapt_gpt_new(&bad), "GPT: a window of -1; 0 or more expected");
    bad = config;
    bad.norm_epsilon = -1;
    BAD_VALUE(rapt_gpt_new(&bad), "a norm_epsilon of -1; a finite number of at least 0 expected");
    bad.norm_epsilon = 1e39;
    BAD_VALUE(rapt_gpt_new(&bad), "a norm_epsilon of 1e+39; a finite number of at least 0 expected, also as float32");
    bad = config;
    bad.rotary_base = (double)NAN;
    BAD_VALUE(rapt_gpt_new(&bad), "a rotary_base of nan; a finite number of at least 0 expected");
    bad.rotary_base = 100;
    BAD_VALUE(rapt_gpt_new(&bad), "rotary_halves, a rotary_base or rotary_scaling, but positions are not rotary");
    bad = config;
    bad.rotary_halves = true;
    BAD_VALUE(rapt_gpt_new(&bad), "rotary_halves, a rotary_base or rotary_scaling, but positions are not rotary");
    bad = config;
    bad.rotary_scaling.factor = 8;
    BAD_VALUE(rapt_gpt_new(&bad), "or rotary_scaling, but positions are not rotary");
    bad.positions = RAPT_POSITIONS_ROTARY;
    const rapt_rotary_scaling scalings[] = {{8, 4, 1, 64},
                                            {8, 4, 4, 64},
                                            {8, -1, 4, 64},
                                            {8, 1, 4, 0},
                                            {8, 1, 4, -64},
                                            {8, 0, 0, 64},
                                            {8, 1, (double)NAN, 64},
                                            {0, 1, 4, 64},
                                            {-8, 1, 4, 64},
                                            {(double)NAN, 0, 0, 0},
                                            {(double)INFINITY, 0, 0, 0}};
    for (int i = 0; i < 11; i++) {
        bad.rotary_scaling = scalings[i];
        BAD_VALUE(rapt_gpt_new(&bad), i < 7 ? "0 ≤ low_turns < high_turns in 1 or more expected, or zeros"
                                            : "the factor of rotary scaling");
    }
    bad = config;
    bad.head_size = -1;
    BAD_VALUE(rapt_gpt_new(&bad), "2 heads with a head_size of -1; 0 or more expected, of 64 bits");
    bad.head_size = INT64_MAX / 2 + 1;
    BAD_VALUE(rapt_gpt_new(&bad), "0 or more expected, of 64 bits");
    bad.head_size = 3;
    bad.positions = RAPT_POSITIONS_ROTARY;
    BAD_VALUE(rapt_gpt_new(&bad), "heads of size 3; rotary positions need an even size");
    bad = config;
    bad.hidden = 5;
    BAD_VALUE(rapt_gpt_new(&bad), "a multiple of 1 or more heads expected, or a head_size");
    bad = config;
    bad.feed_forward = -1;
    BAD_VALUE(rapt_gpt_new(&bad), "a feed-forward size of -1; 1 or more expected");
    BAD_VALUE(rapt_add_norm_new(4, RAPT_RMS_NORM | RAPT_BIAS, 0),
              "flags 3; RAPT_NO_BIAS, RAPT_BIAS or RAPT_RMS_NORM expected");
    NULL_IN(rapt_gpt_forward(NULL, tokens, NULL), "GPT: the model is NULL");
    NULL_IN(rapt_gpt_forward(gpt, NULL, NULL), "GPT: the tokens are NULL");
    NULL_IN(rapt_gpt_loss(NULL, tokens, tokens, NULL), "GPT: the model is NULL");
    NULL_IN(rapt_gpt_loss(gpt, NULL, tokens, NULL), "GPT: the tokens are NULL");
    NULL_IN(rapt_gpt_loss(gpt, tokens, NULL, NULL), "linear_cross_entropy: input 3 is NULL");
    NULL_IN(rapt_gpt_forward_packed(NULL, row, starts), "GPT: the model is NULL");
    NULL_IN(rapt_gpt_hidden(NULL, row, starts), "GPT: the model is NULL");
    NULL_IN(rapt_gpt_hidden(gpt, NULL, NULL), "GPT: the tokens are NULL");
    NULL_IN(rapt_gpt_forward_packed(gpt, NULL, starts), "GPT: the tokens are NULL");
    NULL_IN(rapt_gpt_forward_packed(gpt, row, NULL), "GPT: starts is NULL");
    BAD_SHAPE(rapt_gpt_forward_packed(gpt, tokens, starts), "GPT: tokens (3) expected by the starts, not int64 [2, 3]");
    BAD_SHAPE(rapt_gpt_forward_packed(gpt, rapt_zeros(RAPT_INT64, RAPT_SHAPE(4)), starts),
              "GPT: tokens (3) expected by the starts, not int64 [4]");
    NULL_IN(rapt_gpt_loss_packed(NULL, row, starts, row, NULL), "GPT: the model is NULL");
    NULL_IN(rapt_gpt_loss_packed(gpt, row, starts, NULL, NULL), "linear_cross_entropy: input 3 is NULL");
    NULL_IN(rapt_gpt_cache_new(NULL), "GPT: the model is NULL");
    NULL_IN(rapt_gpt_cache_length(NULL), "GPT: the cache is NULL");
    NULL_IN(rapt_gpt_cache_select(NULL, row), "GPT: the cache is NULL");
    NULL_IN(rapt_gpt_cache_select(cache, NULL), "GPT: the rows are NULL");
    NULL_IN(rapt_generate(NULL, tokens, &how), "generate: the model is NULL");
    NULL_IN(rapt_generate(&model, NULL, &how), "generate: the prompt is NULL");
    NULL_IN(rapt_generate(&model, tokens, NULL), "generate: the settings are NULL");
    NULL_IN(rapt_generate_packed(NULL, row, starts, &how), "generate: the model is NULL");
    NULL_IN(rapt_generate_packed(&model, NULL, starts, &how), "generate: the prompt is NULL");
    NULL_IN(rapt_generate_packed(&model, row, NULL, &how), "generate: starts is NULL");
    NULL_IN(rapt_sample(NULL, &how), "sample: logits (B, vocabulary) expected, not NULL");
    NULL_IN(rapt_sample(x, NULL), "sample: the settings are NULL");
    BAD_VALUE(GENERATE(.length = -1), "length -1; 0 or more expected");
    BAD_VALUE(GENERATE(.length = 2, .temperature = -1), "temperature -1; 0 or more expected");
    BAD_VALUE(GENERATE(.length = 2, .top_k = 2), "top_k 2 and top_p 0 without a temperature");
    BAD_VALUE(GENERATE(.length = 2, .top_p = 0.5), "top_k 0 and top_p 0.5 without a temperature");
    BAD_VALUE(GENERATE(.length = 2, .temperature = 1, .top_k = -2), "top_k -2; 0 or more expected");
    BAD_VALUE(GENERATE(.length = 2, .temperature = 1, .top_p = 2), "top_p 2; 0 to 1 expected");
    BAD_VALUE(GENERATE(.length = 2, .beams = 2, .temperature = 1), "either beams or sampling expected");
    BAD_VALUE(GENERATE(.length = 2, .beams = 2, .top_k = 1), "either beams or sampling expected");
    BAD_VALUE(GENERATE(.length = 2, .stops = true, .end_token = -1), "end_token -1 of a vocabulary of 5");
    BAD_VALUE(GENERATE(.length = 2, .stops = true, .end_token = 5), "end_token 5 of a vocabulary of 5");
    rapt_gpt_cache_free(cache);
    rapt_module_free(&gpt->module);
}

static bool takes_any(const char *name, rapt_tensor *tensor, void *context)
{
    (void)name, (void)tensor, (void)context;
    return true;
}

Test(model_refusals, modules)
{
    rapt_module *module = (rapt_module *)rapt_linear_new(4, 2, RAPT_BIAS);
    rapt_archive *archive = rapt_archive_new();
    NULL_IN(rapt_module_visit(NULL, RAPT_PARAMETERS, takes_any, NULL), "module_visit: module is NULL");
    NULL_IN(rapt_module_visit(module, RAPT_PARAMETERS, NULL, NULL), "module_visit: visitor is NULL");
    NULL_IN(rapt_module_list(NULL, RAPT_PARAMETERS), "module_list: module is NULL");
    BAD_VALUE(rapt_module_visit(module, 4, takes_any, NULL), "module_visit: flags 4; RAPT_PARAMETERS, RAPT_BUFFERS,");
    BAD_VALUE(rapt_module_list(module, 99), "module_list: flags 99; RAPT_PARAMETERS, RAPT_BUFFERS, both or 0 expected");
    BAD_VALUE(rapt_module_list(module, -1), "module_list: flags -1; ");
    NULL_IN(rapt_module_find(NULL, "weight"), "module_find: module is NULL");
    NULL_IN(rapt_module_find(module, NULL), "module_find: name is NULL");
    NULL_IN(rapt_module_forward(NULL, x), "module_forward: the module is NULL");
    NULL_IN(rapt_module_freeze(NULL, "*", true), "the module is NULL");
    NULL_IN(rapt_module_freeze(module, NULL, true), "the pattern is NULL");
    NULL_IN(rapt_module_cast(NULL, RAPT_FLOAT64), "module_cast: module is NULL");
    NULL_IN(rapt_module_parameter_count(NULL) != 0, "module_parameter_count: module is NULL");
    BAD_DTYPE(rapt_module_cast(module, RAPT_INT64), "module_cast: int64 is not floating");
    NULL_IN(rapt_module_print(NULL, stdout), "module_print: module is NULL");
    NULL_IN(rapt_module_print(module, NULL), "module_print: stream is NULL");
    NULL_IN(rapt_module_to_archive(NULL, NULL, archive), "module_to_archive: module is NULL");
    NULL_IN(rapt_module_to_archive(module, NULL, NULL), "module_to_archive: archive is NULL");
    NULL_IN(rapt_module_from_archive(NULL, NULL, archive), "module_from_archive: module is NULL");
    NULL_IN(rapt_module_from_archive(module, NULL, NULL), "module_from_archive: archive is NULL");
    NULL_IN(rapt_module_save(NULL, "/nowhere"), "module_save: module is NULL");
    NULL_IN(rapt_module_save(module, NULL), "save_safetensors: path is NULL");
    NULL_IN(rapt_module_load(module, NULL), "load_safetensors: path is NULL");
    NULL_IN(rapt_module_copy(NULL, module), "module_copy: target is NULL");
    NULL_IN(rapt_module_copy(module, NULL), "module_copy: source is NULL");
    NULL_IN(rapt_module_snapshot(NULL), "module_snapshot: module is NULL");
    NULL_IN(rapt_module_average(NULL, archive, 0.5), "module_average: module is NULL");
    NULL_IN(rapt_module_average(module, NULL, 0.5), "module_average: averages is NULL");
    BAD_VALUE(rapt_module_average(module, archive, 2), "module_average: decay 2; 0 to 1 expected");
    BAD_VALUE(rapt_module_average(module, archive, (double)NAN), "module_average: decay nan; 0 to 1 expected");
    NULL_IN(rapt_module_summarize(NULL, stdout, NULL, 1, &x, NULL), "module_summarize: module is NULL");
    NULL_IN(rapt_module_summarize(module, NULL, NULL, 1, &x, NULL), "module_summarize: stream is NULL");
    NULL_IN(rapt_module_summarize(module, stdout, NULL, 1, NULL, NULL), "module_summarize: the list of inputs is NULL");
    BAD_VALUE(rapt_module_summarize(module, stdout, NULL, 0, NULL, NULL),
              "module_summarize: 0 inputs; one, for rapt_module_forward, expected");
    BAD_VALUE(rapt_module_summarize(module, stdout, NULL, -1, &x, NULL),
              "module_summarize: -1 inputs; one, for rapt_module_forward, expected");
    NULL_IN(rapt_module_print_graph(NULL, stdout, x, false), "module_print_graph: module is NULL");
    NULL_IN(rapt_module_print_graph(module, NULL, x, false), "stream is NULL");
    NULL_IN(rapt_module_print_graph(module, stdout, NULL, false), "tensor is NULL");
    rapt_archive_free(archive);
    rapt_module_free(module);
}
