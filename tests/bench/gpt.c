/* How fast GPT-2 of 124 million parameters is: training steps, reading a prompt, and writing word by word. */
#include <rapt.h>

#include "rows.h"
#include "training.h"

typedef struct gpt_row {
    const char *name;
    int64_t batch, length; /* of the prompt, where it writes */
} gpt_row;

static const gpt_row steps[] = {
    {"gpt2_b4_t64", 4, 64},
    {"gpt2_b1_t1024", 1, 1024},
};

static const gpt_row prompts[] = {
    {"gpt2_decoding", 1, 64},
};

enum { words_written = 128 };

/* 50,257 words, filled up to a multiple of 64 as PyTorch likes them. */
static const rapt_gpt_config config = {.vocabulary = 50304,
                                       .context = 1024,
                                       .hidden = 768,
                                       .layers = 12,
                                       .heads = 12,
                                       .bias = true,
                                       .kind = RAPT_FEED_FORWARD_GELU};

struct gpt {
    training training;
    const gpt_row *sizes;
    rapt_gpt *gpt;
    rapt_gpt_cache *cache;
    rapt_tensor *words, *labels;
};

static struct gpt gpt_new(const gpt_row *sizes)
{
    return (struct gpt){.sizes = sizes,
                        .gpt = rapt_gpt_new(&config),
                        .words = rapt_randint(0, 50257, RAPT_SHAPE(sizes->batch, sizes->length))};
}

static void end(void *made)
{
    struct gpt *g = made;
    if (g->training.optimizer) rapt_optimizer_free(g->training.optimizer);
    if (g->cache) rapt_gpt_cache_free(g->cache);
    rapt_module_free(&g->gpt->module);
}

/* --- training --- */

static rapt_tensor *loss(void *context)
{
    struct gpt *g = context;
    return rapt_gpt_loss(g->gpt, g->words, g->labels, NULL);
}

static void *make_training(const void *row, const void *context)
{
    (void)context;
    static struct gpt g;
    g = gpt_new(row);
    g.labels = rapt_randint(0, 50257, RAPT_SHAPE(g.sizes->batch, g.sizes->length));
    g.training.loss = loss;
    g.training.optimizer =
        rapt_adamw_new(&g.gpt->module, &(rapt_adam_config){.learning_rate = 1e-4, .weight_decay = RAPT_ZERO});
    return &g;
}

/* The products: of a word in a block 12 · hidden², and of attention two with half of the keys; and the logits. */
static double products_of(const gpt_row *sizes, double logits)
{
    const double hidden = (double)config.hidden, words = (double)(sizes->batch * sizes->length);
    const double block = 12 * hidden * hidden + (double)sizes->length * hidden;
    return 2 * (words * config.layers * block + logits * hidden * (double)config.vocabulary);
}

static double training_cost(const void *made, int phase)
{
    const gpt_row *sizes = ((const struct gpt *)made)->sizes;
    return products_of(sizes, (double)(sizes->batch * sizes->length)) * (phase == 0 ? 1 : 3);
}

/* --- writing --- */

static double reading_cost(const void *made, int phase)
{
    (void)phase;
    return products_of(((const struct gpt *)made)->sizes, 1);
}

/* Bytes: all weights but the positions', the table of words as the head. */
static double writing_cost(const void *made, int phase)
{
    const int64_t count = rapt_module_parameter_count(&((const struct gpt *)made)->gpt->module);
    return phase == 0 ? 4 * (double)(count - config.context * config.hidden) : 0;
}

static void *make_writing(const void *row, const void *context)
{
    (void)context;
    static struct gpt g;
    g = gpt_new(row);
    rapt_module_train(&g.gpt->module, false);
    g.cache = rapt_gpt_cache_new(g.gpt);
    return &g;
}

static void read_words(struct gpt *g, rapt_tensor *words)
{
    RAPT_NO_GRADIENT;
    RAPT_SCOPE;
    const rapt_token_model model = rapt_gpt_token_model(g->cache);
    rapt_argmax(model.next(model.context, words), -1, false);
}

/* The prompt, up to the first word after it. */
static void prefill(void *context)
{
    struct gpt *g = context;
    rapt_gpt_cache_clear(g->cache);
    read_words(g, g->words);
}

/* One word more; of so many runs one reads the prompt again, which no median shows. */
static void write_word(void *context)
{
    RAPT_SCOPE;
    struct gpt *g = context;
    const int64_t length = rapt_gpt_cache_length(g->cache);
    if (length < g->sizes->length || length >= g->sizes->length + words_written) prefill(g);
    read_words(g, rapt_slice(g->words, 1, 0, 1, 1));
}

static void generate(void *context)
{
    RAPT_SCOPE;
    struct gpt *g = context;
    rapt_gpt_cache_clear(g->cache);
    const rapt_token_model model = rapt_gpt_token_model(g->cache);
    rapt_generate(&model, g->words, &(rapt_generation){.length = words_written});
}

int main(int count, char **arguments)
{
    const row_family families[] = {{ROWS_OF(steps), .phases = {"fwd", "step"},
                                    .work = {training_forward, training_step}, .make = make_training, .end = end,
                                    .cost = training_cost, .note = "GPT-2, 124 million parameters: training"},
                                   {ROWS_OF(prompts), .phases = {"prefill"}, .work = {prefill}, .make = make_writing,
                                    .end = end, .cost = reading_cost, .note = "reading a prompt of 64 words"},
                                   {ROWS_OF(prompts), .phases = {"word", "generate"}, .work = {write_word, generate},
                                    .make = make_writing, .end = end, .cost = writing_cost, .is_bytes = true,
                                    .note = "writing a word; the prompt and 128 words"}};
    return rows_main(count, arguments, families, 3);
}
