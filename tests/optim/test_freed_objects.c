/* The debugging mode: every function that is handed an object which was freed names what it is, and does nothing. */
#include "loader_columns.h"
#include "temporary_file.h"
#include <rapt.h>

#include "tensor/debug.h"

#define GONE(expression, kind)                                                                                         \
    do {                                                                                                               \
        (void)(expression);                                                                                            \
        expect_error(RAPT_ERROR_GONE, "the " kind " is gone: it was freed");                                           \
    } while (0)
#define GONE_TOO(call, kind) GONE((call, 0), kind)

static void begin(void)
{
    rapt_debugging = true;
}

TestSuite(freed_objects, .init = begin);

Test(freed_objects, archive)
{
    RAPT_SCOPE;
    rapt_archive *gone = rapt_archive_new();
    rapt_linear *linear = rapt_linear_new(2, 2, RAPT_BIAS);
    rapt_optimizer *adam = rapt_adam_new(&linear->module, NULL);
    rapt_archive_free(gone);
    GONE_TOO(rapt_archive_free(gone), "archive");
    GONE(rapt_archive_add(gone, "a", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1))), "archive");
    GONE(rapt_archive_add_text(gone, "a", "b"), "archive");
    GONE(rapt_archive_find(gone, "a"), "archive");
    GONE(rapt_archive_find_text(gone, "a"), "archive");
    GONE(rapt_archive_count(gone), "archive");
    GONE(rapt_archive_name(gone, 0), "archive");
    GONE(rapt_archive_key(gone, 0), "archive");
    GONE(rapt_archive_stored_type(gone, 0), "archive");
    GONE(rapt_archive_tensor(gone, 0), "archive");
    GONE(rapt_save_safetensors("/nowhere/at/all", gone), "archive");
    GONE(rapt_save_safetensors_shards("/nowhere/x.safetensors.index.json", gone, 1), "archive");
    GONE(rapt_save_npz("/nowhere/at/all", gone), "archive");
    GONE(rapt_module_to_archive(&linear->module, NULL, gone), "archive");
    GONE(rapt_module_from_archive(&linear->module, NULL, gone), "archive");
    GONE(rapt_module_average(&linear->module, gone, 0.5), "archive");
    GONE(rapt_optimizer_to_archive(adam, NULL, gone), "archive");
    GONE(rapt_optimizer_from_archive(adam, NULL, gone), "archive");
    rapt_optimizer_free(adam);
    rapt_module_free(&linear->module);
}

static bool takes_any(const char *name, rapt_tensor *tensor, void *context)
{
    (void)name, (void)tensor, (void)context;
    return true;
}

Test(freed_objects, module)
{
    RAPT_SCOPE;
    rapt_module *gone = (rapt_module *)rapt_linear_new(2, 2, RAPT_BIAS);
    rapt_sequential *parent = rapt_sequential_new(0, NULL);
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2));
    rapt_module_free(gone);
    GONE_TOO(rapt_module_free(gone), "Linear");
    GONE(rapt_module_retain(gone), "Linear");
    GONE(rapt_module_add_parameter(gone, "a", x), "Linear");
    GONE(rapt_module_add_child(gone, "a", NULL), "Linear");
    GONE(rapt_module_add_child(&parent->module, "a", gone), "Linear");
    GONE(rapt_module_visit(gone, RAPT_PARAMETERS, takes_any, NULL), "Linear");
    GONE(rapt_module_list(gone, RAPT_PARAMETERS), "Linear");
    GONE(rapt_module_find(gone, "weight"), "Linear");
    GONE_TOO(rapt_module_train(gone, false), "Linear");
    GONE_TOO(rapt_module_clear_gradients(gone), "Linear");
    GONE(rapt_module_freeze(gone, "*", true), "Linear");
    GONE(rapt_module_forward(gone, x), "Linear");
    GONE(rapt_module_save(gone, "/nowhere/at/all"), "Linear");
    rapt_module_free(&parent->module);
}

/* The layer, when it is gone; what else the call is given does not matter then. */
#define GONE_LAYER(type, make, call)                                                                                   \
    do {                                                                                                               \
        rapt_##type *gone = make;                                                                                      \
        cr_assert_not_null(gone, "%s", rapt_error());                                                                  \
        rapt_module_free((rapt_module *)gone);                                                                         \
        cr_expect_not(call);                                                                                           \
        expect_error(RAPT_ERROR_GONE, " is gone: it was freed");                                                       \
    } while (0)

static const rapt_bahdanau_config translator = {.vocabulary = 5, .embedding = 3, .hidden = 4, .layers = 1};
static const rapt_gpt_config gpt_config = {.vocabulary = 5, .context = 4, .hidden = 4, .layers = 1, .heads = 2};
static const rapt_transformer_config parts = {.hidden = 4,
                                              .heads = 2,
                                              .feed_forward = 5,
                                              .encoder_layers = 1,
                                              .decoder_layers = 1};
static const rapt_multi_head_attention_config heads = {.hidden = 4, .heads = 2};

Test(freed_objects, layers_and_models)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 4)), *tokens = rapt_zeros(RAPT_INT64, RAPT_SHAPE(2, 3));
    GONE_LAYER(attention, rapt_dot_product_attention_new(0), rapt_attention_forward(gone, x, x, x, NULL));
    GONE_LAYER(attention, rapt_dot_product_attention_new(0), rapt_attention_prepare(gone, x, NULL));
    GONE_LAYER(attention, rapt_dot_product_attention_new(0), rapt_attention_pool(gone, x, x, x, NULL));
    GONE_LAYER(multi_head_attention, rapt_multi_head_attention_new(&heads),
               rapt_multi_head_attention_forward(gone, x, x, x, NULL, NULL));
    GONE_LAYER(gru, rapt_gru_new(4, 2, 1, 0), rapt_gru_forward(gone, x, NULL, NULL));
    GONE_LAYER(gru, rapt_gru_new(4, 2, 1, 0), rapt_gru_forward_padded(gone, x, tokens, NULL, NULL));
    GONE_LAYER(gru, rapt_gru_new(4, 2, 1, 0), rapt_gru_forward_packed(gone, x, tokens, NULL, NULL));
    GONE_LAYER(lstm, rapt_lstm_new(4, 2, 1, 0), rapt_lstm_forward(gone, x, NULL, NULL, NULL, NULL));
    GONE_LAYER(sinusoidal_positions, rapt_sinusoidal_positions_new(4, 0),
               rapt_sinusoidal_positions_forward(gone, x, 0));
    GONE_LAYER(sinusoidal_positions, rapt_sinusoidal_positions_new(4, 0),
               rapt_sinusoidal_positions_forward_at(gone, x, tokens));
    GONE_LAYER(learned_positions, rapt_learned_positions_new(5, 4, 0), rapt_learned_positions_forward(gone, x, 0));
    GONE_LAYER(learned_positions, rapt_learned_positions_new(5, 4, 0),
               rapt_learned_positions_forward_at(gone, x, tokens));
    GONE_LAYER(add_norm, rapt_add_norm_new(4, RAPT_BIAS, 0), rapt_add_norm_forward(gone, x, x));
    GONE_LAYER(encoder_layer, rapt_encoder_layer_new(&parts), rapt_encoder_layer_forward(gone, x, NULL, NULL));
    GONE_LAYER(decoder_layer, rapt_decoder_layer_new(&parts), rapt_decoder_layer_forward(gone, x, x, NULL, NULL, NULL));
    GONE_LAYER(transformer_encoder, rapt_transformer_encoder_new(&parts),
               rapt_transformer_encoder_forward(gone, x, NULL, NULL));
    GONE_LAYER(transformer_decoder, rapt_transformer_decoder_new(&parts),
               rapt_transformer_decoder_forward(gone, x, x, NULL, NULL, NULL));
    GONE_LAYER(transformer, rapt_transformer_new(&parts), rapt_transformer_forward(gone, x, x, NULL, NULL, NULL));
    GONE_LAYER(gpt, rapt_gpt_new(&gpt_config), rapt_gpt_forward(gone, tokens, NULL));
    GONE_LAYER(gpt, rapt_gpt_new(&gpt_config), rapt_gpt_loss(gone, tokens, tokens, NULL));
    GONE_LAYER(gpt, rapt_gpt_new(&gpt_config), rapt_gpt_forward_packed(gone, tokens, tokens));
    GONE_LAYER(gpt, rapt_gpt_new(&gpt_config), rapt_gpt_hidden(gone, tokens, NULL));
    GONE_LAYER(gpt, rapt_gpt_new(&gpt_config), rapt_gpt_loss_packed(gone, tokens, tokens, tokens, NULL));
    GONE_LAYER(gpt, rapt_gpt_new(&gpt_config), rapt_gpt_cache_new(gone));
    GONE_LAYER(rotary, rapt_rotary_new(), rapt_rotary_forward(gone, x, 0));
    GONE_LAYER(rotary, rapt_rotary_new(), rapt_rotary_forward_at(gone, x, tokens));
    GONE_LAYER(alibi, rapt_alibi_new(2), rapt_alibi_forward(gone, RAPT_FLOAT32, 1));
    GONE_LAYER(relative_bias, rapt_relative_bias_new(2, 1), rapt_relative_bias_forward(gone));
    GONE_LAYER(scoring, rapt_dot_product_scoring_new(), rapt_score(gone, x, x));
    GONE_LAYER(score_modification, rapt_soft_cap_new(1), rapt_modify_scores(gone, x, 0));
    GONE_LAYER(multi_head_attention, rapt_multi_head_attention_new(&heads),
               rapt_multi_head_attention_set_head_mask(gone, NULL));
    rapt_tensor *state;
    GONE_LAYER(bahdanau_encoder, rapt_bahdanau_encoder_new(&translator),
               rapt_bahdanau_encoder_forward(gone, tokens, &state));
    GONE_LAYER(bahdanau_encoder, rapt_bahdanau_encoder_new(&translator),
               rapt_bahdanau_encoder_forward_packed(gone, tokens, tokens, &state));
    GONE_LAYER(bahdanau_decoder, rapt_bahdanau_decoder_new(&translator),
               rapt_bahdanau_decoder_start(gone, x, x, NULL).keys);
    GONE_LAYER(bahdanau_decoder, rapt_bahdanau_decoder_new(&translator),
               rapt_bahdanau_decoder_start_packed(gone, x, x, tokens).keys);
    rapt_bahdanau_state begun = {.keys = x, .values = x, .hidden = x};
    GONE_LAYER(bahdanau_decoder, rapt_bahdanau_decoder_new(&translator),
               rapt_bahdanau_decoder_forward(gone, tokens, &begun, NULL));
    GONE_LAYER(bahdanau_decoder, rapt_bahdanau_decoder_new(&translator),
               rapt_bahdanau_decoder_loss(gone, tokens, &begun, tokens, NULL));
    GONE_LAYER(bahdanau_decoder, rapt_bahdanau_decoder_new(&translator),
               rapt_bahdanau_decoder_forward_packed(gone, tokens, tokens, &begun));
    GONE_LAYER(bahdanau_decoder, rapt_bahdanau_decoder_new(&translator),
               rapt_bahdanau_decoder_loss_packed(gone, tokens, tokens, &begun, tokens, NULL));
}

Test(freed_objects, list_of_tensors)
{
    rapt_linear *linear = rapt_linear_new(2, 2, RAPT_BIAS);
    rapt_tensor_list *gone = rapt_module_list(&linear->module, RAPT_PARAMETERS);
    rapt_tensor_list_free(gone);
    GONE_TOO(rapt_tensor_list_free(gone), "list of tensors");
    rapt_module_free(&linear->module);
}

Test(freed_objects, cache_of_a_gpt)
{
    RAPT_SCOPE;
    rapt_gpt *gpt = rapt_gpt_new(&gpt_config);
    rapt_gpt_cache *gone = rapt_gpt_cache_new(gpt);
    rapt_tensor *rows = rapt_zeros(RAPT_INT64, RAPT_SHAPE(1));
    const rapt_token_model model = rapt_gpt_token_model(gone);
    const rapt_generation how = {.length = 1};
    rapt_gpt_cache_free(gone);
    GONE(rapt_generate(&model, rapt_unsqueeze(rows, 0), &how), "GPT's cache");
    GONE(rapt_generate_packed(&model, rows, rapt_packing_starts(rapt_ones(RAPT_INT64, RAPT_SHAPE(1))), &how),
         "GPT's cache");
    GONE_TOO(rapt_gpt_cache_free(gone), "GPT's cache");
    GONE_TOO(rapt_gpt_cache_clear(gone), "GPT's cache");
    GONE(rapt_gpt_cache_length(gone), "GPT's cache");
    GONE(rapt_gpt_cache_select(gone, rows), "GPT's cache");
    GONE(rapt_gpt_forward(gpt, rapt_unsqueeze(rows, 0), gone), "GPT's cache");
    rapt_module_free(&gpt->module);
}

Test(freed_objects, optimizer)
{
    RAPT_SCOPE;
    rapt_linear *linear = rapt_linear_new(2, 2, RAPT_BIAS);
    rapt_optimizer *gone = rapt_adam_new(&linear->module, NULL), *muon = rapt_muon_new(&linear->module, NULL);
    rapt_archive *archive = rapt_archive_new();
    rapt_accumulation accumulation = {.weight = 1};
    rapt_optimizer_free(gone);
    rapt_optimizer_free(muon);
    GONE_TOO(rapt_optimizer_free(gone), "Adam");
    GONE(rapt_optimizer_add(gone, "a", linear->weight), "Adam");
    GONE(rapt_optimizer_group(gone, "*", &(rapt_group_config){0}), "Adam");
    GONE(rapt_optimizer_step(gone), "Adam");
    GONE_TOO(rapt_optimizer_clear_gradients(gone), "Adam");
    GONE(rapt_optimizer_get_learning_rate(gone), "Adam");
    GONE(rapt_optimizer_set_learning_rate(gone, 1), "Adam");
    GONE(rapt_optimizer_get_steps(gone), "Adam");
    GONE(rapt_optimizer_count(gone), "Adam");
    GONE(rapt_optimizer_is_elementwise(gone), "Adam");
    GONE(rapt_clip_gradient_norm(gone, 1, NULL), "Adam");
    GONE(rapt_clip_gradient_value(gone, 1), "Adam");
    GONE(rapt_optimizer_step_clipped(gone, 1, NULL), "Adam");
    GONE(rapt_optimizer_to_archive(gone, NULL, archive), "Adam");
    GONE(rapt_optimizer_from_archive(gone, NULL, archive), "Adam");
    GONE(rapt_accumulation_end(&accumulation, gone, NULL), "Adam");
    GONE(rapt_accumulation_end_many(&accumulation, 1, &gone, NULL), "Adam");
    GONE(rapt_muon_by_adamw(muon, "*"), "Muon");
    rapt_archive_free(archive);
    rapt_module_free(&linear->module);
}

Test(freed_objects, average)
{
    rapt_linear *linear = rapt_linear_new(2, 2, RAPT_BIAS);
    rapt_average *gone = rapt_average_new(&linear->module, NULL);
    rapt_archive *archive = rapt_archive_new();
    rapt_average_free(gone);
    GONE_TOO(rapt_average_free(gone), "average");
    GONE(rapt_average_update(gone), "average");
    GONE(rapt_average_swap(gone), "average");
    GONE(rapt_average_get_updates(gone), "average");
    GONE(rapt_average_to_archive(gone, NULL, archive), "average");
    GONE(rapt_average_from_archive(gone, NULL, archive), "average");
    rapt_archive_free(archive);
    rapt_module_free(&linear->module);
}

Test(freed_objects, loader)
{
    RAPT_SCOPE;
    rapt_column column = numbers();
    rapt_loader *gone = loader_of((rapt_loader_config){.columns = &column, .column_count = 1, .batch_size = 4});
    rapt_batch batch;
    rapt_loader_state state = {0};
    rapt_loader_free(gone);
    GONE_TOO(rapt_loader_free(gone), "loader");
    GONE(rapt_loader_next(gone, &batch), "loader");
    GONE(rapt_loader_count_batches(gone), "loader");
    GONE(rapt_loader_get_state(gone, &state), "loader");
    GONE(rapt_loader_set_state(gone, state), "loader");
}

Test(freed_objects, metrics)
{
    char path[32];
    write_temporary_file(path, "", 0);
    rapt_metrics *gone = rapt_metrics_open(path, RAPT_METRICS_CSV, false);
    cr_assert(rapt_metrics_close(gone), "%s", rapt_error());
    GONE(rapt_metrics_close(gone), "metrics");
    GONE(rapt_metrics_write(gone, 1, 0, NULL), "metrics");
    unlink(path);
}
