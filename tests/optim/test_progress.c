/* What a training run shows of itself. */
#include "expect.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include <rapt/progress.h>

#include "tensor/utf8.h"

#ifndef _WIN32
#include "pseudo_terminal.h"
#endif

static const rapt_progress halfway = {.step = 600,
                                      .total = 1200,
                                      .recent_seconds = 10,
                                      .recent_steps = 100,
                                      .recent_items = 123456};

static void expect_text(rapt_progress progress, double loss, int width, const char *expected)
{
    char room[256];
    cr_expect_str_eq(rapt_progress_text(&progress, loss, width, room), expected);
    size_t shown = 0;
    for (const char *p = room; *p; p++) shown += (*p & 0xc0) != 0x80;
    cr_expect(width == 0 || shown <= (size_t)width, "%zu in %d", shown, width);
}

Test(progress, text_without_limit_has_no_bar)
{
    expect_text(halfway, 0.12345, 0, "step 600/1200  loss 0.1235  12346 tokens/s  1:00 left");
}

Test(progress, text_gives_up_parts_from_the_right)
{
    expect_text(halfway, 2.5, 79, "[===========>           ] step 600/1200  loss 2.5000  12346 tokens/s  1:00 left");
    expect_text(halfway, 2.5, 54, "step 600/1200  loss 2.5000  12346 tokens/s  1:00 left");
    expect_text(halfway, 2.5, 44, "step 600/1200  loss 2.5000  12346 tokens/s");
    expect_text(halfway, 2.5, 30, "step 600/1200  loss 2.5000");
    expect_text(halfway, 2.5, 20, "step 600/1200");
    expect_text(halfway, 2.5, 5, "");
    for (int width = 1; width < 256; width++) {
        char room[256];
        cr_expect(strlen(rapt_progress_text(&halfway, 2.5, width, room)) <= (size_t)width);
    }
}

/* Names are cut between characters, which widths count, and move no cursor. */
Test(progress, text_with_names_of_any_bytes)
{
    rapt_progress progress = halfway;
    progress.item_name = "wörter der größten übergrößen ähm";
    expect_text(progress, 2.5, 0, "step 600/1200  loss 2.5000  12346 wörter der größten übergrößen äh/s  1:00 left");
    expect_text(progress, 2.5, 68, "step 600/1200  loss 2.5000  12346 wörter der größten übergrößen äh/s");
    expect_text(progress, 2.5, 67, "[===================>                  ] step 600/1200  loss 2.5000");
    progress.item_name = "wörter";
    expect_text(progress, 2.5, 79, "[===========>           ] step 600/1200  loss 2.5000  12346 wörter/s  1:00 left");
    progress.item_name = "a\r\n\x1b[2J\x7f\xc2\x9b\xff\xc3z";
    expect_text(progress, 2.5, 0, "step 600/1200  loss 2.5000  12346 a???[2J????z/s  1:00 left");
    char long_name[200] = "";
    for (int i = 0; i < 40; i++) strcat(long_name, "\U0001f600");
    progress.item_name = long_name, progress.step = INT64_MAX - 1, progress.total = INT64_MAX;
    for (int width = 0; width < 300; width++) {
        char room[256];
        cr_expect(rapt_is_utf8(rapt_progress_text(&progress, 1, width, room)) && strlen(room) < sizeof room);
    }
}

Test(progress, text_of_extremes)
{
    rapt_progress progress = halfway;
    progress.step = 1200;
    expect_text(progress, NAN, 60, "[=================] step 1200/1200  loss nan  12346 tokens/s");
    progress.step = 0, progress.recent_steps = 0, progress.recent_seconds = 0;
    expect_text(progress, 1e9, 0, "step 0/1200  loss 1e+09");
    progress = halfway, progress.total = INT64_MAX;
    expect_text(progress, 1, 0, "step 600/9223372036854775807  loss 1.0000  12346 tokens/s  277777:46:40 left");
    progress = halfway, progress.recent_steps = 5;
    expect_text(progress, 1, 0, "step 600/1200  loss 1.0000  12346 tokens/s  20:00 left");
    progress.recent_steps = 1;
    expect_text(progress, 1, 0, "step 600/1200  loss 1.0000  12346 tokens/s  1:40:00 left");
}

/* What a run of `steps` steps writes elsewhere than on a terminal. */
static char *record(int steps, double interval)
{
    FILE *file = tmpfile();
    cr_assert_not_null(file);
    rapt_progress progress = rapt_progress_start(file, 0, steps);
    cr_expect_not(progress.on_terminal);
    progress.interval = interval;
    for (int step = 0; step < steps; step++) rapt_progress_step(&progress, 1.5, 64);
    rapt_progress_print(&progress, "validation loss %.1f", 2.0);
    rapt_progress_end(&progress);
    static char text[4096];
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static int count(const char *text, char wanted)
{
    int n = 0;
    for (; *text; text++) n += *text == wanted;
    return n;
}

Test(progress, plain_lines_have_no_control_characters)
{
    const char *text = record(3, 0);
    cr_expect_eq(count(text, '\n'), 4, "%s", text);
    cr_expect(count(text, '\r') == 0 && count(text, '\033') == 0);
    cr_expect(strstr(text, "step 1/3  loss 1.5000  ") == text, "%s", text);
    cr_expect(strstr(text, "\nvalidation loss 2.0\n"));
}

Test(progress, plain_lines_come_every_few_seconds_and_at_the_end)
{
    const char *text = record(1000, 5);
    cr_expect_eq(count(text, '\n'), 2, "%s", text);
    cr_expect(strstr(text, "step 1000/1000  loss 1.5000  ") == text, "%s", text);
}

/* What was written to the file since the last call. */
static const char *read_news(FILE *file, long *position)
{
    static char text[4096];
    fseek(file, *position, SEEK_SET);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    *position = ftell(file);
    return text;
}

Test(progress, bars_are_redrawn_in_place)
{
    long position = 0;
    FILE *file = tmpfile();
    cr_assert_not_null(file);
    rapt_progress progress = rapt_progress_start(file, 1, 4);
    progress.on_terminal = true, progress.interval = 0;
    setenv("COLUMNS", "60", 1);
    rapt_progress_step(&progress, 1.5, 0);
    const char *text = read_news(file, &position);
    cr_expect(strncmp(text, "\r[", 2) == 0 && strstr(text, "] step 2/4  loss 1.5000"), "%s", text);
    cr_expect_str_eq(text + strlen(text) - 3, "\033[K");
    cr_expect_eq(count(text, '\n'), 0);
    cr_expect_eq(strlen(text), strlen("\r") + 59 + strlen("\033[K"));

    setenv("COLUMNS", "20", 1);
    rapt_progress_step(&progress, 1.5, 0);
    cr_expect_str_eq(read_news(file, &position), "\r[======> ] step 3/4\033[K");
    rapt_progress_print(&progress, "hello");
    cr_expect_str_eq(read_news(file, &position), "\r\033[Khello\n");
    rapt_progress_end(&progress);
    cr_expect_str_eq(read_news(file, &position), "", "no bar is left to go below");
    rapt_progress_step(&progress, 1.5, 0);
    read_news(file, &position);
    rapt_progress_end(&progress);
    cr_expect_str_eq(read_news(file, &position), "\n");
    fclose(file);
}

Test(progress, bars_are_redrawn_ten_times_a_second)
{
    long position = 0;
    FILE *file = tmpfile();
    cr_assert_not_null(file);
    rapt_progress progress = rapt_progress_start(file, 0, 1000);
    progress.on_terminal = true, progress.interval = 0.1;
    for (int step = 0; step < 1000; step++) rapt_progress_step(&progress, 1.5, 64);
    const char *text = read_news(file, &position);
    cr_expect_leq(count(text, '\033'), 3, "%s", text);
    cr_expect(strstr(text, "step 1000/1000"));
    fclose(file);
}

#ifndef _WIN32
Test(progress, terminals_are_recognised_and_measured)
{
    int reader;
    FILE *terminal = open_terminal(60, &reader);
    unsetenv("COLUMNS");
    unsetenv("TERM");
    cr_expect_not(rapt_progress_start(terminal, 0, 1).on_terminal);
    setenv("TERM", "dumb", 1);
    cr_expect_not(rapt_progress_start(terminal, 0, 1).on_terminal);
    setenv("TERM", "xterm", 1);
    rapt_progress progress = rapt_progress_start(terminal, 0, 2);
    cr_expect(progress.on_terminal);
    progress.interval = 0;
    rapt_progress_step(&progress, 1.5, 0);
    char text[256];
    cr_expect_eq(read(reader, text, sizeof text), (ssize_t)(strlen("\r") + 59 + strlen("\033[K")));
    fclose(terminal);
    close(reader);
}
#endif

/* A step's weight falls to 1/e in ten seconds. */
Test(progress, speed_is_that_of_the_last_steps)
{
    rapt_progress progress = rapt_progress_start(NULL, 0, 100);
    progress.last_update -= 50;
    rapt_progress_step(&progress, 1, 200);
    progress.last_update -= 10;
    rapt_progress_step(&progress, 1, 300);
    cr_expect_float_eq(progress.recent_seconds, 50 * exp(-1) + 10, 1);
    cr_expect_float_eq(progress.recent_steps, exp(-1) + 1, 0.01);
    cr_expect_float_eq(progress.recent_items, 200 * exp(-1) + 300, 2);
}

Test(progress, other_items_no_stream_and_wrong_uses)
{
    rapt_progress pictures = halfway;
    pictures.item_name = "pictures";
    expect_text(pictures, 2.5, 0, "step 600/1200  loss 2.5000  12346 pictures/s  1:00 left");
    rapt_progress silent = rapt_progress_start(NULL, 0, 2);
    rapt_progress_step(&silent, 1, 1);
    rapt_progress_print(&silent, "nothing");
    rapt_progress_end(&silent);
    cr_expect_eq(silent.step, 1);
    expect_no_error();
    rapt_progress_step(NULL, 1, 1);
    expect_error(RAPT_ERROR_NULL, "progress is NULL");
    rapt_progress_print(NULL, "x");
    expect_error(RAPT_ERROR_NULL, "progress is NULL");
    rapt_progress_end(NULL);
    expect_no_error();
}
