/* A small vision transformer (Dosovitskiy et al. 2021; Dive into Deep Learning, 11.8): pictures cut into patches,
 * and a token that asks them all what the picture shows. It learns shapes that this program draws, or IDX files such
 * as MNIST. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <rapt.h>

#include "command_line.h"
#include "files.h"
#include "idx.h"

struct options {
    const char *data, *save;
    int64_t epochs, batch, patch, hidden, layers, heads, seed, threads;
    double learning_rate, dropout;
};

/* Grey pictures and what they show. */
struct pictures {
    int64_t count, height, width;
    unsigned char *pixels; /* (count, height, width) */
    unsigned char *labels; /* (count) */
};

static void pictures_free(struct pictures *p)
{
    free(p->pixels);
    free(p->labels);
}

/* --- pictures drawn here: five shapes of random place and size, in noise --- */

enum { side = 28, num_shapes = 5, drawn_training = 4000, drawn_test = 1000 };

/* How far the point (x, y) is inside the shape of radius 1. */
static double inside(int shape, double x, double y)
{
    switch (shape) {
    case 0: /* disc */
        return 1 - hypot(x, y);
    case 1: /* ring */
        return 0.3 - fabs(hypot(x, y) - 0.7);
    case 2: /* square */
        return 0.85 - fmax(fabs(x), fabs(y));
    case 3: /* triangle */
        return fmin(0.7 - y, (y + 1 - 1.8 * fabs(x)) / 2);
    default: /* cross */
        return fmax(fmin(0.3 - fabs(x), 1 - fabs(y)), fmin(0.3 - fabs(y), 1 - fabs(x)));
    }
}

static void draw(unsigned char *pixels, int shape, const float *random, const float *noise)
{
    double radius = 5 + 4 * random[0], x0 = 10 + 8 * random[1], y0 = 10 + 8 * random[2], ink = 120 + 100 * random[3];
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++) {
            double cover = inside(shape, (x - x0) / radius, (y - y0) / radius) * radius + 0.5;
            double grey = ink * fmin(fmax(cover, 0), 1) + 25 * (double)noise[y * side + x];
            pixels[y * side + x] = (unsigned char)fmin(fmax(grey, 0), 255);
        }
}

static bool draw_all(struct pictures *p, int64_t count)
{
    *p = (struct pictures){.count = count, .height = side, .width = side};
    p->pixels = malloc((size_t)(count * side * side));
    p->labels = malloc((size_t)count);
    if (!p->pixels || !p->labels) fprintf(stderr, "classify: no memory for %lld pictures\n", (long long)count);
    for (int64_t i = 0; p->pixels && p->labels && i < count; i++) {
        RAPT_SCOPE;
        rapt_tensor *random = rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(4)),
                    *noise = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(side, side));
        p->labels[i] = (unsigned char)(i % num_shapes);
        draw(p->pixels + i * side * side, p->labels[i], rapt_data(random), rapt_data(noise));
    }
    return p->pixels && p->labels;
}

/* --- pictures of files --- */

enum { longest_path = 4096 };

static void name_files(const char *folder, const char *part, char images[longest_path], char labels[longest_path])
{
    snprintf(images, longest_path, "%s/%s-images-idx3-ubyte", folder, part);
    snprintf(labels, longest_path, "%s/%s-labels-idx1-ubyte", folder, part);
}

/* Are the weights saved beside these files, and not over one? False after a sentence on stderr. */
static bool are_apart(const char *folder, const char *part, const char *save)
{
    char images[longest_path], labels[longest_path];
    name_files(folder, part, images, labels);
    const struct file_option save_option = {"--save", save}, of_images[] = {{"--data", images}, save_option, {0}},
                             of_labels[] = {{"--data", labels}, save_option, {0}};
    return files_are_apart("classify", of_images) && files_are_apart("classify", of_labels);
}

static bool read_pictures(const char *folder, const char *part, struct pictures *p)
{
    char images[longest_path], labels[longest_path];
    name_files(folder, part, images, labels);
    int64_t sizes[3], count;
    *p = (struct pictures){.pixels = idx_read("classify", images, 3, sizes)};
    p->labels = p->pixels ? idx_read("classify", labels, 1, &count) : NULL;
    if (!p->labels) return false;
    p->count = sizes[0];
    p->height = sizes[1];
    p->width = sizes[2];
    if (count == p->count) return true;
    fprintf(stderr, "classify: %s has %lld pictures and %s %lld labels\n", images, (long long)p->count, labels,
            (long long)count);
    return false;
}

/* --- the model --- */

struct vision_transformer {
    rapt_module module;
    int64_t patch, rows, columns; /* of patches */
    rapt_linear *patch_embedding; /* a convolution whose kernel is as large as its stride */
    rapt_tensor *class_token;     /* (1, 1, hidden) */
    rapt_learned_positions *positions;
    rapt_transformer_encoder *encoder;
    rapt_linear *head;
};

static const rapt_module_class kind = {.name = "VisionTransformer"};

static struct vision_transformer *model_new(const struct options *o, const struct pictures *p, int64_t classes)
{
    struct vision_transformer *m = rapt_module_new(sizeof *m, &kind);
    if (!m) return NULL;
    RAPT_SCOPE;
    rapt_module *module = &m->module;
    const rapt_transformer_config config = {.hidden = o->hidden,
                                            .heads = o->heads,
                                            .feed_forward = 2 * o->hidden,
                                            .kind = RAPT_FEED_FORWARD_GELU,
                                            .encoder_layers = (int)o->layers,
                                            .norm_first = true,
                                            .final_norm = true,
                                            .attention_bias = true,
                                            .dropout = o->dropout,
                                            .feed_forward_dropout = o->dropout};
    m->patch = o->patch;
    m->rows = p->height / o->patch;
    m->columns = p->width / o->patch;
    m->patch_embedding =
        rapt_module_add_child(module, "patch_embedding",
                              (rapt_module *)rapt_linear_new(o->patch * o->patch, o->hidden, RAPT_BIAS));
    m->class_token =
        rapt_module_add_parameter(module, "class_token", rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(1, 1, o->hidden)));
    m->positions = rapt_module_add_child(module, "positions",
                                         (rapt_module *)rapt_learned_positions_new(m->rows * m->columns + 1, o->hidden,
                                                                                   o->dropout));
    m->encoder = rapt_module_add_child(module, "encoder", (rapt_module *)rapt_transformer_encoder_new(&config));
    m->head = rapt_module_add_child(module, "head", (rapt_module *)rapt_linear_new(o->hidden, classes, RAPT_BIAS));
    return rapt_module_finish(module);
}

/* Pictures (B, height, width) → logits (B, classes) */
static rapt_tensor *forward(struct vision_transformer *m, rapt_tensor *x)
{
    int64_t batch = rapt_size(x, 0), p = m->patch;
    /* (B, rows, p, columns, p) → (B, rows · columns, p²) */
    x = rapt_permute(rapt_reshape(x, RAPT_SHAPE(batch, m->rows, p, m->columns, p)), RAPT_AXES(0, 1, 3, 2, 4));
    x = rapt_linear_forward(m->patch_embedding, rapt_reshape(x, RAPT_SHAPE(batch, m->rows * m->columns, p * p)));
    rapt_tensor *parts[] = {rapt_expand(m->class_token, RAPT_SHAPE(batch, 1, -1)), x};
    x = rapt_learned_positions_forward(m->positions, rapt_concat(2, parts, 1), 0);
    x = rapt_transformer_encoder_forward(m->encoder, x, NULL, NULL);
    return rapt_linear_forward(m->head, rapt_select(x, 1, 0));
}

/* --- training --- */

/* A batch of pictures, brightness from 0 to 1, and their labels. */
static bool take(void *context, rapt_batch *batch)
{
    const struct pictures *p = context;
    const int64_t size = p->height * p->width;
    rapt_tensor *x = rapt_empty(RAPT_FLOAT32, RAPT_SHAPE(batch->count, p->height, p->width));
    rapt_tensor *labels = rapt_empty(RAPT_INT64, RAPT_SHAPE(batch->count));
    if (!x || !labels) return false;
    float *to = rapt_data_for_writing(x);
    int64_t *label = rapt_data_for_writing(labels);
    for (int64_t i = 0; i < batch->count; i++) {
        const unsigned char *from = p->pixels + batch->items[i] * size;
        for (int64_t j = 0; j < size; j++) *to++ = (float)from[j] / 255;
        label[i] = p->labels[batch->items[i]];
    }
    batch->tensors[0] = x;
    batch->tensors[1] = labels;
    return true;
}

/* The next batch is made on a thread while the model learns from this one. */
static rapt_loader *batches_of(const struct pictures *p, int64_t batch_size, bool shuffle)
{
    return rapt_loader_new(&(rapt_loader_config){.items = p->count,
                                                 .make = take,
                                                 .context = (void *)p,
                                                 .batch_size = batch_size,
                                                 .shuffle = shuffle,
                                                 .drop_last = shuffle,
                                                 .prefetch = 2});
}

static double measure_accuracy(struct vision_transformer *m, rapt_loader *test)
{
    RAPT_NO_GRADIENT;
    double right = 0, count = 0;
    rapt_batch batch;
    rapt_module_train(&m->module, false);
    for (; rapt_loader_next(test, &batch); count += (double)batch.count) {
        RAPT_SCOPE;
        rapt_tensor *equal = rapt_equal(rapt_argmax(forward(m, batch.tensors[0]), -1, false), batch.tensors[1]);
        right += rapt_item(rapt_sum(equal, RAPT_ALL_AXES, false));
    }
    rapt_module_train(&m->module, true);
    return right / count;
}

static double train(struct vision_transformer *m, const struct options *o, const struct pictures *training,
                    const struct pictures *test)
{
    enum { test_batch = 250 };
    rapt_optimizer *adam = rapt_adam_new(&m->module, &(rapt_adam_config){.learning_rate = o->learning_rate});
    rapt_loader *batches = batches_of(training, o->batch, true), *tests = batches_of(test, test_batch, false);
    const int64_t steps = rapt_loader_count_batches(batches);
    const rapt_schedule schedule = {.kind = RAPT_SCHEDULE_COSINE, .warm_up = steps / 2, .total = o->epochs * steps};
    rapt_progress progress = rapt_progress_start(stderr, 0, o->epochs * steps);
    progress.item_name = "pictures";
    double accuracy = 0;
    for (int64_t epoch = 0; epoch < o->epochs; epoch++) {
        rapt_batch batch;
        double sum = 0;
        while (rapt_loader_next(batches, &batch)) {
            RAPT_SCOPE;
            rapt_tensor *loss = rapt_cross_entropy(forward(m, batch.tensors[0]), batch.tensors[1], NULL);
            rapt_backward(loss);
            double factor = rapt_schedule_factor(&schedule, progress.step);
            rapt_optimizer_set_learning_rate(adam, o->learning_rate * factor);
            rapt_optimizer_step(adam);
            sum += rapt_item(loss);
            rapt_progress_step(&progress, rapt_item(loss), batch.count);
        }
        accuracy = measure_accuracy(m, tests);
        rapt_progress_print(&progress, "epoch %lld: training loss %.4f, test accuracy %.2f %%", (long long)epoch + 1,
                            sum / (double)steps, 100 * accuracy);
    }
    rapt_progress_end(&progress);
    rapt_loader_free(batches);
    rapt_loader_free(tests);
    rapt_optimizer_free(adam);
    return accuracy;
}

/* --- the program --- */

static int parse(int argc, char **argv, struct options *o)
{
    *o = (struct options){.epochs = 10,
                          .batch = 50,
                          .patch = 7,
                          .hidden = 64,
                          .layers = 2,
                          .heads = 4,
                          .seed = 1,
                          .learning_rate = 0.002};
    const struct command_option table[] = {
        {"--data", .metavar = "DIR",
         .help = "a folder with the files of MNIST or Fashion-MNIST, unpacked: "
                 "{train,t10k}-{images-idx3,labels-idx1}-ubyte; "
                 "without it shapes are drawn",
         .string = &o->data},
        {"--epochs", .metavar = "N", .help = "passes over the training pictures", .integer = &o->epochs,
         .integer_range = {1, INT32_MAX}},
        {"--batch-size", .metavar = "N", .help = "pictures in a step", .integer = &o->batch,
         .integer_range = {1, 65536}},
        {"--patch", .metavar = "N", .help = "side of a patch; divides the picture's", .integer = &o->patch,
         .integer_range = {1, 4096}},
        {"--hidden", .metavar = "N", .help = "width", .integer = &o->hidden, .integer_range = {1, 65536}},
        {"--layers", .metavar = "N", .help = "blocks", .integer = &o->layers, .integer_range = {1, 64}},
        {"--heads", .metavar = "N", .help = "attention heads", .integer = &o->heads, .integer_range = {1, 1024}},
        {"--dropout", .metavar = "X", .help = "probability", .real = &o->dropout, .real_range = {0, 1}},
        {"--learning-rate", .metavar = "X", .help = "of Adam at its peak", .real = &o->learning_rate,
         .real_range = {1e-12, 10}},
        command_line_seed(&o->seed),
        command_line_threads(&o->threads),
        {"--save", .metavar = "FILE", .help = "write the weights there (safetensors)", .string = &o->save},
        {0},
    };
    const struct command_line line = {.program = "classify",
                                      .summary = "Trains a small vision transformer to tell pictures apart.",
                                      .options = table};
    return command_line_parse(&line, argc, argv);
}

static int64_t count_classes(const struct pictures *p)
{
    int64_t most = 0;
    for (int64_t i = 0; i < p->count; i++) most = p->labels[i] > most ? p->labels[i] : most;
    return most + 1;
}

/* False after a sentence on stderr. */
static bool fit(const struct options *o, const struct pictures *training, const struct pictures *test)
{
    const int64_t height = training->height, width = training->width, classes = count_classes(training);
    if (height % o->patch != 0 || width % o->patch != 0)
        fprintf(stderr, "classify: a --patch of %lld does not divide pictures of %lld x %lld\n", (long long)o->patch,
                (long long)height, (long long)width);
    else if (o->batch > training->count)
        fprintf(stderr, "classify: a --batch-size of %lld; there are %lld training pictures\n", (long long)o->batch,
                (long long)training->count);
    else if (test->height != height || test->width != width)
        fprintf(stderr, "classify: test pictures of %lld x %lld; %lld x %lld expected, as in training\n",
                (long long)test->height, (long long)test->width, (long long)height, (long long)width);
    else if (count_classes(test) > classes)
        fprintf(stderr, "classify: a test label of %lld; at most %lld expected, as in training\n",
                (long long)count_classes(test) - 1, (long long)classes - 1);
    else
        return true;
    return false;
}

static int run(const struct options *o, const struct pictures *training, const struct pictures *test)
{
    if (!fit(o, training, test)) return EXIT_FAILURE;
    const int64_t classes = count_classes(training);
    struct vision_transformer *model = model_new(o, training, classes);
    printf("%lld training and %lld test pictures, %lld classes; %lld parameters\n", (long long)training->count,
           (long long)test->count, (long long)classes, (long long)rapt_module_parameter_count(&model->module));
    double accuracy = train(model, o, training, test);
    printf("test accuracy %.2f %%\n", 100 * accuracy);
    if (o->save) rapt_module_save(&model->module, o->save);
    rapt_module_free(&model->module);
    if (o->data || accuracy > 0.95 || o->epochs < 10) return EXIT_SUCCESS;
    fprintf(stderr, "classify: a test accuracy above 95 %% expected after 10 epochs or more, not %.2f %%\n",
            100 * accuracy);
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct options o;
    struct pictures training = {0}, test = {0};
    int status = parse(argc, argv, &o);
    if (status >= 0) return status;
    rapt_on_error(rapt_exit_on_error);
    rapt_seed((uint64_t)o.seed);
    if (o.threads > 0) rapt_set_threads((int)o.threads);
    bool good = !o.data || (are_apart(o.data, "train", o.save) && are_apart(o.data, "t10k", o.save));
    if (good && o.save) good = file_can_be_saved("classify", o.save);
    if (good)
        good = o.data ? read_pictures(o.data, "train", &training) && read_pictures(o.data, "t10k", &test)
                      : draw_all(&training, drawn_training) && draw_all(&test, drawn_test);
    status = good ? run(&o, &training, &test) : EXIT_FAILURE;
    pictures_free(&training);
    pictures_free(&test);
    return status;
}
