/* Steps of the models that ranks train, and how models are compared. */
#include <math.h>

#include "ranks.h"

static double largest(rapt_tensor *x)
{
    return rapt_item(rapt_max(rapt_abs(x), RAPT_ALL_AXES, false));
}

double difference(const rapt_module *a, const rapt_module *b)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    double apart = 0, size = 0;
    rapt_tensor_list *one = rapt_module_list(a, RAPT_PARAMETERS), *other = rapt_module_list(b, RAPT_PARAMETERS);
    for (int i = 0; i < one->count; i++) {
        if (rapt_count(one->tensors[i]) == 0) continue;
        apart = fmax(apart, largest(rapt_sub(one->tensors[i], other->tensors[i])));
        size = fmax(size, largest(other->tensors[i]));
    }
    rapt_tensor_list_free(one);
    rapt_tensor_list_free(other);
    return apart / size;
}

/* FNV-1a of all bits. */
static bool add_bits(const char *name, rapt_tensor *tensor, void *context)
{
    uint64_t *hash = context;
    const unsigned char *bytes = rapt_data(tensor);
    (void)name;
    for (size_t i = 0; i < (size_t)rapt_count(tensor) * rapt_dtype_size(rapt_get_dtype(tensor)); i++)
        *hash = (*hash ^ bytes[i]) * UINT64_C(0x100000001B3);
    return true;
}

uint64_t hash_of(const rapt_module *module, double loss)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325), bits;
    rapt_module_visit(module, RAPT_PARAMETERS, add_bits, &hash);
    memcpy(&bits, &loss, sizeof bits);
    return hash ^ bits;
}

rapt_module *make_model(const learner *learns, rapt_dtype dtype, uint64_t seed)
{
    rapt_seed(seed);
    rapt_module *model = learns->make();
    if (model) rapt_module_cast(model, dtype);
    return model;
}

double step_together(const learner *learns, rapt_data_parallel *parallel, rapt_module *model, int step,
                     rapt_optimizer *optimizer, bool sharded)
{
    RAPT_SCOPE;
    double loss = NAN;
    for (int own = 0; own < rapt_data_parallel_count_parts(parallel); own++) {
        const rapt_part part = rapt_data_parallel_part(parallel, own, batch_rows);
        double weight = 0;
        rapt_tensor *mean = part.first < part.last ? learns->loss(model, step, part.first, part.last, &weight) : NULL;
        expect(rapt_data_parallel_backward(parallel, mean, weight), "%s", rapt_error());
    }
    expect(rapt_data_parallel_finish(parallel, &loss), "%s", rapt_error());
    expect(sharded ? rapt_data_parallel_step(parallel, 0.5, NULL) : rapt_optimizer_step_clipped(optimizer, 0.5, NULL),
           "%s", rapt_error());
    return loss;
}

double step_alone(const learner *learns, rapt_module *model, int step, rapt_optimizer *optimizer)
{
    RAPT_SCOPE;
    double weight;
    rapt_tensor *loss = learns->loss(model, step, 0, batch_rows, &weight);
    expect(rapt_backward(loss) && rapt_optimizer_step_clipped(optimizer, 0.5, NULL), "%s", rapt_error());
    return rapt_item(loss);
}
