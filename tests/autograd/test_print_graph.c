/* Graphs printed as text and for Graphviz. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt.h>

#include "expect.h"
#include "text_stream.h"

/* What rapt_print_graph writes; freed by the caller. */
static char *printed(const rapt_tensor *tensor, bool dot)
{
    FILE *stream = open_text();
    cr_expect(rapt_print_graph(stream, tensor, dot), "%s", rapt_error());
    return close_text(stream);
}

static int count(const char *text, const char *part)
{
    int found = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part)) found++;
    return found;
}

static rapt_tensor *leaf(void)
{
    return rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3)));
}

/* y = tanh x + (tanh x · constant): a diamond. */
static rapt_tensor *diamond(void)
{
    rapt_tensor *t = rapt_tanh(leaf());
    return rapt_add(t, rapt_mul(t, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3))));
}

Test(print_graph, one_line_for_each_op_the_last_one_first)
{
    RAPT_SCOPE;
    char *text = printed(diamond(), false);
    unsigned long long add, mul, tanh_node, leaf_node, first, second, third, fourth;
    int fields = sscanf(text,
                        "%llu add float32 [2, 3] of %llu, %llu\n%llu mul float32 [2, 3] of %llu, -\n"
                        "%llu tanh float32 [2, 3] of %llu\n%llu leaf float32 [2, 3]\n",
                        &add, &first, &second, &mul, &third, &tanh_node, &fourth, &leaf_node);
    cr_expect_eq(fields, 8, "%s", text);
    cr_expect_eq(count(text, "\n"), 4, "%s", text);
    cr_expect(first == tanh_node && second == mul && third == tanh_node && fourth == leaf_node && add > mul, "%s",
              text);
    free(text);
}

Test(print_graph, graphviz)
{
    RAPT_SCOPE;
    char *text = printed(diamond(), true);
    cr_expect(strncmp(text, "digraph rapt {\n", 15) == 0 && strcmp(text + strlen(text) - 2, "}\n") == 0, "%s", text);
    cr_expect_eq(count(text, " -> "), 4, "%s", text);
    cr_expect_eq(count(text, "label"), 4, "%s", text);
    cr_expect(strstr(text, "tanh\\nfloat32 [2, 3]") && strstr(text, "shape=box"), "%s", text);
    free(text);
}

Test(print_graph, which_output_of_an_op_is_used)
{
    RAPT_SCOPE;
    rapt_tensor *pieces[2];
    cr_assert(rapt_split(leaf(), 1, 2, (const int64_t[]){1, 2}, pieces));
    char *text = printed(rapt_neg(pieces[1]), false);
    unsigned long long used, split;
    int output;
    cr_expect_eq(sscanf(text, "%*u neg float32 [2, 2] of %llu.%d\n%llu split float32 [2, 1], float32 [2, 2] of", &used,
                        &output, &split),
                 3, "%s", text);
    cr_expect(used == split && output == 1, "%s", text);
    free(text);
}

Test(print_graph, freed_and_missing_graphs)
{
    RAPT_SCOPE;
    rapt_tensor *root = rapt_sum(diamond(), RAPT_ALL_AXES, false);
    cr_assert(rapt_backward(root));
    char *text = printed(root, false);
    cr_expect(strstr(text, "sum float32 [], freed by backward\n") && count(text, "\n") == 1, "%s", text);
    free(text);
    text = printed(rapt_zeros(RAPT_INT64, RAPT_SHAPE(2)), false);
    cr_expect_str_eq(text, "no graph: int64 [2]\n");
    free(text);
    text = printed(rapt_zeros(RAPT_INT64, RAPT_SHAPE(2)), true);
    cr_expect_str_eq(text, "digraph rapt {\n}\n");
    free(text);
}

Test(print_graph, bad_arguments)
{
    RAPT_SCOPE;
    cr_expect_not(rapt_print_graph(stdout, NULL, false));
    expect_error(RAPT_ERROR_NULL, "print_graph: tensor is NULL");
    cr_expect_not(rapt_print_graph(NULL, leaf(), false));
    expect_error(RAPT_ERROR_NULL, "print_graph: stream is NULL");
    FILE *full = fopen("/dev/full", "w");
    if (!full) cr_skip_test("no /dev/full here");
    cr_expect_not(rapt_print_graph(full, leaf(), false));
    expect_error(RAPT_ERROR_FILE, "print_graph: ");
    fclose(full);
}

/* Printing leaves no mark on it. */
Test(print_graph, the_graph_is_as_before)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(), *root = rapt_sum(rapt_mul(x, x), RAPT_ALL_AXES, false);
    for (int i = 0; i < 2; i++) free(printed(root, i == 0));
    cr_expect(rapt_backward(root), "%s", rapt_error());
    cr_expect_eq(rapt_at(rapt_gradient(x), (const int64_t[]){0, 0}), 2);
}
