/* What libFuzzer makes up, read as what a run leaves behind: a checkpoint, a translator with its vocabularies, an index
 * of shards. The answer is a run that can go on, or an error after which nothing has changed and nothing stays in
 * memory. The first byte says which it is, the second how many zeros follow the header, in fours. */
#include <string.h>

#include <rapt.h>

#include "fuzz_file.h"
#include "saved_model.h"

static void read_checkpoint(const char *path)
{
    rapt_linear *layer = rapt_linear_new(2, 1, RAPT_BIAS);
    rapt_optimizer *adam = rapt_adam_new(&layer->module, NULL);
    const double before = rapt_item(rapt_sum(layer->weight, RAPT_ALL_AXES, false));
    rapt_average *average = rapt_average_new(&layer->module, NULL);
    rapt_checkpoint run = {.module = &layer->module, .optimizer = adam, .average = average};
    const bool done = rapt_checkpoint_load(path, &run);
    expect(done == !rapt_error(), "neither a run nor an error, or both");
    expect(done || (rapt_item(rapt_sum(layer->weight, RAPT_ALL_AXES, false)) == before &&
                    rapt_optimizer_get_steps(adam) == 0 && run.step == 0),
           "an error has changed something");
    expect(!done || run.step >= 0, "a step below 0");
    rapt_average_free(average);
    rapt_optimizer_free(adam);
    rapt_module_free(&layer->module);
}

static void read_model(const char *path)
{
    struct saved_model saved;
    const bool done = saved_model_read(path, &saved);
    expect(done == !rapt_error(), "neither a translator nor an error, or both");
    saved_model_free(&saved);
}

/* The index beside a shard that holds "a". */
static void read_index(const unsigned char *bytes, size_t size)
{
    static char folder[] = "/tmp/rapt-fuzz-XXXXXX", path[64];
    if (!path[0]) {
        expect(mkdtemp(folder), "there is no folder");
        snprintf(path, sizeof path, "%s/shard", folder);
        rapt_archive *shard = rapt_archive_new();
        expect(rapt_archive_add(shard, "a", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2))) &&
                   rapt_save_safetensors(path, shard),
               "there is no shard");
        rapt_archive_free(shard);
        snprintf(path, sizeof path, "%s/i.json", folder);
    }
    FILE *file = fopen(path, "wb");
    expect(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0, "the index cannot be written");
    rapt_archive *archive = size % 2 ? rapt_map_safetensors(path) : rapt_load_safetensors(path);
    expect(!archive == (rapt_error() != NULL), "neither an archive nor an error, or both");
    expect(!archive || (rapt_archive_count(archive) == 1 && rapt_archive_find(archive, "a")), "not what the shard has");
    rapt_archive_free(archive);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
    if (size < 2) return 0;
    const fuzz_file *made = fuzz_file_empty();
    write_parts(made->file, bytes + 2, size - 2, bytes[1] * 4u);
    const int64_t live = fuzz_begin();
    {
        RAPT_SCOPE;
        if (bytes[0] % 3 == 0)
            read_checkpoint(made->path);
        else if (bytes[0] % 3 == 1)
            read_model(made->path);
        else
            read_index(bytes + 2, size - 2);
    }
    expect_little_memory(live, size + bytes[1] * 4u);
    fuzz_end(live);
    return 0;
}
