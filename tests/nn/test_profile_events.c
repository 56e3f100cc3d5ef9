/* The events that a profile writes into a file: one for each op and module, in its thread and in its time. */
#include "profiled.h"

#include <math.h>
#include <stdio.h>

#include "comma_locale.h"
#include "temporary_file.h"

/* Each event has its line, between that of the head and that of the end. */
Test(profile_events, threads_at_once_are_told_apart)
{
    char path[32], line[4096];
    write_temporary_file(path, "", 0);
    const int64_t once = calls_of(1, 200, NULL), calls = calls_of(4, 200, path);
    cr_expect_eq(calls, 4 * once, "%lld, %lld", (long long)calls, (long long)once);
    FILE *file = fopen(path, "r");
    int64_t events = 0;
    int threads = 0;
    while (file && fgets(line, sizeof line, file)) {
        events += strncmp(line, "{\"name\": \"", 10) == 0 && !strstr(line, "\"cat\": \"module\"") &&
                  strstr(line, "\"ph\": \"X\"") && strstr(line, "}}");
        for (int i = 2; i <= 5; i++) {
            char tid[16];
            snprintf(tid, sizeof tid, "\"tid\": %d,", i);
            if (strstr(line, tid)) threads |= 1 << i;
        }
    }
    cr_assert(file);
    fclose(file);
    remove(path);
    cr_expect_eq(events, calls, "%lld events of %lld", (long long)events, (long long)calls);
    cr_expect_eq(threads, 4 + 8 + 16 + 32);
}

/* In microseconds since the start. */
Test(profile_events, events_lie_within_the_time_of_the_profile)
{
    char path[32], line[4096];
    write_temporary_file(path, "", 0);
    const double started = now();
    calls_of(1, 200, path);
    const double wall = (now() - started) * 1e6;
    FILE *file = fopen(path, "r");
    double last_begin = 0, last_end = 0;
    while (file && fgets(line, sizeof line, file)) {
        double begin, duration;
        const char *times = strstr(line, "\"ts\": ");
        if (!times || sscanf(times, "\"ts\": %lf, \"dur\": %lf", &begin, &duration) != 2) continue;
        cr_expect(begin >= 0 && duration >= 0 && begin + duration <= wall, "%s", line);
        last_begin = fmax(last_begin, begin), last_end = fmax(last_end, begin + duration);
    }
    cr_assert(file);
    fclose(file);
    remove(path);
    cr_expect(last_begin > 100 && last_end > last_begin, "from %g to %g of %g", last_begin, last_end, wall);
}

/* Of many inputs as many as there is room for, and the number of the others. */
Test(profile_events, inputs_that_have_no_room_are_counted)
{
    enum { most = 200 };
    RAPT_SCOPE;
    char path[32], line[8192];
    write_temporary_file(path, "", 0);
    rapt_tensor *inputs[most];
    for (int i = 0; i < most; i++) inputs[i] = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2));
    cr_assert(rapt_profile_start(path), "%s", rapt_error());
    for (int count = 1; count <= most; count++) cr_assert(rapt_concat(count, inputs, 0), "%s", rapt_error());
    cr_assert(rapt_profile_stop(), "%s", rapt_error());
    FILE *file = fopen(path, "r");
    int count = 0, first_left_out = 0;
    while (file && fgets(line, sizeof line, file)) {
        char *in = strstr(line, "{\"name\": \"concat\"") ? strstr(line, "\"in\": ") : NULL, *end;
        if (!in || !(end = strstr(in, "\"out\": "))) continue;
        *end = '\0';
        int listed = 0, left_out = 0;
        const char *last = strstr(in, ", and ");
        for (const char *one = in; (one = strstr(one, "float32 [2]")); one++) listed++;
        cr_expect(!last || sscanf(last, ", and %d more", &left_out) == 1, "%s", in);
        count++;
        cr_expect_eq(listed + left_out, count, "%d and %d: %s", listed, left_out, in);
        if (left_out > 0 && first_left_out == 0) first_left_out = left_out;
    }
    cr_assert(file);
    fclose(file);
    remove(path);
    cr_expect_eq(count, most);
    cr_expect_eq(first_left_out, 1);
}

static rapt_tensor *quoted_forward(rapt_module *module, rapt_tensor *x)
{
    (void)module;
    return rapt_tanh(x);
}

/* As JSON wants it; bytes beyond ASCII one by one. */
Test(profile_events, names_of_any_text_are_quoted)
{
    RAPT_SCOPE;
    static const rapt_module_class kind = {.name = "a \"b\\c\n\xc3\xa9", .forward = quoted_forward};
    char path[32], line[4096];
    write_temporary_file(path, "", 0);
    rapt_module *module = rapt_module_finish(rapt_module_new(sizeof *module, &kind));
    cr_assert(rapt_profile_start(path), "%s", rapt_error());
    rapt_module_forward(module, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2)));
    cr_assert(rapt_profile_stop(), "%s", rapt_error());
    FILE *file = fopen(path, "r");
    int found = 0;
    while (file && fgets(line, sizeof line, file))
        found += strstr(line, "{\"name\": \"tanh\", \"cat\": \"forward\", ") &&
                 strstr(line, "{\"module\": \"a \\\"b\\\\c\\u000a\\u00c3\\u00a9\", \"in\": \"float32 [2]\", ");
    cr_assert(file);
    fclose(file);
    remove(path);
    cr_expect_eq(found, 1);
    rapt_module_free(module);
}

/* In JSON, a point. */
Test(profile_events, times_have_a_point_in_any_locale)
{
    RAPT_SCOPE;
    char path[32], line[4096];
    set_comma_locale();
    write_temporary_file(path, "", 0);
    cr_assert(rapt_profile_start(path), "%s", rapt_error());
    rapt_exp(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2)));
    cr_assert(rapt_profile_stop(), "%s", rapt_error());
    FILE *file = fopen(path, "r");
    int found = 0;
    while (file && fgets(line, sizeof line, file)) {
        const char *times = strstr(line, "\"ts\": ");
        long long begin[2], duration[2];
        found += times && sscanf(times, "\"ts\": %lld.%3lld, \"dur\": %lld.%3lld, \"args\"", &begin[0], &begin[1],
                                 &duration[0], &duration[1]) == 4;
    }
    cr_assert(file);
    fclose(file);
    remove(path);
    cr_expect_eq(found, 1);
}

/* A view of its first input; the second is read. */
static rapt_tensor *first_row(rapt_call *call)
{
    return rapt_select(rapt_call_input(call, 0), 0, 0);
}

/* What is read and written; a view is neither. */
Test(profile_events, bytes_of_ops)
{
    RAPT_SCOPE;
    static const rapt_op first_row_op = {.name = "first_row", .forward = first_row};
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3));
    char path[32], line[4096];
    write_temporary_file(path, "", 0);
    cr_assert(rapt_profile_start(path), "%s", rapt_error());
    rapt_tensor *two = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2));
    rapt_sum(rapt_mul(rapt_transpose(x, 0, 1), two), RAPT_ALL_AXES, false);
    RAPT_APPLY(&first_row_op, NULL, x, two);
    cr_assert(rapt_profile_stop(), "%s", rapt_error());
    FILE *file = fopen(path, "r");
    char found[500] = "";
    while (file && fgets(line, sizeof line, file)) {
        char name[20], kind[20];
        double bytes;
        const char *at = strstr(line, "\"bytes\": ");
        if (!at || sscanf(line, "{\"name\": \"%19[^\"]\", \"cat\": \"%19[^\"]\"", name, kind) != 2) continue;
        cr_assert_eq(sscanf(at, "\"bytes\": %lf", &bytes), 1);
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s %s %g, ", name, kind, bytes);
    }
    cr_assert(file);
    fclose(file);
    remove(path);
    cr_expect_str_eq(found, "transpose forward 0, mul forward 56, sum forward 28, first_row forward 8, ", "%s", found);
}

static char path_within[32];

static rapt_tensor *start_within(rapt_tensor *x)
{
    cr_assert(rapt_profile_start(path_within), "%s", rapt_error());
    return rapt_tanh(x);
}

static rapt_tensor *stop_within(rapt_tensor *x)
{
    rapt_tensor *y = rapt_tanh(x);
    cr_assert(rapt_profile_stop(), "%s", rapt_error());
    return y;
}

static void *times_in_thread(void *times)
{
    *(rapt_profile_times *)times = rapt_profile_get_times();
    return NULL;
}

/* Modules that began before the profile, or end after it, are not in it; the ops between are. */
Test(profile_events, starts_and_stops_within_modules)
{
    RAPT_SCOPE;
    pthread_t thread;
    rapt_profile_times times;
    char line[4096];
    int ops = 0, modules = 0;
    write_temporary_file(path_within, "", 0);
    rapt_sequential *model =
        RAPT_SEQUENTIAL(rapt_activation_new("Start", start_within), rapt_activation_new("Tanh", rapt_tanh),
                        rapt_activation_new("Stop", stop_within));
    cr_assert_not_null(rapt_sequential_forward(model, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2))), "%s", rapt_error());
    FILE *file = fopen(path_within, "r");
    cr_assert_not_null(file);
    while (fgets(line, sizeof line, file)) {
        ops += strncmp(line, "{\"name\": \"tanh\", \"cat\": \"forward\"", 32) == 0;
        modules += strstr(line, "\"cat\": \"module\"") != NULL;
        cr_expect_null(strstr(line, "\"ts\": -"), "%s", line);
    }
    fclose(file);
    unlink(path_within);
    cr_expect_eq(ops, 3);
    cr_expect_eq(modules, 1, "%d modules", modules);
    cr_assert(rapt_profile_start(NULL));
    cr_assert_eq(pthread_create(&thread, NULL, times_in_thread, &times), 0);
    pthread_join(thread, NULL);
    cr_expect_eq(times.threads, 1, "who only asks is none of those that compute");
    cr_assert(rapt_profile_stop());
    rapt_module_free(&model->module);
}

static void sine_some(int count)
{
    for (int i = 0; i < count; i++) rapt_sin(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2)));
}

/* The file of the first is finished before the second begins. */
Test(profile_events, one_file_twice)
{
    RAPT_SCOPE;
    char path[32], line[4096] = "";
    int count = 0;
    write_temporary_file(path, "", 0);
    cr_assert(rapt_profile_start(path), "%s", rapt_error());
    sine_some(1000);
    cr_assert(rapt_profile_start(path), "%s", rapt_error());
    sine_some(3);
    cr_assert(rapt_profile_stop(), "%s", rapt_error());
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file);
    while (fgets(line, sizeof line, file)) count += strstr(line, "{\"name\": \"sin\"") != NULL;
    fclose(file);
    unlink(path);
    cr_expect_eq(count, 3, "%d events", count);
    cr_expect_str_eq(line, "]}\n", "the last line");
}

static void ask_for_times(rapt_error_code code, const char *message)
{
    cr_expect_eq(code, RAPT_ERROR_FILE, "%s", message);
    rapt_profile_get_times();
}

/* A profile that did not begin does not run, and an error handler may ask how far the one before came. */
Test(profile_events, a_file_that_cannot_be_finished, .timeout = 20)
{
    RAPT_SCOPE;
    cr_assert(rapt_profile_start("/dev/full"), "%s", rapt_error());
    sine_some(1);
    rapt_error_handler *before = rapt_on_error(ask_for_times);
    cr_expect_not(rapt_profile_start(NULL));
    rapt_on_error(before);
    expect_error(RAPT_ERROR_FILE, "profile_stop: '/dev/full' could not be written whole: No space");
    sine_some(5);
    cr_expect_eq(rapt_profile_get_times().calls, 1);
    cr_expect(rapt_profile_stop());
}
