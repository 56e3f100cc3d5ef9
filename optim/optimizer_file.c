/* An optimizer's state to and from archives: "steps", "learning_rate", and "NAME.step" and "NAME.STATE" for each
 * parameter. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "archive.h"
#include "core.h"
#include "tensor/archive.h"
#include "tensor/core.h"
#include "tensor/debug.h"

enum { full_name_size = 2 * RAPT_PARAMETER_NAME_SIZE };

/* prefix + name + "." + member, or prefix + name without a member */
static bool full_name(char text[full_name_size], const char *prefix, const char *name, const char *member)
{
    int length =
        snprintf(text, full_name_size, "%s%s%s%s", prefix ? prefix : "", name, member ? "." : "", member ? member : "");
    return length < full_name_size || rapt_fail(RAPT_ERROR_VALUE, "optimizer_archive", "the name %s is too long", name);
}

/* "Adam: exp_avg, exp_avg_sq" */
static void describe(const rapt_optimizer *optimizer, char text[128])
{
    int used = snprintf(text, 128, "%s", optimizer->kind->name);
    for (int k = 0; k < optimizer->state_count; k++)
        used += snprintf(text + used, (size_t)(128 - used), "%s%s", k ? ", " : ": ", optimizer->state_names[k]);
}

static bool add_slot(const rapt_optimizer *optimizer, const rapt_slot *slot, const char *prefix, rapt_archive *archive)
{
    char name[full_name_size];
    if (!full_name(name, prefix, slot->name, "step") || !rapt_archive_add_integer(archive, name, slot->steps))
        return false;
    int64_t shape[RAPT_MAX_RANK];
    for (int k = 0; slot->steps > 0 && k < optimizer->state_count; k++)
        if (rapt_slot_has_state(optimizer, slot, k, shape) &&
            (!rapt_check_state(optimizer, slot, k) || !full_name(name, prefix, slot->name, optimizer->state_names[k]) ||
             !rapt_archive_add(archive, name, slot->states[k])))
            return false;
    return true;
}

static bool collect(const rapt_optimizer *optimizer, const char *prefix, rapt_archive *archive)
{
    RAPT_SCOPE;
    char name[full_name_size], description[128];
    describe(optimizer, description);
    rapt_tensor *rate = rapt_scalar(RAPT_FLOAT64, optimizer->learning_rate);
    if (!rate || !full_name(name, prefix, "kind", NULL) || !rapt_archive_add_text(archive, name, description) ||
        !full_name(name, prefix, "learning_rate", NULL) || !rapt_archive_add(archive, name, rate) ||
        !full_name(name, prefix, "steps", NULL) || !rapt_archive_add_integer(archive, name, optimizer->steps))
        return false;
    for (int i = 0; i < optimizer->count; i++)
        if (!add_slot(optimizer, &optimizer->slots[i], prefix, archive)) return false;
    return true;
}

bool rapt_optimizer_to_archive(const rapt_optimizer *optimizer, const char *prefix, rapt_archive *archive)
{
    const char *op = "optimizer_to_archive";
    if (!optimizer || !archive) return rapt_fail_null(op, optimizer ? "archive" : "optimizer");
    if (rapt_was_freed(op, optimizer) || rapt_was_freed(op, archive)) return false;
    const int64_t tensors = archive->tensors.count, texts = archive->texts.count;
    return collect(optimizer, prefix, archive) || rapt_archive_cut(archive, tensors, texts);
}

static bool read_slot(const rapt_optimizer *optimizer, const char *prefix, const rapt_archive *archive, int64_t steps,
                      rapt_slot *read)
{
    const char *op = "optimizer_from_archive";
    char name[full_name_size];
    const rapt_tensor *p = read->parameter;
    if (!full_name(name, prefix, read->name, "step") || !rapt_archive_get_integer(op, archive, name, &read->steps))
        return false;
    if (read->steps > steps)
        return rapt_fail(RAPT_ERROR_FORMAT, op, "%s is %lld; at most the optimizer's steps, %lld, expected", name,
                         (long long)read->steps, (long long)steps);
    int64_t shape[RAPT_MAX_RANK];
    for (int k = 0; read->steps > 0 && k < optimizer->state_count; k++) {
        if (!rapt_slot_has_state(optimizer, read, k, shape)) continue;
        if (!full_name(name, prefix, read->name, optimizer->state_names[k])) return false;
        const rapt_tensor *stored = rapt_archive_get(op, archive, name, p->dtype, p->rank, shape);
        read->states[k] = stored ? rapt_retain(rapt_clone(stored)) : NULL;
        if (!read->states[k]) return false;
    }
    return true;
}

/* Everything but the parameters' own. */
static bool read_header(const rapt_optimizer *optimizer, const char *prefix, const rapt_archive *archive,
                        rapt_optimizer_image *image)
{
    const char *op = "optimizer_from_archive";
    char name[full_name_size], description[128];
    describe(optimizer, description);
    if (!full_name(name, prefix, "kind", NULL) || !rapt_archive_check_text(op, archive, name, description))
        return false;
    if (!full_name(name, prefix, "steps", NULL) || !rapt_archive_get_integer(op, archive, name, &image->steps))
        return false;
    if (!full_name(name, prefix, "learning_rate", NULL)) return false;
    const rapt_tensor *rate = rapt_archive_get(op, archive, name, RAPT_FLOAT64, 0, NULL);
    if (!rate) return false;
    image->learning_rate = rapt_item(rate);
    return (image->learning_rate >= 0 && isfinite(image->learning_rate)) ||
           rapt_fail(RAPT_ERROR_FORMAT, op, "%s is %g; a finite number from 0 on expected", name, image->learning_rate);
}

bool rapt_optimizer_read(const rapt_optimizer *optimizer, const char *prefix, const rapt_archive *archive,
                         rapt_optimizer_image *image)
{
    const char *op = "optimizer_from_archive";
    *image = (rapt_optimizer_image){0};
    if (!optimizer || !archive) return rapt_fail_null(op, optimizer ? "archive" : "optimizer");
    if (rapt_was_freed(op, optimizer) || rapt_was_freed(op, archive)) return false;
    if (!read_header(optimizer, prefix, archive, image)) return false;
    image->slots = calloc((size_t)optimizer->count + 1, sizeof *image->slots);
    if (!image->slots)
        return rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for the state of %d parameters", optimizer->count);
    image->count = optimizer->count;
    RAPT_SCOPE;
    for (int i = 0; i < optimizer->count; i++) {
        const rapt_slot *slot = &optimizer->slots[i];
        image->slots[i] = (rapt_slot){.name = slot->name, .parameter = slot->parameter, .by_adamw = slot->by_adamw};
        if (!read_slot(optimizer, prefix, archive, image->steps, &image->slots[i])) return false;
    }
    return true;
}

void rapt_optimizer_take(rapt_optimizer *optimizer, rapt_optimizer_image *image)
{
    optimizer->learning_rate = image->learning_rate;
    optimizer->steps = image->steps;
    for (int i = 0; i < image->count; i++) {
        rapt_slot *slot = &optimizer->slots[i], *read = &image->slots[i];
        slot->steps = read->steps;
        for (int k = 0; k < RAPT_MAX_STATES; k++) {
            rapt_tensor *before = slot->states[k];
            slot->states[k] = read->states[k];
            read->states[k] = before;
        }
    }
}

void rapt_optimizer_image_free(rapt_optimizer_image *image)
{
    for (int i = 0; i < image->count; i++)
        for (int k = 0; k < RAPT_MAX_STATES; k++) rapt_release(image->slots[i].states[k]);
    free(image->slots);
}

bool rapt_optimizer_from_archive(rapt_optimizer *optimizer, const char *prefix, const rapt_archive *archive)
{
    rapt_optimizer_image image;
    bool good = rapt_optimizer_read(optimizer, prefix, archive, &image);
    if (good) rapt_optimizer_take(optimizer, &image);
    rapt_optimizer_image_free(&image);
    return good;
}
