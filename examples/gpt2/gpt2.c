/* Continues a text by GPT-2's published weights (Radford et al. 2019). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt.h>

#include "byte_pairs.h"
#include "characters.h"
#include "model.h"
#include "options.h"

/* What is written of a text: its tokens so far are read. */
struct writing {
    rapt_token_model model;
    const struct byte_pairs *pairs;
    const struct options *options;
    struct characters out;
};

/* Reads the tokens, and chooses the one that comes next; −1 after an error. */
static int64_t choose(const struct writing *w, const int64_t *tokens, int64_t count)
{
    RAPT_SCOPE;
    const rapt_generation one = {.length = 1,
                                 .temperature = w->options->temperature,
                                 .top_k = w->options->top_k,
                                 .top_p = w->options->top_p};
    const rapt_tensor *chosen = rapt_generate(&w->model, rapt_from(RAPT_INT64, RAPT_SHAPE(1, count), tokens), &one);
    return chosen ? *(const int64_t *)rapt_data(chosen) : -1;
}

/* Returns how many tokens were written, −1 after an error. The half of a character at the end is written too. */
static int64_t write_text(struct writing *w, const int64_t *prompt, int64_t count)
{
    int64_t written = 0, token = 0;
    for (; written < w->options->sample && !ferror(stdout); written++) {
        token = written == 0 ? choose(w, prompt, count) : choose(w, &token, 1);
        if (token < 0 || token == w->pairs->end) break;
        const struct byte_string *string = byte_pairs_token(w->pairs, token);
        if (!string) return -1;
        characters_put(&w->out, string->bytes, string->length);
    }
    characters_end(&w->out);
    return token < 0 ? -1 : written;
}

static bool continue_text(rapt_gpt *gpt, const struct byte_pairs *pairs, const int64_t *prompt, int64_t count,
                          const struct options *o)
{
    if (count > gpt->config.context)
        fprintf(stderr, "gpt2: the prompt has %lld tokens, and the context %lld: only the last %lld are read\n",
                (long long)count, (long long)gpt->config.context,
                (long long)(gpt->config.context > 1 ? gpt->config.context / 2 : 1));
    rapt_gpt_cache *cache = rapt_gpt_cache_new(gpt);
    if (!cache) return false;
    struct writing writing = {.model = rapt_gpt_token_model(cache),
                              .pairs = pairs,
                              .options = o,
                              .out = {.stream = stdout}};
    characters_put(&writing.out, o->prompt, strlen(o->prompt));
    const double start = rapt_seconds();
    const int64_t written = write_text(&writing, prompt, count);
    putchar('\n');
    fflush(stdout);
    if (written >= 0) fprintf(stderr, "(%lld tokens in %.2f s)\n", (long long)written, rapt_seconds() - start);
    rapt_gpt_cache_free(cache);
    return written >= 0;
}

static void print_tokens(const int64_t *tokens, int64_t count)
{
    for (int64_t i = 0; i < count; i++) printf(i == 0 ? "%lld" : " %lld", (long long)tokens[i]);
    printf("\n");
}

/* With the vocabulary, which is read: is it the model's, and what is to be done? */
static bool run(const struct byte_pairs *pairs, const rapt_gpt_config *config, const struct options *o)
{
    if (pairs->count > config->vocabulary)
        return rapt_fail(RAPT_ERROR_FORMAT, "gpt2", "%s: vocab.json has %lld tokens, and config.json says %lld",
                         o->model, (long long)pairs->count, (long long)config->vocabulary);
    int64_t count;
    int64_t *prompt = byte_pairs_encode(pairs, o->prompt, strlen(o->prompt), &count);
    bool good = prompt;
    if (good && o->shows_tokens) {
        print_tokens(prompt, count);
    } else if (good) {
        rapt_gpt *gpt = model_load(o->model, config);
        good = gpt && continue_text(gpt, pairs, prompt, count, o);
        if (gpt) rapt_module_free(&gpt->module);
    }
    free(prompt);
    return good;
}

int main(int argc, char **argv)
{
    struct options o;
    struct byte_pairs pairs = {0};
    rapt_gpt_config config;
    const int status = options_parse(argc, argv, &o);
    if (status >= 0) return status;
    rapt_seed((uint64_t)o.seed);
    if (o.threads > 0) rapt_set_threads((int)o.threads);
    const bool good = config_read(o.model, &config) && byte_pairs_read(&pairs, o.model) && run(&pairs, &config, &o);
    if (!good) fprintf(stderr, "%s\n", rapt_error());
    byte_pairs_free(&pairs);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
