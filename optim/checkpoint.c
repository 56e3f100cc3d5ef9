/* Checkpoints: a safetensors file with "module.…", "optimizer.…", "random_state", "step", "order", "records", a
 * note, and parts of their own file. */
#include <rapt/checkpoint.h>

#include "archive.h"
#include "checkpoint_parts.h"
#include "core.h"
#include "nn/entry.h"
#include "tensor/archive.h"
#include "tensor/core.h"

static const char *const format = "rapt checkpoint 1";

/* Seed and offset, the bits of uint64 as int64. */
enum { random_numbers = 2 };

static bool check_list(const char *op, rapt_error_code code, const char *name, rapt_dtype dtype,
                       const rapt_tensor *list)
{
    if (!list || (list->dtype == dtype && list->rank == 1)) return true;
    char found[RAPT_SHAPE_TEXT + 16];
    return rapt_fail(code, op, "%s is %s; %s (n) expected", name, rapt_describe(list, found, sizeof found),
                     rapt_dtype_name(dtype));
}

static bool check_lists(const char *op, rapt_error_code code, const rapt_tensor *order, const rapt_tensor *records)
{
    return check_list(op, code, "order", RAPT_INT64, order) && check_list(op, code, "records", RAPT_FLOAT64, records);
}

static bool check_checkpoint(const char *op, const rapt_checkpoint *checkpoint)
{
    if (!checkpoint) return rapt_fail_null(op, "checkpoint");
    return checkpoint->module || rapt_fail_null(op, "module");
}

static bool add_random_state(rapt_archive *archive)
{
    RAPT_SCOPE;
    const rapt_random_state state = rapt_random_get_state();
    const uint64_t bits[random_numbers] = {state.seed, state.offset};
    rapt_tensor *tensor = rapt_from(RAPT_INT64, RAPT_SHAPE(random_numbers), bits);
    return tensor && rapt_archive_add(archive, "random_state", tensor);
}

static bool collect(const char *op, const rapt_checkpoint *checkpoint, rapt_archive *archive)
{
    return rapt_archive_add_text(archive, "format", format) &&
           rapt_archive_add_text(archive, "module.kind", checkpoint->module->kind->name) &&
           (!checkpoint->note || rapt_archive_add_text(archive, "note", checkpoint->note)) &&
           rapt_archive_add_integer(archive, "step", checkpoint->step) && add_random_state(archive) &&
           (!checkpoint->order || rapt_archive_add(archive, "order", checkpoint->order)) &&
           (!checkpoint->records || rapt_archive_add(archive, "records", checkpoint->records)) &&
           rapt_checkpoint_add_parts(op, checkpoint, archive) &&
           rapt_module_to_archive(checkpoint->module, "module.", archive) &&
           (!checkpoint->optimizer || rapt_optimizer_to_archive(checkpoint->optimizer, "optimizer.", archive));
}

static bool add_checkpoint(const char *op, const rapt_checkpoint *checkpoint, rapt_archive *archive)
{
    if (!check_checkpoint(op, checkpoint) ||
        !check_lists(op, RAPT_ERROR_SHAPE, checkpoint->order, checkpoint->records) ||
        !rapt_archive_check_integer(op, RAPT_ERROR_VALUE, "step", checkpoint->step))
        return false;
    const int64_t tensors = archive->tensors.count, texts = archive->texts.count;
    return collect(op, checkpoint, archive) || rapt_archive_cut(archive, tensors, texts);
}

bool rapt_checkpoint_to_archive(const rapt_checkpoint *checkpoint, rapt_archive *archive)
{
    const char *op = "checkpoint_to_archive";
    if (!archive) return rapt_fail_null(op, "archive");
    if (rapt_was_freed(op, archive)) return false;
    return add_checkpoint(op, checkpoint, archive);
}

bool rapt_checkpoint_save(const char *path, const rapt_checkpoint *checkpoint)
{
    const char *op = "checkpoint_save";
    if (!path) return rapt_fail_null(op, "path");
    rapt_archive *archive = rapt_archive_new();
    bool good = archive && add_checkpoint(op, checkpoint, archive) && rapt_save_safetensors(path, archive);
    rapt_archive_free(archive);
    return good;
}

/* Reads all of a checkpoint but module and optimizer; order and records are copies of the innermost scope. */
static bool read_run(const char *op, const rapt_archive *archive, const rapt_checkpoint *expected,
                     rapt_checkpoint *read, rapt_random_state *random)
{
    if (!rapt_archive_check_text(op, archive, "format", format) ||
        !rapt_archive_check_text(op, archive, "module.kind", expected->module->kind->name) ||
        (expected->note && !rapt_archive_check_text(op, archive, "note", expected->note)) ||
        !rapt_archive_get_integer(op, archive, "step", &read->step))
        return false;
    const rapt_tensor *state = rapt_archive_get(op, archive, "random_state", RAPT_INT64, RAPT_SHAPE(random_numbers));
    if (!state) return false;
    const uint64_t *bits = rapt_data(state);
    *random = (rapt_random_state){.seed = bits[0], .offset = bits[1]};
    const rapt_tensor *order = rapt_archive_find(archive, "order");
    const rapt_tensor *records = rapt_archive_find(archive, "records");
    if (!check_lists(op, RAPT_ERROR_FORMAT, order, records)) return false;
    read->order = order ? rapt_clone(order) : NULL;
    read->records = records ? rapt_clone(records) : NULL;
    return (!order || read->order) && (!records || read->records);
}

/* The module is the last that can fail, and it changes nothing when it does. */
static bool load(const char *op, const rapt_archive *archive, rapt_checkpoint *checkpoint)
{
    rapt_checkpoint read = *checkpoint;
    rapt_random_state random;
    if (!read_run(op, archive, checkpoint, &read, &random)) return false;
    rapt_optimizer_image image = {0};
    rapt_checkpoint_parts parts;
    bool good = rapt_checkpoint_read_parts(checkpoint, archive, &parts) &&
                (!read.optimizer || rapt_optimizer_read(read.optimizer, "optimizer.", archive, &image)) &&
                rapt_module_take(op, read.module, &(rapt_load_part){.prefix = "module."}, true, archive);
    if (good) {
        if (read.optimizer) rapt_optimizer_take(read.optimizer, &image);
        rapt_random_set_state(random);
        rapt_checkpoint_take_parts(checkpoint, &parts);
        *checkpoint = read;
        rapt_keep(read.order);
        rapt_keep(read.records);
    }
    rapt_optimizer_image_free(&image);
    rapt_checkpoint_free_parts(&parts);
    return good;
}

bool rapt_checkpoint_from_archive(rapt_checkpoint *checkpoint, const rapt_archive *archive)
{
    const char *op = "checkpoint_from_archive";
    if (!archive) return rapt_fail_null(op, "archive");
    if (!check_checkpoint(op, checkpoint)) return false;
    RAPT_SCOPE;
    return load(op, archive, checkpoint);
}

bool rapt_checkpoint_load(const char *path, rapt_checkpoint *checkpoint)
{
    const char *op = "checkpoint_load";
    if (!path) return rapt_fail_null(op, "path");
    if (!check_checkpoint(op, checkpoint)) return false;
    RAPT_SCOPE;
    rapt_archive *archive = rapt_load_safetensors(path);
    bool good = archive && load(op, archive, checkpoint);
    rapt_archive_free(archive);
    return good;
}
