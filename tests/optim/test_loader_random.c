/* A function that draws random numbers makes the same batches ahead on a thread, when asked, and resumed. */
#include "loader_columns.h"

enum { batches_of_epoch = 4, drawn = 3 * batches_of_epoch };

static bool draw(void *context, rapt_batch *batch)
{
    (void)context;
    batch->tensors[0] = rapt_randint(0, INT64_C(1) << 62, RAPT_SHAPE(1));
    return batch->tensors[0];
}

static rapt_loader_config drawing(bool shuffle, uint64_t seed, int prefetch)
{
    return (rapt_loader_config){.items = 7,
                                .make = draw,
                                .batch_size = 2,
                                .shuffle = shuffle,
                                .seed = seed,
                                .prefetch = prefetch};
}

/* The numbers of batches from `first` on, of three epochs. */
static void draw_all(rapt_loader *loader, int first, int64_t numbers[drawn])
{
    RAPT_SCOPE;
    rapt_batch batch;
    for (int i = first; i < drawn; i++) {
        if (i > 0 && i % batches_of_epoch == 0) cr_expect_not(rapt_loader_next(loader, &batch));
        cr_assert(rapt_loader_next(loader, &batch), "%s", rapt_error());
        numbers[i] = rapt_item_int64(batch.tensors[0]);
    }
    expect_no_error();
}

static void expect_different(const int64_t *numbers, int count)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++) cr_expect_neq(numbers[i], numbers[k], "numbers %d and %d", k, i);
}

Test(loader_random, the_numbers_are_the_same_with_and_without_prefetch)
{
    for (int way = 0; way < 4; way++) {
        int64_t expected[drawn], found[drawn];
        for (int prefetch = 0; prefetch < 3; prefetch++) {
            rapt_seed(5);
            rapt_loader *loader = loader_of(drawing(way & 1, way & 2 ? 3 : 0, prefetch));
            draw_all(loader, 0, prefetch ? found : expected);
            rapt_loader_free(loader);
            if (prefetch) cr_expect_arr_eq(found, expected, sizeof found, "way %d, prefetch %d", way, prefetch);
        }
        expect_different(expected, drawn);
    }
}

/* By rapt_seed where the loader has no seed, otherwise by the loader's. */
Test(loader_random, a_seed_decides_them)
{
    for (int way = 0; way < 4; way++) {
        const bool has_seed = way & 2;
        int64_t numbers[2 * drawn];
        for (int i = 0; i < 2; i++) {
            rapt_seed(5 + (has_seed ? 0 : (uint64_t)i));
            rapt_loader *loader = loader_of(drawing(way & 1, has_seed ? 3 + (uint64_t)i : 0, way % 3));
            draw_all(loader, 0, numbers + i * drawn);
            rapt_loader_free(loader);
        }
        expect_different(numbers, 2 * drawn);
    }
}

Test(loader_random, loaders_without_a_seed_have_numbers_of_their_own)
{
    int64_t numbers[3 * drawn];
    for (int i = 0; i < 3; i++) {
        rapt_loader *loader = loader_of(drawing(false, 0, i));
        draw_all(loader, 0, numbers + i * drawn);
        rapt_loader_free(loader);
    }
    expect_different(numbers, 3 * drawn);
}

static bool seed_anew(void *context, rapt_batch *batch)
{
    rapt_seed(8);
    return draw(context, batch);
}

/* The numbers of the program are those that it would have with a loader that makes batches elsewhere. */
Test(loader_random, the_callers_generator_goes_on_where_it_was)
{
    rapt_loader_config config = drawing(true, 3, 0);
    for (int i = 0; i < 2; i++) {
        rapt_loader *loader = loader_of(config);
        rapt_batch batch;
        rapt_random_set_state((rapt_random_state){.seed = 5, .offset = 11});
        while (rapt_loader_next(loader, &batch)) continue;
        cr_expect(rapt_random_get_state().seed == 5 && rapt_random_get_state().offset == 11);
        rapt_loader_free(loader);
        config.make = seed_anew;
    }
    expect_no_error();
}

Test(loader_random, a_checkpoint_resumes_them)
{
    static const rapt_module_class kind = {.name = "Empty"};
    rapt_module *module = rapt_module_finish(rapt_module_new(sizeof *module, &kind));
    for (int way = 0; way < 4; way++)
        for (int before = 0; before < 6; before++) {
            rapt_loader_config config = drawing(way & 1, way & 2 ? 3 : 0, before % 3);
            rapt_loader *loader = loader_of(config);
            rapt_archive *archive = rapt_archive_new();
            rapt_checkpoint checkpoint = {.module = module, .loader = loader};
            rapt_batch batch;
            int64_t expected[drawn], found[drawn];
            rapt_seed(5);
            for (int i = 0; i < before; i++)
                if (!rapt_loader_next(loader, &batch)) i--;
            cr_assert(rapt_checkpoint_to_archive(&checkpoint, archive), "%s", rapt_error());
            draw_all(loader, before, expected);
            rapt_loader_free(loader);
            rapt_seed(99);
            config.prefetch = 2 - config.prefetch;
            checkpoint.loader = loader_of(config);
            cr_assert(rapt_checkpoint_from_archive(&checkpoint, archive), "%s", rapt_error());
            draw_all(checkpoint.loader, before, found);
            cr_expect_arr_eq(found + before, expected + before, (size_t)(drawn - before) * sizeof *found,
                             "way %d, after %d batches", way, before);
            rapt_loader_free(checkpoint.loader);
            rapt_archive_free(archive);
        }
    rapt_module_free(module);
    expect_no_error();
}
