/* Writes what check_in_pytorch.py reads: for each case of a layer with weights, new random weights as rapt_module_save
 * writes them, and what the layer makes of the fixture's inputs.
 * write_weights DIRECTORY: the files are FIXTURE.CASE.float32.weights.safetensors, ….outputs.safetensors. */
#include <stdio.h>

#include "parity.h"

static bool save_outputs(const parity *run, const char *path)
{
    rapt_archive *archive = rapt_archive_new();
    bool good = archive != NULL;
    for (int i = 0; i < run->output_count && good; i++)
        good = rapt_archive_add(archive, run->outputs[i].name, run->outputs[i].tensor);
    good = good && rapt_save_safetensors(path, archive);
    rapt_archive_free(archive);
    return good;
}

static bool write_case(const char *directory, const char *name, const rapt_archive *fixture, const parity_case *of,
                       rapt_dtype dtype)
{
    RAPT_SCOPE;
    char weights[1024], path[1024];
    snprintf(weights, sizeof weights, "%s/%s.%s.%s.weights.safetensors", directory, name, of->name,
             rapt_dtype_name(dtype));
    snprintf(path, sizeof path, "%s/%s.%s.%s.outputs.safetensors", directory, name, of->name, rapt_dtype_name(dtype));
    parity run = {.fixture = fixture, .dtype = dtype, .weights = weights};
    bool good = parity_run(&run, of);
    if (good && run.module && rapt_module_parameter_count(run.module) > 0) good = save_outputs(&run, path);
    parity_end(&run);
    return good;
}

static bool write_cases(const char *directory, const char *name, const parity_case *cases)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/tests/parity/%s.safetensors", RAPT_SOURCE_ROOT, name);
    rapt_archive *fixture = rapt_load_safetensors(path);
    bool good = fixture != NULL;
    for (const parity_case *of = cases; of->name && good; of++)
        good = write_case(directory, name, fixture, of, RAPT_FLOAT32) &&
               write_case(directory, name, fixture, of, RAPT_FLOAT64);
    rapt_archive_free(fixture);
    return good;
}

int main(int count, char **arguments)
{
    if (count != 2) {
        fprintf(stderr, "usage: write_weights DIRECTORY\n");
        return 2;
    }
    rapt_seed(1);
    bool good = true;
#define WRITE(fixture) good = good && write_cases(arguments[1], #fixture, parity_##fixture);
    PARITY_FIXTURES(WRITE)
    if (!good) fprintf(stderr, "write_weights: %s\n", rapt_error());
    return good ? 0 : 1;
}
