/* Whatever allocates by the system, with each of its allocations failing in turn: it goes on, or it is an error. */
#include "gpt.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <rapt.h>

#include "memory_trials.h"

static char folder[] = "/tmp/rapt-no-memory-XXXXXX";
static FILE *nowhere;
static rapt_gpt *gpt;
static rapt_archive *archive;

static const char *file(const char *name)
{
    static char path[96];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* --- what is tried: true where it succeeds --- */

static bool free_archive(rapt_archive *loaded)
{
    rapt_archive_free(loaded);
    return loaded != NULL;
}

static bool free_module(void *module)
{
    rapt_module_free(module);
    return module != NULL;
}

static bool saves_npz(void)
{
    return rapt_save_npz(file("a.npz"), archive);
}

static bool loads_npz(void)
{
    return free_archive(rapt_load_npz(file("a.npz")));
}

static bool maps(void)
{
    return free_archive(rapt_map_safetensors(file("a.safetensors")));
}

static bool saves_shards(void)
{
    return rapt_save_safetensors_shards(file("b.safetensors.index.json"), archive, 20);
}

static bool loads_shards(void)
{
    return free_archive(rapt_load_safetensors(file("b.safetensors.index.json")));
}

static bool prints(void)
{
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3));
    return x && rapt_print_to(nowhere, x, NULL);
}

/* The beginning of what DLPack declares. */
struct DLManagedTensorVersioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct DLManagedTensorVersioned *);
};

static bool goes_through_dlpack(void)
{
    struct DLManagedTensorVersioned *managed = rapt_to_dlpack(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3)));
    const bool good = managed && rapt_from_dlpack(managed);
    if (managed && !good) managed->deleter(managed);
    return good;
}

static bool fills_scope_of_thread(void)
{
    RAPT_SCOPE;
    for (int i = 0; i < 300; i++)
        if (!rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(1))) return false;
    return true;
}

static rapt_tensor *square(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return rapt_mul(inputs[0], inputs[0]);
}

static bool checks_gradients(void)
{
    rapt_tensor *x = rapt_require_gradient(rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2)));
    return x && rapt_gradcheck("square", square, 1, &x, NULL).passed;
}

static bool checks_module(void)
{
    rapt_linear *linear = rapt_linear_new(2, 2, 0);
    rapt_tensor *x = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(1, 2));
    const bool good = linear && x && rapt_module_cast(&linear->module, RAPT_FLOAT64) &&
                      rapt_module_gradcheck(&linear->module, NULL, 1, &x, NULL).passed;
    rapt_module_free((rapt_module *)linear);
    return good;
}

static bool prints_graph(void)
{
    rapt_tensor *x = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2)));
    for (int i = 0; i < 300 && x; i++) x = rapt_exp(x); /* more nodes than fit where no memory is asked for */
    return x && rapt_print_graph(nowhere, x, false);
}

/* By no call that allocates. */
static void put_word(const char *path)
{
    const int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert(descriptor >= 0 && write(descriptor, "old", 3) == 3 && close(descriptor) == 0);
}

static bool has_word(const char *path)
{
    char word[8] = "";
    const int descriptor = open(path, O_RDONLY);
    cr_assert(descriptor >= 0 && read(descriptor, word, 7) >= 0 && close(descriptor) == 0);
    return strcmp(word, "old") == 0;
}

static bool profiles(void)
{
    RAPT_NO_GRADIENT;
    put_word(file("profile.json"));
    const bool started = rapt_profile_start(file("profile.json"));
    if (!started) cr_expect(has_word(file("profile.json")), "the file of a profile that does not start");
    const bool ran = started && rapt_gpt_forward(gpt, rapt_zeros(RAPT_INT64, RAPT_SHAPE(1, 2)), NULL);
    const bool stopped = !started || rapt_profile_stop();
    return ran && stopped && rapt_profile_report(nowhere);
}

static rapt_tensor *logits(rapt_tensor *const *inputs, void *context)
{
    return rapt_gpt_forward(context, inputs[0], NULL);
}

static bool summarizes(void)
{
    rapt_tensor *tokens = rapt_zeros(RAPT_INT64, RAPT_SHAPE(1, 2));
    return tokens && rapt_module_summarize(&gpt->module, nowhere, logits, 1, &tokens, gpt);
}

static bool makes_modules(void)
{
    return free_module(rapt_transformer_new(&small)) && free_module(rapt_lstm_new(2, 3, 2, 0));
}

static bool makes_cache(void)
{
    rapt_gpt_cache *cache = rapt_gpt_cache_new(gpt);
    rapt_gpt_cache_free(cache);
    return cache != NULL;
}

static bool makes_optimizer(void)
{
    rapt_optimizer *adam = rapt_adam_new(&gpt->module, NULL);
    const bool good = adam && rapt_optimizer_group(adam, "*.bias", &(rapt_group_config){.learning_rate = 1e-3});
    rapt_optimizer_free(adam);
    return good;
}

static bool writes(const char *path)
{
    rapt_metrics *metrics = rapt_metrics_open(path, RAPT_METRICS_BY_NAME, false);
    rapt_metric row[40];
    char names[40][8];
    for (int i = 0; i < 40; i++) {
        snprintf(names[i], sizeof names[i], "name%d", i);
        row[i] = (rapt_metric){names[i], i};
    }
    const bool good = metrics && rapt_metrics_write(metrics, 1, 40, row);
    return rapt_metrics_close(metrics) && good;
}

static bool writes_metrics(void)
{
    return writes(file("a.csv")) && writes(file("a.jsonl")) && writes(file("events"));
}

static void make_files(void)
{
    RAPT_SCOPE;
    cr_assert_not_null(mkdtemp(folder));
    nowhere = fopen("/dev/null", "w");
    gpt = rapt_gpt_new(&tiny);
    archive = rapt_archive_new();
    for (int i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "t%d", i);
        cr_assert(rapt_archive_add(archive, name, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 2))));
    }
    cr_assert(rapt_save_npz(file("a.npz"), archive) && rapt_save_safetensors(file("a.safetensors"), archive) &&
                  rapt_save_safetensors_shards(file("b.safetensors.index.json"), archive, 20),
              "%s", rapt_error());
}

static void remove_files(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", folder);
    cr_expect_eq(system(command), 0);
    rapt_archive_free(archive);
    rapt_module_free(&gpt->module);
    fclose(nowhere);
}

Test(no_memory, each_allocation_fails_once, .init = make_files, .fini = remove_files)
{
    const struct {
        const char *name;
        bool (*succeeds)(void);
    } trials[] = {{"save npz", saves_npz},         {"load npz", loads_npz},         {"map", maps},
                  {"save shards", saves_shards},   {"load shards", loads_shards},   {"print", prints},
                  {"DLPack", goes_through_dlpack}, {"gradcheck", checks_gradients}, {"module gradcheck", checks_module},
                  {"print graph", prints_graph},   {"profile", profiles},           {"summary", summarizes},
                  {"modules", makes_modules},      {"cache", makes_cache},          {"optimizer", makes_optimizer},
                  {"metrics", writes_metrics}};
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) try_all_failures(trials[i].name, trials[i].succeeds);
}

/* A thread's list of its scopes' tensors stays as long as it has become, so each kind of failure gets a new thread. */
static void *fills_scope(void *kind)
{
    try_failures("scope", fills_scope_of_thread, *(const memory_failure *)kind);
    return NULL;
}

Test(no_memory, list_of_a_scope_grows_or_is_an_error)
{
    for (memory_failure kind = 0; kind < memory_failures; kind++) {
        pthread_t thread;
        cr_assert(pthread_create(&thread, NULL, fills_scope, &kind) == 0 && pthread_join(thread, NULL) == 0);
    }
}

/* --- a step that fails, and the same once more --- */

static bool does_step(rapt_gpt *model, rapt_optimizer *optimizer)
{
    RAPT_SCOPE;
    rapt_seed(2);
    rapt_tensor *words = random_tokens(2, 5), *loss = rapt_gpt_loss(model, words, words, NULL);
    return rapt_backward(loss) && rapt_optimizer_step_clipped(optimizer, 1, NULL);
}

static bool adds_bits(const char *name, rapt_tensor *parameter, void *hash)
{
    (void)name;
    const unsigned char *bytes = rapt_data(parameter);
    for (int64_t i = 0; i < rapt_count(parameter) * 4; i++)
        *(uint64_t *)hash = (*(uint64_t *)hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return true;
}

/* Of the weights after two steps, of which an allocation of the first fails, and the step is done again then. *failed:
 * it did. */
static uint64_t hash_after_failure(long after, bool for_good, bool *failed)
{
    RAPT_SCOPE;
    rapt_gpt_config dropping = tiny;
    dropping.dropout = 0.1;
    rapt_seed(1);
    rapt_gpt *model = rapt_gpt_new(&dropping);
    rapt_optimizer *optimizer = rapt_adamw_new(&model->module, NULL);
    rapt_memory_trim();
    fail_malloc(after, for_good);
    const bool good = does_step(model, optimizer);
    *failed = allocator.failed > 0;
    fail_malloc(-1, false);
    cr_expect(good == !rapt_error(), "a step after %ld allocations: %s", after, rapt_error());
    rapt_clear_error();
    if (!good) {
        rapt_module_clear_gradients(&model->module);
        cr_expect(does_step(model, optimizer), "the step after a failed one: %s", rapt_error());
    }
    cr_expect(does_step(model, optimizer));
    uint64_t hash = 0;
    rapt_module_visit(&model->module, RAPT_PARAMETERS, adds_bits, &hash);
    rapt_optimizer_free(optimizer);
    rapt_module_free(&model->module);
    return hash;
}

Test(no_memory, after_a_failed_step_the_same_step_gives_the_same_bits)
{
    bool failed;
    rapt_set_threads(1);
    const uint64_t expected = hash_after_failure(-1, false, &failed);
    for (int for_good = 0; for_good <= 1; for_good++)
        for (long after = 0; after == 0 || failed; after++)
            cr_expect_eq(hash_after_failure(after, for_good, &failed), expected,
                         "other bits after a step that failed after %ld allocations%s", after,
                         for_good ? ", and all after" : "");
}
