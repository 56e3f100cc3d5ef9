/* What libFuzzer makes up, read as what a run leaves behind: a checkpoint, a translator with its vocabularies, an index
 * of shards. The answer is a run that can go on, or an error after which nothing has changed and nothing stays in
 * memory. The first byte says which it is, the second how many zeros follow the header, in fours. */
#include <string.h>

#include <rapt.h>

#include "fuzz_file.h"
#include "saved_model.h"

#define PATH "fuzz/file"

/* A run that inputs are loaded into; one that took an input is made anew. */
static struct {
    rapt_linear *layer;
    rapt_optimizer *adam;
    rapt_average *average;
    float weights[3];
} run;

static void free_run(void)
{
    rapt_average_free(run.average);
    rapt_optimizer_free(run.adam);
    rapt_module_free(&run.layer->module);
}

static void read_weights(float weights[3])
{
    memcpy(weights, rapt_data(run.layer->weight), 2 * sizeof *weights);
    memcpy(weights + 2, rapt_data(run.layer->bias), sizeof *weights);
}

static void make_run(void)
{
    run.layer = rapt_linear_new(2, 1, RAPT_BIAS);
    run.adam = rapt_adam_new(&run.layer->module, NULL);
    run.average = rapt_average_new(&run.layer->module, NULL);
    expect(!rapt_error(), "no run");
    read_weights(run.weights);
}

static void read_checkpoint(void)
{
    rapt_checkpoint checkpoint = {.module = &run.layer->module, .optimizer = run.adam, .average = run.average};
    float weights[3];
    const bool done = rapt_checkpoint_load(PATH, &checkpoint);
    expect(done == !rapt_error(), "neither a run nor an error, or both");
    read_weights(weights);
    expect(done || (memcmp(weights, run.weights, sizeof weights) == 0 && rapt_optimizer_get_steps(run.adam) == 0 &&
                    checkpoint.step == 0),
           "an error has changed something");
    expect(!done || checkpoint.step >= 0, "a step below 0");
    if (!done) return;
    free_run();
    make_run();
}

static void read_model(void)
{
    struct saved_model saved;
    const bool done = saved_model_read(PATH, &saved);
    expect(done == !rapt_error(), "neither a translator nor an error, or both");
    saved_model_free(&saved);
}

/* The shard beside an index, which holds "a". */
static void put_shard(void)
{
    static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
    static unsigned char shard[8 + sizeof header - 1 + 8] = {sizeof header - 1};
    memcpy(shard + 8, header, sizeof header - 1);
    fuzz_file_put("fuzz/shard", shard, sizeof shard);
}

static void read_index(const unsigned char *bytes, size_t size)
{
    fuzz_file_put("fuzz/i.json", bytes, size);
    rapt_archive *archive = size % 2 ? rapt_map_safetensors("fuzz/i.json") : rapt_load_safetensors("fuzz/i.json");
    expect(!archive == (rapt_error() != NULL), "neither an archive nor an error, or both");
    const int64_t count = archive ? rapt_archive_count(archive) : 0; /* an index may name none */
    expect(count == 0 || (count == 1 && rapt_archive_find(archive, "a")), "not what the shard has");
    rapt_archive_free(archive);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
    if (size < 2) return 0;
    if (!run.layer) {
        make_run();
        put_shard();
    }
    const size_t file_size = fuzz_file_put_parts(PATH, bytes + 2, size - 2, bytes[1] * 4u);
    const fuzz_memory before = fuzz_begin();
    {
        RAPT_SCOPE;
        if (bytes[0] % 3 == 0)
            read_checkpoint();
        else if (bytes[0] % 3 == 1)
            read_model();
        else
            read_index(bytes + 2, size - 2);
    }
    expect_little_memory(before, file_size);
    fuzz_end(before);
    return 0;
}
