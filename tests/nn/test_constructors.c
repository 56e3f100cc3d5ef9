/* Constructors that fail: bad members, bad names. */
#include "node.h"

/* A constructor in which one thing fails: it must give NULL, the first error, and free everything. */
static void expect_failed(rapt_module *node, rapt_error_code code, const char *part)
{
    cr_expect(node->failed);
    cr_expect_null(rapt_module_finish(node));
    expect_error(code, part);
}

Test(constructors, bad_members_fail_the_constructor)
{
    const int64_t before = live_bytes();
    char long_name[102] = "";
    memset(long_name, 'a', 101);
    const struct {
        const char *name;
        rapt_error_code code;
        const char *part;
    } bad[] = {{"", RAPT_ERROR_VALUE, "''"},
               {NULL, RAPT_ERROR_NULL, "name"},
               {"a.b", RAPT_ERROR_VALUE, "'a.b'"},
               {long_name, RAPT_ERROR_VALUE, "dot"},
               {"used", RAPT_ERROR_VALUE, "in use"}};
    for (int i = 0; i < 5; i++) {
        RAPT_SCOPE;
        freed = 0;
        rapt_module *node = node_new();
        rapt_module_add_child(node, "child", node_new());
        rapt_module_add_buffer(node, "used", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3)));
        if (i > 0) cr_expect_null(rapt_module_add_child(node, bad[i].name, node_new()), "owned and freed at once");
        cr_expect_eq(freed, i > 0);
        cr_expect_null(rapt_module_add_parameter(node, bad[i].name, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3))));
        expect_failed(node, bad[i].code, bad[i].part);
        cr_expect_eq(freed, 2 + (i > 0));
    }
    cr_expect_eq(live_bytes(), before);
}

Test(constructors, missing_members_fail_the_constructor)
{
    RAPT_SCOPE;
    rapt_module *node = node_new();
    cr_expect_null(rapt_module_add_parameter(node, "weight", NULL));
    expect_failed(node, RAPT_ERROR_NULL, "Node: member 'weight' is NULL");
    node = node_new();
    cr_expect_null(rapt_module_add_child(node, "part", NULL));
    expect_failed(node, RAPT_ERROR_NULL, "'part'");
    node = node_new();
    cr_expect_null(rapt_module_add_parameter(node, "weight", rapt_arange(RAPT_INT64, 0, 3, 1)));
    expect_failed(node, RAPT_ERROR_DTYPE, "int64");
    node = node_new();
    rapt_module_add_buffer(node, "scale", rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(-1)));
    expect_failed(node, RAPT_ERROR_SHAPE, "-1");
    cr_expect_eq(freed, 4);

    cr_expect_null(rapt_module_add_parameter(NULL, "weight", NULL));
    cr_expect_null(rapt_module_add_child(NULL, "part", node_new()));
    cr_expect_eq(freed, 5);
    cr_expect_null(rapt_module_finish(NULL));
    expect_no_error();
    cr_expect_null(rapt_module_new(sizeof(rapt_module), NULL));
    expect_error(RAPT_ERROR_VALUE, "class");
    cr_expect_null(rapt_module_new(sizeof(rapt_module) - 1, &node_kind));
    expect_error(RAPT_ERROR_VALUE, "at least");
}

/* What was finished once is no constructor's work any more: numbers drawn since stay drawn. */
Test(constructors, a_later_failure_does_not_turn_the_generator_back)
{
    RAPT_SCOPE;
    rapt_module *modules[] = {(rapt_module *)rapt_linear_new(3, 2, RAPT_BIAS), (rapt_module *)rapt_dropout_new(0.5),
                              (rapt_module *)rapt_rotary_new(), rapt_activation_new("relu", rapt_relu),
                              (rapt_module *)rapt_alibi_new(2)};
    for (int i = 0; i < 5; i++) {
        rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(100));
        const rapt_random_state random = rapt_random_get_state();
        rapt_module_add_parameter(modules[i], "missing", NULL);
        expect_error(RAPT_ERROR_NULL, "missing");
        cr_expect_null(rapt_module_finish(modules[i]));
        cr_expect(same_generator(rapt_random_get_state(), random), "module %d", i);
    }
}
