/* How far results are between instruction-set levels and compilers.
 *
 * gradients FILE            writes losses and gradients of the four models for some batches
 * gradients FILE FILE       compares two of these: fails when a loss is further than bound_of_loss from the other's, in
 *                           shares of it, or a gradient further than bound_of_gradient, in shares of the largest number
 *                           of its tensor */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models.h"

static const double bound_of_loss = 1e-6, bound_of_gradient = 3e-5;

enum { batches = 10 };

struct place {
    rapt_archive *archive;
    const char *prefix;
};

static bool add_gradient(const char *name, rapt_tensor *parameter, void *context)
{
    const struct place *place = context;
    char full[256];
    snprintf(full, sizeof full, "%s.%s", place->prefix, name);
    return !rapt_gradient(parameter) || rapt_archive_add(place->archive, full, rapt_gradient(parameter));
}

/* Of one batch after the other, with the same weights. */
static void add_model(rapt_archive *archive, int which)
{
    char prefix[64], name[80];
    struct model m = model_new(which);
    for (int batch = 0; batch < batches; batch++) {
        rapt_module_clear_gradients(m.root);
        rapt_tensor *loss = m.loss(&m);
        rapt_backward(loss);
        snprintf(prefix, sizeof prefix, "%s.%d", model_names[which], batch);
        snprintf(name, sizeof name, "%s.loss", prefix);
        rapt_archive_add(archive, name, rapt_detach(loss));
        rapt_module_visit(m.root, RAPT_PARAMETERS, add_gradient, &(struct place){archive, prefix});
    }
    rapt_module_free(m.root);
}

static int write_all(const char *path)
{
    RAPT_SCOPE;
    rapt_archive *archive = rapt_archive_new();
    for (int which = 0; which < num_models; which++) add_model(archive, which);
    const bool good = !rapt_error() && rapt_save_safetensors(path, archive);
    rapt_archive_free(archive);
    return good ? 0 : 1;
}

static double largest_of(rapt_tensor *x)
{
    return rapt_item(rapt_max(rapt_abs(x), RAPT_ALL_AXES, false));
}

/* The largest difference, in shares of the largest number. NaN is no small difference. */
static double distance(rapt_tensor *a, rapt_tensor *b)
{
    RAPT_SCOPE;
    const double difference = largest_of(rapt_sub(a, b)), size = largest_of(b);
    return difference == 0 ? 0 : difference / size;
}

static bool is_loss(const char *name)
{
    return strcmp(name + strlen(name) - strlen("loss"), "loss") == 0;
}

static int compare(const char *path, const char *other)
{
    rapt_archive *a = rapt_load_safetensors(path), *b = rapt_load_safetensors(other);
    const char *furthest[2] = {"", ""};
    double most[2] = {0, 0};
    int missing = rapt_archive_count(a) != rapt_archive_count(b);
    for (int64_t i = 0; i < rapt_archive_count(a); i++) {
        const char *name = rapt_archive_name(a, i);
        rapt_tensor *here = rapt_archive_tensor(a, i), *there = rapt_archive_find(b, name);
        const double d = there ? distance(here, there) : NAN;
        const int kind = is_loss(name) ? 0 : 1;
        missing += !there;
        if (d <= most[kind]) continue;
        most[kind] = d;
        furthest[kind] = name;
    }
    printf("losses within %.2g, gradients within %.2g (%s)\n", most[0], most[1], furthest[1]);
    const bool good = !missing && most[0] <= bound_of_loss && most[1] <= bound_of_gradient && !rapt_error();
    rapt_archive_free(a);
    rapt_archive_free(b);
    return good ? 0 : 1;
}

int main(int count, char **arguments)
{
    rapt_on_error(rapt_exit_on_error);
    if (count == 2) return write_all(arguments[1]);
    if (count == 3) return compare(arguments[1], arguments[2]);
    fprintf(stderr, "usage: gradients FILE [FILE]\n");
    return 2;
}
