/* What a checkpoint may have beside module and optimizer: "average.…", "loader", "watch", "plateau". */
#include "checkpoint_parts.h"

#include <math.h>

#include "archive.h"
#include "loader.h"
#include "tensor/core.h"

/* Epoch, next item, and the bits of the random state. */
enum { loader_numbers = 4, watch_numbers = 4, plateau_numbers = watch_numbers + 2 };

static bool add(rapt_archive *archive, const char *name, rapt_dtype dtype, int64_t count, const void *numbers)
{
    RAPT_SCOPE;
    rapt_tensor *tensor = rapt_from(dtype, 1, &count, numbers);
    return tensor && rapt_archive_add(archive, name, tensor);
}

static bool add_loader(const rapt_loader *loader, rapt_archive *archive)
{
    rapt_loader_state state;
    if (!rapt_loader_get_state(loader, &state)) return false;
    const uint64_t numbers[loader_numbers] = {(uint64_t)state.epoch, (uint64_t)state.next, state.random_state.seed,
                                              state.random_state.offset};
    return add(archive, "loader", RAPT_INT64, loader_numbers, numbers);
}

/* Best, and counts behind it, which are whole numbers from 0 on that a float64 has. */
static bool check_numbers(const char *op, rapt_error_code code, const char *name, int64_t count, const double *numbers)
{
    static const char *const fields[plateau_numbers] = {"best", "values", "best_at", "waited", "cuts", "cooling"};
    const double most = (double)(INT64_C(1) << 53);
    for (int64_t i = 1; i < count; i++)
        if (!(numbers[i] >= 0 && numbers[i] <= most && numbers[i] == floor(numbers[i])))
            return rapt_fail(code, op, "%s.%s is %g; a whole number from 0 to 2^53 expected", name, fields[i],
                             numbers[i]);
    return true;
}

static bool add_numbers(const char *op, rapt_archive *archive, const char *name, int64_t count, const double *numbers)
{
    return check_numbers(op, RAPT_ERROR_VALUE, name, count, numbers) &&
           add(archive, name, RAPT_FLOAT64, count, numbers);
}

static void write_watch(const rapt_watch *watch, double *numbers)
{
    numbers[0] = watch->best;
    numbers[1] = (double)watch->values;
    numbers[2] = (double)watch->best_at;
    numbers[3] = (double)watch->waited;
}

static void read_watch(rapt_watch *watch, const double *numbers)
{
    watch->best = numbers[0];
    watch->values = (int64_t)numbers[1];
    watch->best_at = (int64_t)numbers[2];
    watch->waited = (int64_t)numbers[3];
}

bool rapt_checkpoint_add_parts(const char *op, const rapt_checkpoint *checkpoint, rapt_archive *archive)
{
    double numbers[plateau_numbers];
    if (checkpoint->average && !rapt_average_to_archive(checkpoint->average, "average.", archive)) return false;
    if (checkpoint->loader && !add_loader(checkpoint->loader, archive)) return false;
    if (checkpoint->watch) {
        write_watch(checkpoint->watch, numbers);
        if (!add_numbers(op, archive, "watch", watch_numbers, numbers)) return false;
    }
    if (!checkpoint->plateau) return true;
    write_watch(&checkpoint->plateau->watch, numbers);
    numbers[watch_numbers] = (double)checkpoint->plateau->cuts;
    numbers[watch_numbers + 1] = (double)checkpoint->plateau->cooling;
    return add_numbers(op, archive, "plateau", plateau_numbers, numbers);
}

static bool read_loader(const rapt_archive *archive, const rapt_loader *loader, rapt_loader_state *state)
{
    const char *op = "checkpoint_load";
    const rapt_tensor *stored = rapt_archive_get(op, archive, "loader", RAPT_INT64, RAPT_SHAPE(loader_numbers));
    if (!stored) return false;
    const uint64_t *numbers = rapt_data(stored);
    *state = (rapt_loader_state){(int64_t)numbers[0], (int64_t)numbers[1], {numbers[2], numbers[3]}};
    return rapt_loader_check_state(op, loader, state);
}

static const double *read_numbers(const rapt_archive *archive, const char *name, int64_t count)
{
    const char *op = "checkpoint_load";
    const rapt_tensor *stored = rapt_archive_get(op, archive, name, RAPT_FLOAT64, 1, &count);
    const double *numbers = stored ? rapt_data(stored) : NULL;
    return numbers && check_numbers(op, RAPT_ERROR_FORMAT, name, count, numbers) ? numbers : NULL;
}

bool rapt_checkpoint_read_parts(const rapt_checkpoint *checkpoint, const rapt_archive *archive,
                                rapt_checkpoint_parts *parts)
{
    *parts = (rapt_checkpoint_parts){0};
    if (checkpoint->average && !rapt_average_read(checkpoint->average, "average.", archive, &parts->average))
        return false;
    if (checkpoint->loader && !read_loader(archive, checkpoint->loader, &parts->loader)) return false;
    if (checkpoint->watch) {
        const double *numbers = read_numbers(archive, "watch", watch_numbers);
        if (!numbers) return false;
        parts->watch = *checkpoint->watch;
        read_watch(&parts->watch, numbers);
    }
    if (!checkpoint->plateau) return true;
    const double *numbers = read_numbers(archive, "plateau", plateau_numbers);
    if (!numbers) return false;
    parts->plateau = *checkpoint->plateau;
    read_watch(&parts->plateau.watch, numbers);
    parts->plateau.cuts = (int64_t)numbers[watch_numbers];
    parts->plateau.cooling = (int64_t)numbers[watch_numbers + 1];
    return true;
}

void rapt_checkpoint_take_parts(const rapt_checkpoint *checkpoint, rapt_checkpoint_parts *parts)
{
    if (checkpoint->average) rapt_average_take(checkpoint->average, &parts->average);
    if (checkpoint->loader) rapt_loader_set_state(checkpoint->loader, parts->loader);
    if (checkpoint->watch) *checkpoint->watch = parts->watch;
    if (checkpoint->plateau) *checkpoint->plateau = parts->plateau;
}

void rapt_checkpoint_free_parts(rapt_checkpoint_parts *parts)
{
    rapt_archive_free(parts->average.values);
}
