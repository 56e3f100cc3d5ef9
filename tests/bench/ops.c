/* How fast single ops are on large tensors, forward, and forward and backward: their speed is that of the memory or of
 * multiply-adds. */
#include <stdlib.h>

#include <rapt.h>

#include "rows.h"

struct operands;

typedef struct op_row {
    const char *name;
    int64_t rows, columns; /* of the input, for a product its other matrix is (columns, others) */
    int64_t others;        /* classes, words: below it are the indices; an image's side */
    void (*draw)(struct operands *o);
    rapt_tensor *(*apply)(const struct operands *o);
} op_row;

/* Who is NULL is not used. x, weight and bias want a gradient. */
struct operands {
    const op_row *row;
    rapt_tensor *x, *weight, *bias, *other, *indices, *lengths, *gradient;
};

static rapt_tensor *draw_matrix(int64_t rows, int64_t columns)
{
    return rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(rows, columns));
}

/* --- the ops --- */

static void draw_one(struct operands *o)
{
    o->x = draw_matrix(o->row->rows, o->row->columns);
}

static rapt_tensor *apply_tanh(const struct operands *o)
{
    return rapt_tanh(o->x);
}

static rapt_tensor *apply_exp(const struct operands *o)
{
    return rapt_exp(o->x);
}

static rapt_tensor *apply_gelu(const struct operands *o)
{
    return rapt_gelu_tanh(o->x);
}

static rapt_tensor *apply_softmax(const struct operands *o)
{
    return rapt_softmax(o->x, -1);
}

static rapt_tensor *apply_dropout(const struct operands *o)
{
    return rapt_drop(o->x, 0.1);
}

static void draw_two(struct operands *o)
{
    draw_one(o);
    o->other = draw_matrix(o->row->rows, o->row->columns);
}

static rapt_tensor *apply_add(const struct operands *o)
{
    return rapt_add(o->x, o->other);
}

static void draw_norm(struct operands *o)
{
    draw_one(o);
    o->weight = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(o->row->columns));
    o->bias = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(o->row->columns));
}

static rapt_tensor *apply_norm(const struct operands *o)
{
    return rapt_layer_normalize(o->x, o->weight, o->bias, 1e-5);
}

/* One item of as many queries as there are rows, each with keys of its own. */
static void draw_scores(struct operands *o)
{
    o->x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(1, o->row->rows, o->row->columns));
    o->lengths = rapt_randint(1, o->row->columns + 1, RAPT_SHAPE(1, o->row->rows));
}

static rapt_tensor *apply_masked_softmax(const struct operands *o)
{
    return rapt_masked_softmax(o->x, RAPT_MASK(.valid_lengths = o->lengths));
}

static void draw_embedding(struct operands *o)
{
    o->x = draw_matrix(o->row->others, o->row->columns);
    o->indices = rapt_randint(0, o->row->others, RAPT_SHAPE(o->row->rows));
}

static rapt_tensor *apply_embedding(const struct operands *o)
{
    return rapt_embed(o->x, o->indices);
}

static void draw_classes(struct operands *o)
{
    draw_one(o);
    o->indices = rapt_randint(0, o->row->columns, RAPT_SHAPE(o->row->rows));
}

static rapt_tensor *apply_cross_entropy(const struct operands *o)
{
    return rapt_cross_entropy(o->x, o->indices, NULL);
}

static void draw_product(struct operands *o)
{
    draw_one(o);
    o->weight = draw_matrix(o->row->columns, o->row->others);
}

static rapt_tensor *apply_product(const struct operands *o)
{
    return rapt_matmul(o->x, o->weight);
}

static void draw_affine(struct operands *o)
{
    draw_one(o);
    o->weight = draw_matrix(o->row->others, o->row->columns);
}

static rapt_tensor *apply_affine(const struct operands *o)
{
    return rapt_affine(o->x, o->weight, NULL);
}

/* Items of so many channels, and as many come out, of windows of 3 × 3. */
static void draw_images(struct operands *o)
{
    const op_row *row = o->row;
    o->x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(row->rows, row->columns, row->others, row->others));
    o->weight = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(row->columns, row->columns, 3, 3));
    o->bias = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(row->columns));
}

static rapt_tensor *apply_convolution(const struct operands *o)
{
    return rapt_conv2d(o->x, o->weight, o->bias, &(rapt_convolution){.padding = {1, 1}});
}

static double convolution_cost(const void *made, int phase)
{
    const op_row *row = ((const struct operands *)made)->row;
    const double places = (double)(row->rows * row->others * row->others), channels = (double)row->columns;
    return 2 * 9 * places * channels * channels * (phase == 0 ? 1 : 3);
}

static const op_row convolutions[] = {
    {"convolution_64", 16, 64, 32, draw_images, apply_convolution},
    {"convolution_256", 16, 256, 8, draw_images, apply_convolution},
};

static const op_row products[] = {
    {"product_1024", 1024, 1024, 1024, draw_product, apply_product},
    {"product_2048", 2048, 2048, 2048, draw_product, apply_product},
    {"product_1024_768_3072", 1024, 768, 3072, draw_affine, apply_affine},
    {"product_256_768_2304", 256, 768, 2304, draw_affine, apply_affine},
};

static const op_row ops[] = {
    {"add", 4096, 1024, 0, draw_two, apply_add},
    {"tanh", 4096, 1024, 0, draw_one, apply_tanh},
    {"exp", 4096, 1024, 0, draw_one, apply_exp},
    {"gelu", 4096, 1024, 0, draw_one, apply_gelu},
    {"softmax", 4096, 1024, 0, draw_one, apply_softmax},
    {"masked_softmax", 4096, 1024, 0, draw_scores, apply_masked_softmax},
    {"layer_norm", 4096, 1024, 0, draw_norm, apply_norm},
    {"dropout", 4096, 1024, 0, draw_one, apply_dropout},
    {"embedding", 4096, 1024, 50000, draw_embedding, apply_embedding},
    {"cross_entropy", 4096, 10000, 0, draw_classes, apply_cross_entropy},
};

/* --- measuring them --- */

static void forward(void *context)
{
    RAPT_NO_GRADIENT;
    RAPT_SCOPE;
    const struct operands *o = context;
    o->row->apply(o);
}

static void forward_and_backward(void *context)
{
    RAPT_SCOPE;
    struct operands *o = context;
    rapt_tensor *leaves[] = {o->x, o->weight, o->bias}, *y = o->row->apply(o);
    rapt_backward_from(1, &y, &o->gradient, 0);
    for (int i = 0; i < 3; i++)
        if (leaves[i]) rapt_clear_gradient(leaves[i]);
}

static void *make(const void *row, const void *context)
{
    (void)context;
    static struct operands o;
    o = (struct operands){.row = row};
    o.row->draw(&o);
    RAPT_NO_GRADIENT;
    rapt_tensor *y = o.row->apply(&o);
    o.gradient = rapt_rank(y) > 0 ? rapt_randn_like(y) : rapt_ones_like(y); /* a loss's is 1, as in training */
    rapt_tensor *leaves[] = {o.x, o.weight, o.bias};
    for (int i = 0; i < 3; i++)
        if (leaves[i]) rapt_require_gradient(leaves[i]);
    return &o;
}

static void end(void *made)
{
    (void)made;
}

/* A product forward, and two more backward. */
static double product_cost(const void *made, int phase)
{
    const op_row *row = ((const struct operands *)made)->row;
    return 2.0 * (double)row->rows * (double)row->columns * (double)row->others * (phase == 0 ? 1 : 3);
}

int main(int count, char **arguments)
{
    row_family families[] = {{ROWS_OF(products), .cost = product_cost},
                             {ROWS_OF(ops)},
                             {ROWS_OF(convolutions), .cost = convolution_cost}};
    for (int i = 0; i < 3; i++) {
        families[i].phases[0] = "fwd", families[i].work[0] = forward;
        families[i].phases[1] = "fwd_bwd", families[i].work[1] = forward_and_backward;
        families[i].make = make, families[i].end = end;
    }
    return rows_main(count, arguments, families, 3);
}
