/* Errors name the module in which they happened: forward, backward, in recomputation, in each thread. */
#include "gpt.h"

#include "nn/entry.h"

#include <pthread.h>

#include "failing_malloc.h"

#define expect_place(path)                                                                                             \
    do {                                                                                                               \
        const char *end = rapt_error() ? strstr(rapt_error(), "; in ") : NULL;                                         \
        cr_expect(end &&strcmp(end, "; in " path) == 0, "not in %s: %s", path, rapt_error());                          \
        rapt_clear_error();                                                                                            \
    } while (0)

#define expect_no_place()                                                                                              \
    do {                                                                                                               \
        cr_expect(rapt_error() && !strstr(rapt_error(), "; in "), "%s", rapt_error());                                 \
        rapt_clear_error();                                                                                            \
    } while (0)

static rapt_module *linear(int64_t in, int64_t out)
{
    return (rapt_module *)rapt_linear_new(in, out, RAPT_BIAS);
}

static rapt_tensor *input(int64_t size)
{
    return rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, size));
}

Test(error_paths, forward_names_the_module_that_runs)
{
    RAPT_SCOPE;
    rapt_sequential *inner = RAPT_SEQUENTIAL(linear(3, 4), linear(5, 4));
    rapt_sequential *s = RAPT_SEQUENTIAL(linear(2, 3), (rapt_module *)inner);
    for (int times = 0; times < 2; times++) {
        cr_expect_null(rapt_sequential_forward(s, input(2)));
        cr_expect_str_eq(rapt_error(),
                         "affine: x [2, 4], weight [4, 5], bias [4]; (..., in), (out, in), (out) expected; "
                         "in Sequential 1.1");
        cr_expect_str_eq(rapt_error_get_op(), "affine");
        rapt_clear_error();
        cr_expect_null(rapt_sequential_forward(s, input(7)));
        expect_place("Sequential 0");
        cr_expect_null(rapt_sequential_forward(inner, input(3)));
        expect_place("Sequential 1");
        cr_expect_null(rapt_add(input(2), input(3)));
        expect_no_place();
    }
    rapt_module_free(&s->module);
}

static bool is_one_level_up; /* where the error is quoted */

/* Deals with an error and reports it in words of its own, as a catch does in C++. */
static rapt_tensor *quoting(rapt_tensor *x)
{
    rapt_tensor *y = rapt_add(x, input(3));
    if (y) return y;
    char told[512];
    snprintf(told, sizeof told, "%s%s", rapt_error(), is_one_level_up ? ".inner" : "");
    rapt_clear_error();
    rapt_fail(RAPT_ERROR_SHAPE, "own", "%s", told);
    return NULL;
}

Test(error_paths, an_error_that_quotes_another_names_the_module_once)
{
    RAPT_SCOPE;
    rapt_sequential *s = RAPT_SEQUENTIAL(rapt_activation_new("Quoting", quoting));
    for (int times = 0; times < 2; times++) {
        is_one_level_up = times == 1;
        cr_expect_null(rapt_sequential_forward(s, input(2)));
        const char *first = strstr(rapt_error(), "; in ");
        cr_expect(first && strcmp(first, is_one_level_up ? "; in Sequential 0.inner" : "; in Sequential 0") == 0, "%s",
                  rapt_error());
        rapt_clear_error();
    }
    rapt_module_free(&s->module);
}

Test(error_paths, a_module_that_tells_itself_is_named_once)
{
    RAPT_SCOPE;
    rapt_module *layer = linear(2, 2);
    cr_expect_null(rapt_module_forward(layer, NULL));
    cr_expect_str_eq(rapt_error(), "Linear: the input is NULL");
    rapt_clear_error();
    cr_expect_null(rapt_module_forward(NULL, input(2)));
    expect_no_place();
    rapt_module_free(layer);
}

Test(error_paths, a_module_in_two_places_has_two_paths)
{
    RAPT_SCOPE;
    rapt_module *shared = linear(4, 3);
    rapt_sequential *first = RAPT_SEQUENTIAL(shared, linear(3, 3)), *second = RAPT_SEQUENTIAL(linear(2, 3), shared);
    for (int times = 0; times < 2; times++) {
        cr_expect_null(rapt_sequential_forward(first, input(2)));
        expect_place("Sequential 0");
        cr_expect_null(rapt_sequential_forward(second, input(2)));
        expect_place("Sequential 1");
        cr_expect_null(rapt_module_forward(shared, input(2)));
        expect_place("Linear");
    }
    rapt_module_free(&first->module);
    rapt_module_free(&second->module);
}

/* A layer that always fails. */
static rapt_tensor *fail(rapt_module *module, rapt_tensor *x)
{
    (void)module, (void)x;
    rapt_fail(RAPT_ERROR_VALUE, "failing", "on purpose");
    return NULL;
}

static rapt_tensor *pass(rapt_module *module, rapt_tensor *x)
{
    return rapt_module_forward(module->entries[module->count - 1].child, x);
}

static const rapt_module_class failing_kind = {.name = "Failing", .forward = fail};
static const rapt_module_class passing_kind = {.name = "Passing", .forward = pass};

static rapt_module *module_of(const rapt_module_class *kind)
{
    return rapt_module_finish(rapt_module_new(sizeof(rapt_module), kind));
}

static void run(rapt_module *module)
{
    cr_expect_null(rapt_module_forward(module, input(2)));
}

Test(error_paths, follow_what_is_added_and_freed)
{
    RAPT_SCOPE;
    rapt_module *failing = module_of(&failing_kind), *parent = module_of(&passing_kind);
    run(failing);
    expect_place("Failing");
    rapt_module_add_child(parent, "a", failing);
    run(parent);
    expect_place("Passing a");
    rapt_module *top = module_of(&passing_kind);
    rapt_module_add_child(top, "b", parent);
    run(top);
    expect_place("Passing b.a");
    run(parent);
    expect_place("Passing a");
    char name[16];
    for (int i = 0; i < 40; i++) { /* more places than a module remembers, at addresses used before */
        rapt_module *one = module_of(&passing_kind);
        snprintf(name, sizeof name, "name%d", i);
        rapt_module_retain(failing);
        rapt_module_add_child(one, name, failing);
        run(one);
        cr_expect(rapt_error() && strstr(rapt_error(), "; in Passing name") &&
                      strcmp(strstr(rapt_error(), "name"), name) == 0,
                  "%s", rapt_error());
        rapt_clear_error();
        rapt_module_free(one);
        rapt_module_free(failing);
    }
    rapt_module_free(top);
}

Test(error_paths, without_memory_the_message_has_no_path)
{
    RAPT_SCOPE;
    rapt_module *failing = module_of(&failing_kind);
    rapt_tensor *x = input(2);
    fail_malloc(0, true);
    rapt_tensor *y = rapt_module_forward(failing, x);
    fail_malloc(-1, false);
    cr_expect_null(y);
    expect_error(RAPT_ERROR_VALUE, "failing: on purpose");
    run(failing);
    expect_place("Failing");
    rapt_module_free(failing);
}

Test(error_paths, long_paths_are_cut)
{
    RAPT_SCOPE;
    char name[101];
    memset(name, 'x', 100);
    name[100] = '\0';
    rapt_module *module = module_of(&failing_kind);
    for (int i = 0; i < 6; i++) {
        rapt_module *parent = module_of(&passing_kind);
        rapt_module_add_child(parent, name, module);
        module = parent;
    }
    run(module);
    expect_error(RAPT_ERROR_VALUE, "failing: on purpose; in Passing xxx");
    rapt_module_free(module);
}

/* x²: the vjp needs x. */
static rapt_tensor *square(rapt_module *module, rapt_tensor *x)
{
    (void)module;
    return rapt_mul(x, x);
}

static const rapt_module_class square_kind = {.name = "Square", .forward = square};

Test(error_paths, backward_names_where_it_was_recorded)
{
    RAPT_SCOPE;
    rapt_sequential *s = RAPT_SEQUENTIAL(linear(2, 2), module_of(&square_kind));
    rapt_tensor *x = input(2), *loss = rapt_sum(rapt_sequential_forward(s, x), RAPT_ALL_AXES, false);
    cr_assert(rapt_fill(x, 3));
    cr_expect_not(rapt_backward(loss));
    cr_expect(strstr(rapt_error(), "changed in place"), "%s", rapt_error());
    expect_place("Sequential 0");
    cr_expect_not(rapt_backward(x));
    expect_no_place();
    rapt_module_free(&s->module);
}

static rapt_tensor *again(rapt_tensor *const *inputs, void *context)
{
    static int times;
    return rapt_sum(rapt_sequential_forward(context, times++ ? rapt_reshape(inputs[0], RAPT_SHAPE(1, 4)) : inputs[0]),
                    RAPT_ALL_AXES, false);
}

static rapt_tensor *recomputed(rapt_module *module, rapt_tensor *x)
{
    return rapt_recompute(again, 1, &x, module->entries[0].child, NULL);
}

static const rapt_module_class recomputed_kind = {.name = "Recomputed", .forward = recomputed};

Test(error_paths, the_second_run_of_recomputed_parts_is_where_the_first_was)
{
    RAPT_SCOPE;
    rapt_module *module = module_of(&recomputed_kind);
    rapt_module_add_child(module, "inner", (rapt_module *)RAPT_SEQUENTIAL(linear(2, 3)));
    rapt_tensor *loss = rapt_module_forward(module, input(2));
    cr_assert_not_null(loss, "%s", rapt_error());
    cr_expect_not(rapt_backward(loss));
    cr_expect(strstr(rapt_error(), "affine: x [1, 4]"), "%s", rapt_error());
    expect_place("Recomputed inner.0");
    rapt_module_free(module);
}

static void *fail_elsewhere(void *module)
{
    static char text[600];
    RAPT_SCOPE;
    rapt_add(input(2), input(3));
    const bool has_no_place = !strstr(rapt_error(), "; in ");
    rapt_clear_error();
    run(module);
    snprintf(text, sizeof text, "%s%s", has_no_place ? "" : "misplaced ", rapt_error());
    return text;
}

static void *heard_elsewhere;

static rapt_tensor *fail_in_a_thread(rapt_module *module, rapt_tensor *x)
{
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, fail_elsewhere, module->entries[0].child), 0);
    pthread_join(thread, &heard_elsewhere);
    return rapt_reshape(x, RAPT_SHAPE(7));
}

static const rapt_module_class threaded_kind = {.name = "Threaded", .forward = fail_in_a_thread};

Test(error_paths, each_thread_is_where_it_is)
{
    RAPT_SCOPE;
    rapt_module *module = module_of(&threaded_kind);
    rapt_module_add_child(module, "failing", module_of(&failing_kind));
    run(module);
    expect_place("Threaded");
    cr_expect_str_eq(heard_elsewhere, "failing: on purpose; in Failing");
    rapt_module_free(module);
}

Test(error_paths, a_gpt_says_which_of_its_parts)
{
    RAPT_SCOPE;
    for (int recompute = 0; recompute < 2; recompute++) {
        rapt_gpt_config c = tiny;
        c.recompute = recompute;
        rapt_gpt *gpt = rapt_gpt_new(&c);
        rapt_tensor *tokens = rapt_full(RAPT_INT64, RAPT_SHAPE(1, 3), (double)c.vocabulary);
        cr_expect_null(rapt_gpt_forward(gpt, tokens, NULL));
        expect_place("GPT transformer.wte");
        cr_expect_null(rapt_gpt_forward(gpt, random_tokens(1, 9), NULL));
        expect_no_place(); /* the error is GPT's own */
        rapt_module_free(&gpt->module);
    }
}
