/* One module in several places: who owns it, when it goes, and what the walks make of it. */
#include "node.h"

#include <pthread.h>

/* A layer that doubles, and counts with the other nodes. */
static rapt_tensor *twice(rapt_module *module, rapt_tensor *x)
{
    (void)module;
    return rapt_add(x, x);
}

static const rapt_module_class twice_kind = {.name = "Twice", .forward = twice, .destroy = count_freed};

static rapt_module *twice_new(void)
{
    rapt_module *module = rapt_module_new(sizeof *module, &twice_kind);
    cr_assert_not_null(module, "%s", rapt_error());
    return module;
}

Test(module_sharing, a_layer_stands_twice_in_one_list)
{
    RAPT_SCOPE;
    rapt_linear *a = rapt_linear_new(2, 3, RAPT_BIAS), *b = rapt_linear_new(3, 1, RAPT_BIAS);
    rapt_module *relu = rapt_activation_new("ReLU", rapt_relu), *last = twice_new();
    rapt_sequential *net = RAPT_SEQUENTIAL(&a->module, relu, &b->module, relu, last, last);
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(4, 2));
    rapt_tensor *y = rapt_relu(rapt_linear_forward(b, rapt_relu(rapt_linear_forward(a, x))));
    rapt_tensor *found = rapt_sequential_forward(net, x);
    cr_assert_not_null(found, "%s", rapt_error());
    cr_expect(same_bits(found, rapt_mul_scalar(y, 4)));
    rapt_module_free(&net->module);
    cr_expect_eq(freed, 1);
    expect_no_error();
}

Test(module_sharing, a_child_has_two_names)
{
    rapt_module *root = node_new(), *child = node_new();
    cr_expect_eq(rapt_module_add_child(root, "a", child), child);
    cr_expect_eq(rapt_module_add_child(root, "b", child), child);
    cr_expect_null(rapt_module_add_child(root, "b", child));
    expect_error(RAPT_ERROR_VALUE, "in use");
    cr_expect_eq(freed, 0, "it has two owners still");
    cr_expect_null(rapt_module_finish(root));
    cr_expect_eq(freed, 2);
}

Test(module_sharing, a_child_has_two_parents_that_go_in_either_order)
{
    for (int order = 0; order < 2; order++) {
        freed = 0;
        rapt_module *parents[] = {node_new(), node_new()}, *child = node_new();
        for (int i = 0; i < 2; i++) rapt_module_add_child(parents[i], "child", child);
        rapt_module_free(parents[order]);
        cr_expect_eq(freed, 1);
        cr_expect(child->training);
        rapt_module_free(parents[1 - order]);
        cr_expect_eq(freed, 3);
    }
    expect_no_error();
}

Test(module_sharing, what_the_program_frees_its_parents_keep)
{
    rapt_module *root = node_new(), *child = node_new();
    rapt_module_add_child(root, "child", child);
    rapt_module_free(child);
    cr_expect_eq(freed, 0);
    rapt_module_add_child(root, "again", child);
    rapt_module_free(child);
    cr_expect_eq(freed, 0);
    rapt_module_free(root);
    cr_expect_eq(freed, 2);
}

Test(module_sharing, two_attentions_pool_by_one_function)
{
    RAPT_SCOPE;
    rapt_attention *pooling = rapt_additive_attention_new(2, 2, 3, 0);
    rapt_multi_head_attention *heads[2];
    for (int i = 0; i < 2; i++) {
        heads[i] = rapt_multi_head_attention_new(
            &(rapt_multi_head_attention_config){.hidden = 4, .heads = 2, .pooling = pooling});
        cr_assert_not_null(heads[i], "%s", rapt_error());
        cr_expect_eq(heads[i]->pooling, pooling);
    }
    rapt_module_free(&heads[0]->module);
    rapt_attention_keep_weights(&heads[1]->module, true);
    cr_expect(pooling->keep_weights);
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(1, 3, 4));
    cr_expect_not_null(rapt_multi_head_attention_forward(heads[1], x, x, x, NULL, NULL), "%s", rapt_error());
    rapt_module_free(&heads[1]->module);
    expect_no_error();
}

Test(module_sharing, a_module_below_itself_is_an_error)
{
    rapt_module *root = node_new(), *child = node_new(), *grandchild = node_new();
    rapt_module_add_child(root, "child", child);
    rapt_module_add_child(child, "", grandchild);
    cr_expect_null(rapt_module_add_child(grandchild, "up", root));
    expect_error(RAPT_ERROR_VALUE, "'up'");
    cr_expect(grandchild->failed && !root->failed);
    cr_expect_null(rapt_module_add_child(grandchild, "up", child));
    expect_error(RAPT_ERROR_VALUE, "'up'");
    cr_expect_null(rapt_module_add_child(root, "self", root));
    expect_error(RAPT_ERROR_VALUE, "'self'");
    cr_expect_eq(freed, 0, "nobody lost a share");
    cr_expect_null(rapt_module_finish(root));
    cr_expect_eq(freed, 3);
    expect_no_error();
}

Test(module_sharing, a_retained_module_outlives_its_parents)
{
    rapt_module *root = node_new(), *child = node_new();
    cr_expect_eq(rapt_module_retain(child), child);
    rapt_module_add_child(root, "child", child);
    rapt_module_free(root);
    cr_expect_eq(freed, 1);
    root = node_new();
    rapt_module_add_child(root, "child", child);
    rapt_module_free(child);
    cr_expect_eq(freed, 1, "the new parent has it");
    rapt_module_free(child);
    cr_expect_eq(freed, 1, "and the program has nothing more to give back");
    rapt_module_free(root);
    cr_expect_eq(freed, 3);
    cr_expect_null(rapt_module_retain(NULL));
    expect_no_error();
}

/* A child whose parent could not be made is gone, unless somebody else has it. */
Test(module_sharing, after_an_error_only_the_share_of_a_new_child_is_given_back)
{
    rapt_module *root = node_new(), *child = node_new(), *kept = rapt_module_retain(node_new());
    rapt_module_add_child(root, "child", child);
    cr_expect_null(rapt_module_add_child(NULL, "child", child));
    cr_expect_null(rapt_module_add_child(NULL, "child", kept));
    cr_expect_null(rapt_module_add_child(NULL, "child", kept));
    cr_expect_eq(freed, 0);
    cr_expect_null(rapt_module_add_child(NULL, "child", node_new()));
    cr_expect_eq(freed, 1);
    rapt_module_free(kept);
    cr_expect_eq(freed, 2);
    rapt_attention *pooling = rapt_dot_product_attention_new(0);
    const rapt_multi_head_attention_config bad = {.hidden = 4, .heads = 3, .pooling = pooling};
    rapt_module_add_child(root, "pooling", &pooling->module);
    rapt_module_retain(&pooling->module);
    cr_expect_null(rapt_multi_head_attention_new(&bad));
    expect_error(RAPT_ERROR_VALUE, "3 heads");
    rapt_module_free(root);
    cr_expect_not_null(pooling->scoring, "the share of the program is its own still");
    rapt_module_free(&pooling->module);
    expect_no_error();
}

static rapt_scoring *same_scoring(int64_t size, void *context)
{
    (void)size;
    return context;
}

/* 3 attentions of an encoder and a decoder layer; W_k, W_q and w_v of all are the same. */
static void *make_transformer_of_one_scoring(void)
{
    rapt_module *node = node_new();
    rapt_scoring *scoring = rapt_additive_scoring_new(2, 2, 3);
    rapt_module_retain((rapt_module *)scoring);
    const rapt_transformer_config config = {.hidden = 4,
                                            .heads = 2,
                                            .feed_forward = 3,
                                            .encoder_layers = 1,
                                            .decoder_layers = 1,
                                            .scoring = same_scoring,
                                            .context = scoring};
    rapt_module_add_child(node, "scoring", (rapt_module *)scoring);
    if (scoring) rapt_module_add_child(node, "transformer", (rapt_module *)rapt_transformer_new(&config));
    rapt_module_free((rapt_module *)scoring);
    return rapt_module_finish(node);
}

Test(module_sharing, one_scoring_in_all_attentions)
{
    rapt_module *node = make_transformer_of_one_scoring();
    cr_assert_not_null(node, "%s", rapt_error());
    rapt_tensor *weight = rapt_module_find(node, "transformer.encoder.layers.0.self_attn.attention.W_k.weight");
    cr_expect_eq(weight, rapt_module_find(node, "scoring.W_k.weight"));
    cr_expect_eq(weight, rapt_module_find(node, "transformer.decoder.layers.0.multihead_attn.attention.W_k.weight"));
    rapt_module_free(node);
    expect_no_error();
}

static void *make_shared(void)
{
    rapt_module *node = node_new();
    rapt_module *linear = (rapt_module *)rapt_linear_new(2, 2, RAPT_BIAS), *relu = rapt_activation_new("r", rapt_relu);
    rapt_module_add_child(node, "list", (rapt_module *)RAPT_SEQUENTIAL(linear, relu, linear, relu));
    return rapt_module_finish(node);
}

static void *make_shared_pooling(void)
{
    rapt_module *node = node_new(),
                *pooling = rapt_module_retain((rapt_module *)rapt_additive_attention_new(2, 2, 3, 0));
    const rapt_multi_head_attention_config config = {.hidden = 4, .heads = 2, .pooling = (rapt_attention *)pooling};
    for (int i = 0; i < 2 && pooling; i++)
        rapt_module_add_child(node, i ? "b" : "a", (rapt_module *)rapt_multi_head_attention_new(&config));
    if (!pooling) node->failed = true;
    rapt_module_free(pooling);
    return rapt_module_finish(node);
}

Test(module_sharing, one_table_of_angles_in_all_layers)
{
    const int64_t before = live_bytes();
    const rapt_transformer_config config =
        {.hidden = 8, .heads = 2, .feed_forward = 4, .encoder_layers = 3, .decoder_layers = 3, .rotary = true};
    rapt_transformer *t = rapt_transformer_new(&config);
    cr_assert_not_null(t, "%s", rapt_error());
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(t->encoder->layers[i]->self_attn->rotary, t->encoder->layers[0]->self_attn->rotary);
        cr_expect_eq(t->decoder->layers[i]->self_attn->rotary, t->decoder->layers[0]->self_attn->rotary);
        cr_expect(t->decoder->layers[i]->self_attn->rotary && !t->decoder->layers[i]->multihead_attn->rotary);
    }
    rapt_module_free(&t->module);
    cr_expect_eq(live_bytes(), before);
}

Test(module_sharing, without_memory_nothing_leaks)
{
    cr_expect_geq(expect_clean_failures("a list", make_shared), 2);
    cr_expect_geq(expect_clean_failures("a pooling", make_shared_pooling), 8);
    cr_expect_geq(expect_clean_failures("a scoring function", make_transformer_of_one_scoring), 20);
}

/* Parents of one child, freed by as many threads at once. */
enum { thread_count = 4, rounds = 200 };

static void *free_parent(void *parent)
{
    rapt_module_free(parent);
    return NULL;
}

static _Atomic int children_freed;

static void count_child(rapt_module *module)
{
    (void)module;
    children_freed++;
}

static const rapt_module_class child_kind = {.name = "Child", .destroy = count_child};
static const rapt_module_class parent_kind = {.name = "Parent"};

Test(module_sharing, threads_free_parents_of_one_child)
{
    for (int round = 0; round < rounds; round++) {
        rapt_module *child = rapt_module_new(sizeof *child, &child_kind), *parents[thread_count];
        pthread_t threads[thread_count];
        for (int i = 0; i < thread_count; i++) {
            parents[i] = rapt_module_new(sizeof *parents[i], &parent_kind);
            rapt_module_add_child(parents[i], "child", child);
        }
        for (int i = 0; i < thread_count; i++)
            cr_assert_eq(pthread_create(&threads[i], NULL, free_parent, parents[i]), 0);
        for (int i = 0; i < thread_count; i++) pthread_join(threads[i], NULL);
        cr_assert_eq(children_freed, round + 1);
    }
    expect_no_error();
}

/* Where a module is a part twice, its path is that of the place nearest to the module that runs it. */
Test(module_sharing, a_child_that_is_also_below_a_sibling_is_named_as_the_child)
{
    RAPT_SCOPE;
    rapt_module *linear = (rapt_module *)rapt_linear_new(2, 3, RAPT_BIAS);
    rapt_module *inner = (rapt_module *)rapt_sequential_new(1, &linear);
    rapt_sequential *outer = rapt_sequential_new(2, (rapt_module *[]){inner, linear});
    cr_expect_null(rapt_sequential_forward(outer, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 2))));
    expect_error(RAPT_ERROR_SHAPE, "; in Sequential 1");
    rapt_module_free(&outer->module);
}
