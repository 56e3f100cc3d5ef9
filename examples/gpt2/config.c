/* What config.json says of the model. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "folder.h"
#include "model.h"
#include "token_table.h"

static const char op[] = "gpt2", name[] = "config.json";

/* What is said so far; 0 of what is not. */
struct said {
    const char *folder;
    rapt_gpt_config *config;
    int64_t layers, positions, context; /* n_ctx is the older name of n_positions */
    struct token_table keys;
};

static bool fail_setting(const struct said *said, const char *key, const char *value, const char *expected)
{
    return rapt_fail(RAPT_ERROR_UNSUPPORTED, op, "%s/%s: %s is %.100s; %s expected", said->folder, name, key, value,
                     expected);
}

/* A number or a word, as it stands there, without quotation marks; NULL after an error of the JSON, or of a list or an
 * object, which are passed over. */
static const char *take_plain(rapt_json *json, char text[64])
{
    if (rapt_json_take(json, '"')) {
        json->next--;
        return rapt_json_string(json);
    }
    const char *begin = json->next;
    if (!rapt_json_skip(json) || *begin == '{' || *begin == '[') return NULL;
    const size_t length = (size_t)(json->next - begin);
    memcpy(text, begin, length < 63 ? length : 63);
    text[length < 63 ? length : 63] = '\0';
    return text;
}

/* One of the sizes, of which null is not said. */
static bool take_size(const struct said *said, rapt_json *json, const char *key, int64_t *size)
{
    char text[64];
    if (rapt_json_count(json, size)) return true;
    const char *value = take_plain(json, text);
    if (json->error || (value && strcmp(value, "null") == 0)) return !json->error;
    return fail_setting(said, key, value ? value : "no number", "a whole number");
}

static bool take_epsilon(const struct said *said, rapt_json *json, const char *key)
{
    char text[64], *end = text;
    const char *value = take_plain(json, text);
    if (json->error) return false;
    said->config->norm_epsilon = value ? strtod(value, &end) : 0;
    return (said->config->norm_epsilon > 0 && said->config->norm_epsilon < 1 && *end == '\0') ||
           fail_setting(said, key, value ? value : "no number", "a number between 0 and 1");
}

static bool take_activation(const struct said *said, rapt_json *json, const char *key)
{
    static const struct {
        const char *name;
        rapt_feed_forward_kind kind;
    } known[] = {{"gelu_new", RAPT_FEED_FORWARD_GELU_TANH},
                 {"gelu_pytorch_tanh", RAPT_FEED_FORWARD_GELU_TANH},
                 {"gelu_fast", RAPT_FEED_FORWARD_GELU_TANH},
                 {"gelu", RAPT_FEED_FORWARD_GELU},
                 {"relu", RAPT_FEED_FORWARD_RELU}};
    char text[64];
    const char *value = take_plain(json, text);
    if (json->error) return false;
    for (size_t i = 0; value && i < sizeof known / sizeof *known; i++)
        if (strcmp(value, known[i].name) == 0) return said->config->kind = known[i].kind, true;
    return fail_setting(said, key, value ? value : "no word", "gelu_new, gelu or relu");
}

static bool take_tied(const struct said *said, rapt_json *json, const char *key)
{
    char text[64];
    const char *value = take_plain(json, text);
    if (json->error) return false;
    said->config->untied = value && strcmp(value, "false") == 0;
    return said->config->untied || (value && strcmp(value, "true") == 0) ||
           fail_setting(said, key, value ? value : "no word", "true or false");
}

/* What GPT-2 has in one way, and its relatives in another. */
static bool take_other(const struct said *said, rapt_json *json, const char *key)
{
    static const char *const expected[][2] = {{"model_type", "gpt2"},
                                              {"scale_attn_weights", "true"},
                                              {"scale_attn_by_inverse_layer_idx", "false"},
                                              {"add_cross_attention", "false"}};
    char text[64];
    const char *value = take_plain(json, text);
    for (size_t i = 0; !json->error && i < sizeof expected / sizeof *expected; i++)
        if (strcmp(key, expected[i][0]) == 0 && (!value || strcmp(value, expected[i][1]) != 0))
            return fail_setting(said, key, value ? value : "no word", expected[i][1]);
    return !json->error;
}

static bool is_new(struct said *said, const char *key)
{
    struct token_slot *slot = token_table_insert(&said->keys, key, strlen(key));
    if (!slot) return rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for the keys of %s/%s", said->folder, name);
    return slot->value++ == 0 || rapt_fail(RAPT_ERROR_FORMAT, op, "%s/%s says %s twice", said->folder, name, key);
}

static bool take_setting(struct said *said, rapt_json *json)
{
    const struct {
        const char *key;
        int64_t *size;
    } sizes[] = {{"vocab_size", &said->config->vocabulary},
                 {"n_embd", &said->config->hidden},
                 {"n_layer", &said->layers},
                 {"n_head", &said->config->heads},
                 {"n_positions", &said->positions},
                 {"n_ctx", &said->context},
                 {"n_inner", &said->config->feed_forward}};
    const char *key = rapt_json_key(json);
    if (!key || !is_new(said, key)) return false;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (strcmp(key, sizes[i].key) == 0) return take_size(said, json, key, sizes[i].size);
    if (strcmp(key, "layer_norm_epsilon") == 0) return take_epsilon(said, json, key);
    if (strcmp(key, "activation_function") == 0) return take_activation(said, json, key);
    if (strcmp(key, "tie_word_embeddings") == 0) return take_tied(said, json, key);
    return take_other(said, json, key);
}

static bool check(struct said *said)
{
    rapt_gpt_config *config = said->config;
    config->context = said->positions > 0 ? said->positions : said->context;
    const struct {
        const char *key;
        int64_t size;
    } needed[] = {{"vocab_size", config->vocabulary},
                  {"n_positions", config->context},
                  {"n_embd", config->hidden},
                  {"n_layer", said->layers},
                  {"n_head", config->heads}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (needed[i].size < 1 || needed[i].size > INT_MAX)
            return rapt_fail(RAPT_ERROR_FORMAT, op, "%s/%s: %s is %lld; a number from 1 to %d expected", said->folder,
                             name, needed[i].key, (long long)needed[i].size, INT_MAX);
    config->layers = (int)said->layers;
    return true;
}

bool config_read(const char *folder, rapt_gpt_config *config)
{
    *config = (rapt_gpt_config){.bias = true, .kind = RAPT_FEED_FORWARD_GELU_TANH, .norm_epsilon = 1e-5};
    size_t size;
    char *text = folder_read(folder, name, &size);
    if (!text) return false;
    struct said said = {.folder = folder, .config = config};
    rapt_json json = {.begin = text, .next = text, .end = text + size};
    bool good = true;
    if (!rapt_json_take(&json, '{')) json.error = "'{' expected";
    for (bool first = true; good && rapt_json_more(&json, '}', &first);) good = take_setting(&said, &json);
    if (good || json.error) good = rapt_json_end(&json) || folder_fail(folder, name, &json);
    good = good && check(&said);
    token_table_free(&said.keys);
    free(text);
    return good;
}
