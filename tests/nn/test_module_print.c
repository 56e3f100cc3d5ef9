/* Modules printed as trees. */
#include "module_tree.h"

#include <stdio.h>
#include <stdlib.h>

#include "../text_stream.h"

static char *printed(const rapt_module *module)
{
    FILE *stream = open_text();
    cr_expect(rapt_module_print(module, stream), "%s", rapt_error());
    return close_text(stream);
}

static void expect_print(rapt_module *module, const char *expected)
{
    char *text = printed(module);
    cr_expect_str_eq(text, expected);
    free(text);
}

Test(module_print, kinds_as_a_tree_and_tensors_by_their_full_names)
{
    rapt_module *net = (rapt_module *)RAPT_SEQUENTIAL((rapt_module *)rapt_linear_new(2, 16, RAPT_BIAS),
                                                      rapt_activation_new("tanh", rapt_tanh),
                                                      (rapt_module *)rapt_linear_new(16, 1, RAPT_NO_BIAS),
                                                      (rapt_module *)rapt_additive_attention_new(2, 3, 4, 0.25));
    expect_print(net, "Sequential()  88 parameters\n"
                      "  0: Linear(2 -> 16, bias)  48 parameters\n"
                      "    0.weight: float32 [16, 2]\n"
                      "    0.bias: float32 [16]\n"
                      "  1: Activation(tanh)  0 parameters\n"
                      "  2: Linear(16 -> 1)  16 parameters\n"
                      "    2.weight: float32 [1, 16]\n"
                      "  3: Attention(dropout 0.25)  24 parameters\n"
                      "    Additive()  24 parameters\n"
                      "      3.W_k: Linear(3 -> 4)  12 parameters\n"
                      "        3.W_k.weight: float32 [4, 3]\n"
                      "      3.W_q: Linear(2 -> 4)  8 parameters\n"
                      "        3.W_q.weight: float32 [4, 2]\n"
                      "      3.w_v: Linear(4 -> 1)  4 parameters\n"
                      "        3.w_v.weight: float32 [1, 4]\n");
    rapt_module_free(net);
    expect_no_error();
}

Test(module_print, heads_and_those_of_the_keys)
{
    const rapt_multi_head_attention_config config = {.hidden = 12, .heads = 4, .groups = 2};
    rapt_module *layer = (rapt_module *)rapt_multi_head_attention_new(&config);
    char *text = printed(layer);
    cr_expect(strstr(text, "MultiHeadAttention(12 in 4 heads, keys in 2)") == text, "%s", text);
    free(text);
    rapt_module_free(layer);
    expect_no_error();
}

Test(module_print, an_activation_has_a_name_of_its_own)
{
    char name[] = "tanh";
    rapt_module *layer = rapt_activation_new(name, rapt_tanh);
    name[0] = '?';
    expect_print(layer, "Activation(tanh)  0 parameters\n");
    rapt_module_free(layer);
    expect_no_error();
}

static void fill(const rapt_module *module, char *text, size_t size)
{
    (void)module;
    memset(text, 'x', size);
}

/* As strncpy leaves it. */
Test(module_print, a_description_without_an_end_is_cut)
{
    static const rapt_module_class kind = {.name = "Full", .describe = fill};
    rapt_module *module = rapt_module_finish(rapt_module_new(sizeof *module, &kind));
    char expected[300];
    snprintf(expected, sizeof expected, "Full(%0255d)  0 parameters\n", 0);
    for (char *at = strchr(expected, '('); *++at == '0';) *at = 'x';
    expect_print(module, expected);
    rapt_module_free(module);
    expect_no_error();
}

/* Every line of a tensor begins with a name that finds it. */
Test(module_print, what_is_printed_can_be_found)
{
    rapt_module *tree = tree_new();
    rapt_module_cast(tree, RAPT_FLOAT64);
    char *text = printed(tree);
    int tensors = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char name[100], expected[100];
        if (sscanf(line, " %99[^:]: %99[a-z0-9] [", name, expected) != 2) continue;
        rapt_tensor *tensor = rapt_module_find(tree, name);
        cr_expect_not_null(tensor, "%s", name);
        cr_expect_str_eq(rapt_dtype_name(rapt_get_dtype(tensor)), expected);
        cr_expect_eq(!strstr(line, "a buffer"), rapt_requires_gradient(tensor), "%s", line);
        tensors++;
    }
    cr_expect_eq(tensors, 6);
    free(text);
    rapt_module_free(tree);
    expect_no_error();
}

Test(module_print, what_stands_in_several_places_is_printed_at_the_first)
{
    rapt_module *left = node_new(), *root = node_new(), *unnamed = node_new();
    rapt_linear *linear = rapt_linear_new(2, 1, RAPT_NO_BIAS);
    rapt_module_add_child(left, "a", &linear->module);
    rapt_module_add_child(left, "", unnamed);
    rapt_module_add_child(root, "left", left);
    rapt_module_add_child(root, "b", &linear->module);
    rapt_module_add_child(root, "c", unnamed);
    rapt_module_add_child(root, "", left);
    rapt_module_add_parameter(root, "tied", linear->weight);
    expect_print(root, "Node()  2 parameters\n"
                       "  left: Node()  2 parameters\n"
                       "    left.a: Linear(2 -> 1)  2 parameters\n"
                       "      left.a.weight: float32 [1, 2]\n"
                       "    Node()  0 parameters\n"
                       "  b: Linear, the same as left.a\n"
                       "  c: Node, the same as in left\n"
                       "  Node, the same as left\n"
                       "  tied: float32 [1, 2], the same as left.a.weight\n");
    rapt_module_free(root);
    expect_no_error();
}

Test(module_print, errors)
{
    rapt_module *tree = tree_new();
    FILE *full = fopen("/dev/full", "w");
    cr_expect_not(rapt_module_print(tree, NULL));
    expect_error(RAPT_ERROR_NULL, "stream");
    cr_expect_not(rapt_module_print(NULL, stdout));
    expect_error(RAPT_ERROR_NULL, "module");
    cr_expect(full && !rapt_module_print(tree, full));
    expect_error(RAPT_ERROR_FILE, "stream");
    rapt_memory_fail_after(0);
    FILE *nowhere = fopen("/dev/null", "w");
    cr_expect(nowhere && !rapt_module_print(tree, nowhere));
    rapt_memory_fail_after(-1);
    expect_error(RAPT_ERROR_MEMORY, "memory");
    fclose(full);
    fclose(nowhere);
    rapt_module_free(tree);
}
