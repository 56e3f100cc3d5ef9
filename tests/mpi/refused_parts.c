/* Parts of a batch that are refused: what is wrong with one rank's is an error on all, and nobody waits, not on a ring
 * either, where one rank may reach parameters that others do not. For two ranks or more. */
#include <math.h>

#include "ranks.h"

int rank, ranks, failures;

enum { length = 23, size = 4 };

static rapt_tensor *tokens(int64_t count, double token)
{
    return rapt_full(RAPT_INT64, RAPT_SHAPE(1, count), token);
}

/* A mean over nothing is 0 / 0, and 0 times its gradient no number where the nothing is a mask's. */
static void a_part_that_counts_nothing(void)
{
    rapt_linear *model = rapt_linear_new(4, 3, RAPT_BIAS);
    rapt_data_parallel *p = rapt_data_parallel_new(MPI_COMM_WORLD, &model->module, NULL);
    for (int masked = 0; masked < 2; masked++) {
        RAPT_SCOPE;
        double mean;
        const bool fails = rank == ranks - 1;
        const int64_t rows = fails && !masked ? 0 : 2;
        rapt_tensor *y = rapt_linear_forward(model, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(rows, 4)));
        rapt_tensor *counted = rapt_full(RAPT_FLOAT32, RAPT_SHAPE(rows, 3), !fails);
        rapt_tensor *loss =
            rapt_div(rapt_sum(rapt_mul(y, counted), RAPT_ALL_AXES, false), rapt_sum(counted, RAPT_ALL_AXES, false));
        expect(!fails || isnan(rapt_item(loss)), "a loss of %g", rapt_item(loss));
        expect(rapt_data_parallel_backward(p, loss, fails ? 0 : 6) == !(fails && masked), "masked %d", masked);
        expect(rapt_data_parallel_finish(p, &mean) == !masked, "masked %d: %s", masked, rapt_error());
        if (masked) expect_error_of_last(RAPT_ERROR_VALUE, "from a loss of weight 0");
        expect(masked || (isfinite(mean) && rapt_at(rapt_gradient(model->bias), (int64_t[]){1}) > 0.333), "no number");
        rapt_module_clear_gradients(&model->module);
    }
    rapt_data_parallel_free(p);
    rapt_module_free(&model->module);
}

/* What one rank hands over to its backward is refused there, and meets the others in theirs. */
static void parts_that_are_refused(rapt_ring *ring)
{
    enum {
        not_a_number,
        tiny,
        no_loss,
        no_loss_of_weight_0,
        two_losses,
        without_a_graph,
        no_number_times_0,
        no_part,
        ways
    };
    static const struct {
        const char *text;
        rapt_error_code code;
    } errors[ways] = {[not_a_number] = {"the weight is", RAPT_ERROR_VALUE},
                      [tiny] = {"the weight is", RAPT_ERROR_VALUE},
                      [no_loss] = {"loss is NULL", RAPT_ERROR_NULL},
                      [no_loss_of_weight_0] = {"no loss of weight 0, where attention goes", RAPT_ERROR_NULL},
                      [two_losses] = {"the loss is float32 [2]; one number expected", RAPT_ERROR_SHAPE},
                      [without_a_graph] = {"does not depend on a tensor that requires", RAPT_ERROR_GRAPH},
                      [no_number_times_0] = {"from a loss of weight 0", RAPT_ERROR_VALUE},
                      [no_part] = {"0 of 1 own parts went backward", RAPT_ERROR_VALUE}};
    rapt_gpt *gpt =
        rapt_gpt_new(&(rapt_gpt_config){.vocabulary = 7, .context = length, .hidden = size, .heads = 1, .layers = 2});
    rapt_attention_set_ring(&gpt->module, ring);
    rapt_data_parallel *parallel = rapt_data_parallel_new(MPI_COMM_WORLD, &gpt->module, NULL);
    for (int way = 0; way <= ways; way++) {
        RAPT_SCOPE;
        rapt_tensor *read = tokens(rapt_ring_count(ring), 3), *loss = rapt_gpt_loss(gpt, read, read, NULL);
        const bool fails = rank == ranks - 1 && way < ways;
        double weight = 1;
        if (fails && way == not_a_number) weight = NAN;
        if (fails && way == tiny) weight = 1e-320;
        if (fails && (way == no_loss_of_weight_0 || way == no_number_times_0)) weight = 0;
        if (fails && (way == no_loss || way == no_loss_of_weight_0)) loss = NULL;
        if (fails && way == two_losses) loss = rapt_expand(loss, RAPT_SHAPE(2));
        if (fails && way == no_number_times_0) loss = rapt_mul_scalar(loss, NAN);
        if (fails && way == without_a_graph) loss = rapt_detach(loss);
        if (!fails || way < no_part)
            expect(rapt_data_parallel_backward(parallel, loss, weight) == (way == ways), "way %d", way);
        expect(rapt_data_parallel_finish(parallel, NULL) == (way == ways), "way %d", way);
        if (way < ways) expect_error_of_last(errors[way].code, errors[way].text);
    }
    rapt_data_parallel_free(parallel);
    rapt_module_free(&gpt->module);
}

/* A beginning that counts nothing, whose keys the others see: their gradient goes through this rank. */
static void a_part_that_only_others_see(rapt_ring *ring)
{
    rapt_gpt *gpt =
        rapt_gpt_new(&(rapt_gpt_config){.vocabulary = 7, .context = length, .hidden = size, .heads = 1, .layers = 2});
    rapt_attention_set_ring(&gpt->module, ring);
    rapt_data_parallel *parallel = rapt_data_parallel_new(MPI_COMM_WORLD, &gpt->module, NULL);
    RAPT_SCOPE;
    rapt_tensor *read = tokens(rapt_ring_count(ring), 3), *loss = rapt_gpt_loss(gpt, read, read, NULL);
    expect(rapt_data_parallel_backward(parallel, loss, rank > 0), "%s", rapt_error());
    expect(rapt_data_parallel_finish(parallel, NULL), "%s", rapt_error());
    rapt_data_parallel_free(parallel);
    rapt_module_free(&gpt->module);
}

/* The ring of the module's last attention is the one that backward comes to first. */
static void parts_that_are_refused_on_two_rings(rapt_ring *ring)
{
    rapt_ring *second = rapt_mpi_ring_new(MPI_COMM_WORLD, length);
    rapt_multi_head_attention *layers[2];
    for (int i = 0; i < 2; i++) {
        layers[i] = rapt_multi_head_attention_new(&(rapt_multi_head_attention_config){.hidden = size, .heads = 1});
        rapt_attention_set_ring(&layers[i]->module, i ? second : ring);
    }
    rapt_sequential *both = RAPT_SEQUENTIAL((rapt_module *)layers[0], (rapt_module *)layers[1]);
    rapt_data_parallel *parallel = rapt_data_parallel_new(MPI_COMM_WORLD, &both->module, NULL);
    for (int fails = 1; fails >= 0; fails--) {
        RAPT_SCOPE;
        rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, rapt_ring_count(ring), size));
        for (int i = 0; i < 2; i++)
            x = rapt_multi_head_attention_forward(layers[i], x, x, x, RAPT_MASK(.causal = true), NULL);
        rapt_tensor *loss = rapt_sum(x, RAPT_ALL_AXES, false);
        const double weight = fails && rank == ranks - 1 ? -1 : 1;
        expect(rapt_data_parallel_backward(parallel, loss, weight) == !fails, "no error");
        expect(rapt_data_parallel_finish(parallel, NULL) == !fails, "%s", rapt_error());
        if (fails) expect_error_of_last(RAPT_ERROR_VALUE, "the weight is -1");
    }
    rapt_data_parallel_free(parallel);
    rapt_module_free(&both->module);
    rapt_mpi_ring_free(second);
}

/* A layer that the first rank alone reaches: the others begin its parcels at the end of their part. */
static void layers_that_one_rank_reaches(rapt_ring *ring)
{
    rapt_linear *expert = rapt_linear_new(size, size, 0);
    rapt_multi_head_attention *layers[2];
    for (int i = 0; i < 2; i++)
        layers[i] = rapt_multi_head_attention_new(&(rapt_multi_head_attention_config){.hidden = size, .heads = 1});
    rapt_sequential *all = RAPT_SEQUENTIAL((rapt_module *)layers[0], (rapt_module *)layers[1], (rapt_module *)expert);
    rapt_data_parallel *parallel =
        rapt_data_parallel_new(MPI_COMM_WORLD, &all->module,
                               &(rapt_data_parallel_config){.shards_gradients = true, .bucket_bytes = 16});
    rapt_optimizer *adam = rapt_adam_new(NULL, NULL);
    rapt_attention_set_ring(&all->module, ring);
    expect(rapt_attention_get_ring(&all->module) == ring && !rapt_attention_get_ring(&expert->module), "other rings");
    expect(rapt_data_parallel_shard(parallel, adam), "%s", rapt_error());
    for (int step = 0; step < 2; step++) {
        RAPT_SCOPE;
        rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, rapt_ring_count(ring), size));
        for (int i = 0; i < 2; i++)
            x = rapt_multi_head_attention_forward(layers[i], x, x, x, RAPT_MASK(.causal = true), NULL);
        if (rank == 0) x = rapt_linear_forward(expert, x);
        rapt_tensor *loss = rapt_sum(rapt_mul(x, x), RAPT_ALL_AXES, false);
        expect(rapt_data_parallel_backward(parallel, loss, 1), "%s", rapt_error());
        expect(rapt_data_parallel_finish(parallel, NULL) && rapt_data_parallel_step(parallel, 1, NULL), "%s",
               rapt_error());
    }
    rapt_data_parallel_free(parallel);
    rapt_optimizer_free(adam);
    rapt_module_free(&all->module);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    a_part_that_counts_nothing();
    rapt_ring *ring = rapt_mpi_ring_new(MPI_COMM_WORLD, length);
    parts_that_are_refused(ring);
    a_part_that_only_others_see(ring);
    parts_that_are_refused_on_two_rings(ring);
    layers_that_one_rank_reaches(ring);
    rapt_mpi_ring_free(ring);
    expect(!rapt_error(), "%s", rapt_error());
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
