/* Modules: their members and the names of these. */
#include "module_tree.h"

#include "nn/entry.h"

Test(module, members_are_shared)
{
    const int64_t before = live_bytes();
    rapt_module *node = node_new();
    {
        RAPT_SCOPE;
        rapt_tensor *tensor = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(100));
        cr_expect_eq(rapt_module_add_parameter(node, "one", tensor), tensor);
        cr_expect_eq(rapt_module_add_buffer(node, "two", tensor), tensor);
    }
    cr_expect_eq(rapt_at(rapt_module_find(node, "two"), (int64_t[]){99}), 1);
    rapt_module_free(node);
    rapt_module_free(NULL);
    cr_expect_eq(live_bytes(), before);
}

/* The empty name may be used again and again; a clash of full names below it shows when they are needed. */
Test(module, children_without_a_name)
{
    RAPT_SCOPE;
    rapt_module *root = node_new();
    for (int i = 0; i < 2; i++) {
        rapt_module *child = rapt_module_add_child(root, "", node_new());
        rapt_module_add_parameter(child, i ? "b" : "a", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(i + 1)));
    }
    root = rapt_module_finish(root);
    expect_names(root, RAPT_PARAMETERS, "a b ");
    rapt_module_add_parameter(root, "b", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1)));
    rapt_archive *archive = rapt_archive_new();
    cr_expect_not(rapt_module_to_archive(root, NULL, archive));
    expect_error(RAPT_ERROR_VALUE, "b");
    rapt_archive_free(archive);
    rapt_module_free(root);
}

Test(module, names_that_grow_too_long_are_an_error)
{
    RAPT_SCOPE;
    char name[101] = "";
    memset(name, 'n', 100);
    rapt_module *root = node_new(), *node = root;
    for (int depth = 0; depth < 5; depth++) node = rapt_module_add_child(node, name, node_new());
    rapt_module_add_parameter(node, "weights", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1)));
    cr_expect(rapt_module_finish(root));
    cr_expect_eq(rapt_module_parameter_count(root), 0);
    expect_error(RAPT_ERROR_VALUE, "longer than 511");
    rapt_module_free(root);

    root = node = node_new();
    for (int depth = 0; depth < 5; depth++) node = rapt_module_add_child(node, name, node_new());
    rapt_module_add_parameter(node, "weight", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1)));
    cr_expect_eq(rapt_module_parameter_count(root), 1, "511 bytes fit");
    rapt_module_free(root);
    expect_no_error();
}

Test(module, names_end_where_their_room_does)
{
    char name[2 * RAPT_NAME_SIZE];
    memset(name, 'n', sizeof name);
    rapt_module *root = node_new();
    rapt_module_add_child(root, "child", node_new());
    cr_expect_eq(rapt_module_append_name(root, &root->entries[0], name, RAPT_NAME_SIZE - 3), -1);
    expect_error(RAPT_ERROR_VALUE, "longer than 511");
    for (size_t i = RAPT_NAME_SIZE; i < sizeof name; i++) cr_assert_eq(name[i], 'n');
    rapt_module_free(root);
}

Test(module, forward)
{
    RAPT_SCOPE;
    rapt_module *node = node_new();
    cr_expect_null(rapt_module_forward(node, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1))));
    expect_error(RAPT_ERROR_UNSUPPORTED, "Node");
    cr_expect_null(rapt_module_forward(node, NULL));
    expect_error(RAPT_ERROR_NULL, "input");
    cr_expect_null(rapt_module_forward(NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "module");
    rapt_module_free(node);
}

static rapt_tensor *give_nothing(rapt_module *module, rapt_tensor *x)
{
    (void)module, (void)x;
    return NULL;
}

static rapt_tensor *activate_nothing(rapt_tensor *x)
{
    (void)x;
    return NULL;
}

/* NULL never comes without an error. */
Test(module, functions_of_ones_own_that_give_nothing)
{
    RAPT_SCOPE;
    static const rapt_module_class silent_kind = {.name = "Silent", .forward = give_nothing}, nameless_kind = {0};
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1));
    rapt_module *silent = rapt_module_finish(rapt_module_new(sizeof *silent, &silent_kind));
    rapt_module *activation = rapt_activation_new("Nothing", activate_nothing);
    cr_expect_null(rapt_module_forward(silent, x));
    expect_error(RAPT_ERROR_VALUE, "Silent: its forward failed without a reason");
    cr_expect_null(rapt_module_forward(activation, x));
    expect_error(RAPT_ERROR_VALUE, "Activation: its forward failed without a reason");
    cr_expect_null(rapt_module_new(sizeof *silent, &nameless_kind));
    expect_error(RAPT_ERROR_NULL, "module: its class's name is NULL");
    rapt_module of_calloc = {0};
    cr_expect_null(rapt_module_add_parameter(&of_calloc, "weight", x));
    expect_error(RAPT_ERROR_VALUE, "module: member 'weight' is added to what rapt_module_new has not made");
    rapt_module_free(silent);
    rapt_module_free(activation);
}

/* A tensor that cannot be registered is as it was. */
Test(module, a_refused_parameter_is_no_leaf)
{
    RAPT_SCOPE;
    rapt_module *node = node_new();
    rapt_module_add_buffer(node, "used", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1)));
    rapt_tensor *tensor = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1));
    cr_expect_null(rapt_module_add_parameter(node, "used", tensor));
    expect_error(RAPT_ERROR_VALUE, "in use");
    cr_expect_not(rapt_requires_gradient(tensor));
    cr_expect_null(rapt_module_add_parameter(node, "steps", rapt_arange(RAPT_INT64, 0, 3, 1)));
    expect_error(RAPT_ERROR_DTYPE, "int64");
    cr_expect_null(rapt_module_find(node, "steps"));
    rapt_module_add_buffer(node, "steps", tensor);
    expect_no_error();
    rapt_module_free(node);
}

/* Its file could not be loaded. */
Test(module, a_result_is_no_buffer)
{
    RAPT_SCOPE;
    rapt_module *node = node_new();
    rapt_tensor *leaf = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1))),
                *twice = rapt_mul_scalar(leaf, 2);
    cr_expect_null(rapt_module_add_buffer(node, "twice", twice));
    expect_error(RAPT_ERROR_GRAPH, "buffer 'twice' is the result of a recorded op");
    cr_expect_null(rapt_module_find(node, "twice"));
    cr_expect_not_null(rapt_module_add_buffer(node, "twice", rapt_detach(twice)));
    expect_no_error();
    rapt_module_free(node);
}
