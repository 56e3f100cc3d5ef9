/* Tests of examples/common/picture.h: heatmaps and charts as text. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "printed_picture.h"
#include "pseudo_terminal.h"

TestSuite(terminal_picture, .init = enter);

static void expect_error(bool printed, const char *part)
{
    cr_expect_not(printed);
    cr_expect(strstr(error, part), "'%s' does not say '%s'", error, part);
    cr_expect(!strchr(error, '\n'));
    error[0] = '\0';
}

/* The longest line in characters: bytes that do not continue one. */
static int widest_line(const char *lines)
{
    int widest = 0, width = 0;
    for (const char *at = lines; *at; at++) {
        width = *at == '\n' ? 0 : width + ((*at & 0xc0) != 0x80);
        if (width > widest) widest = width;
    }
    return widest;
}

Test(terminal_picture, identity)
{
    float identity[100] = {0};
    for (int i = 0; i < 10; i++) identity[11 * i] = 1;
    struct heatmap heatmap = {identity, 1, 1, 10, 10, NULL, NULL, NULL, "Keys", "Queries", NULL};
    cr_expect_str_eq(print_heatmaps(&heatmap), "Queries ↓\n"
                                               "  ┌────────────────────┐\n"
                                               "0 │██                  │\n"
                                               "1 │  ██                │\n"
                                               "2 │    ██              │\n"
                                               "3 │      ██            │\n"
                                               "4 │        ██          │\n"
                                               "5 │          ██        │\n"
                                               "6 │            ██      │\n"
                                               "7 │              ██    │\n"
                                               "8 │                ██  │\n"
                                               "9 │                  ██│\n"
                                               "  └────────────────────┘\n"
                                               "   0 1 2 3 4 5 6 7 8 9\n"
                                               "           Keys\n"
                                               "  0 │  ░░░░░▒▒▒▒▒▓▓▓▓▓███│ 1\n");
}

Test(terminal_picture, grid_with_titles_and_one_scale)
{
    float values[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, NAN};
    const char *titles[] = {"A", "Head 2", "C"};
    struct heatmap heatmap = {values, 2, 3, 1, 2, titles, NULL, NULL, "x", NULL, NULL};
    cr_expect_str_eq(print_heatmaps(&heatmap), "    A    Head 2   C\n"
                                               "  ┌────┐ ┌────┐ ┌────┐\n"
                                               "0 │    │ │░░░░│ │▒▒▒▒│\n"
                                               "  └────┘ └────┘ └────┘\n"
                                               "  ┌────┐ ┌────┐ ┌────┐\n"
                                               "0 │▒▒▓▓│ │▓▓██│ │██××│\n"
                                               "  └────┘ └────┘ └────┘\n"
                                               "   0 1    0 1    0 1\n"
                                               "    x      x      x\n"
                                               "  0 │  ░░░░░▒▒▒▒▒▓▓▓▓▓███│ 10   × NaN\n");
}

Test(terminal_picture, rows_have_titles)
{
    float values[] = {0, 1, 2, 3};
    const char *titles[] = {"Head 1", "Head 2"}, *rows[] = {"Layer 1", "Layer 2"};
    struct heatmap heatmap = {values, 2, 2, 1, 1, titles, NULL, NULL, NULL, "q", rows};
    cr_expect_str_eq(print_heatmaps(&heatmap),
                     "q ↓\n"
                     "  Head 1 Head 2\n"
                     "Layer 1\n"
                     "  ┌──┐   ┌──┐\n"
                     "0 │  │   │░░│\n"
                     "  └──┘   └──┘\n"
                     "Layer 2\n"
                     "  ┌──┐   ┌──┐\n"
                     "0 │▓▓│   │██│\n"
                     "  └──┘   └──┘\n"
                     "   0      0\n"
                     "  0 │  ░░░░░▒▒▒▒▒▓▓▓▓▓███│ 3\n",
                     "%s", text);
    setenv("COLUMNS", "12", 1);
    const char *second = strstr(print_heatmaps(&heatmap), "Head 2");
    cr_expect(second && strstr(second, "Layer 2"), "what is below has its own titles: %s", text);
}

Test(terminal_picture, tokens_stand_upright_below_their_keys)
{
    float values[] = {1, 0, 0, 0.5f, 0.25f, 1};
    const char *source[] = {"l\xc3\xa9g", "e\xcc\x81t\n", "."},
               *target[] = {"a word of many letters", "\x1b[\xef\xbf\xbem"};
    struct heatmap heatmap = {values, 1, 1, 2, 3, NULL, target, source, NULL, NULL, NULL};
    cr_expect_str_eq(print_heatmaps(&heatmap),
                     "                 ┌──────┐\n"
                     "a word of many … │██    │\n"
                     "            ␛[�m │▒▒░░██│\n"
                     "                 └──────┘\n"
                     "                  l e\xcc\x81 .\n"
                     "                  é t\n"
                     "                  g ␊\n"
                     "                 0 │  ░░░░░▒▒▒▒▒▓▓▓▓▓███│ 1\n",
                     "%s", text);
    const char *wide[] = {"猫", "犬", "b"};
    heatmap.key_labels = wide, heatmap.query_labels = NULL;
    cr_expect(strstr(print_heatmaps(&heatmap), "\n   猫犬b\n"), "%s", text);
}

Test(terminal_picture, one_that_is_too_large_is_printed_coarser)
{
    static float values[64 * 64];
    for (int i = 0; i < 64 * 64; i++) values[i] = i / 64 < 32 && i % 64 < 32 ? 1 : i % 64 < 32 ? NAN : 0;
    values[63 * 64] = 4; /* the one number among the NaN */
    struct heatmap heatmap = {values, 1, 1, 64, 64, NULL, NULL, NULL, "keys", NULL, NULL};
    setenv("COLUMNS", "21", 1);
    cr_expect_str_eq(print_heatmaps(&heatmap),
                     "   ┌────────────────┐\n"
                     " 0 │░░░░░░░░        │\n"
                     " 8 │░░░░░░░░        │\n"
                     "16 │░░░░░░░░        │\n"
                     "24 │░░░░░░░░        │\n"
                     "32 │××××××××        │\n"
                     "40 │××××××××        │\n"
                     "48 │××××××××        │\n"
                     "56 │█×××××××        │\n"
                     "   └────────────────┘\n"
                     "    0    20   40   60\n"
                     "          keys\n"
                     "   0 │  ░░░░░▒▒▒▒▒▓▓▓▓▓███│ 4   × NaN\n"
                     "each character is the mean of 8 queries x 4 keys\n",
                     "%s", text);
}

Test(terminal_picture, matrices_that_do_not_fit_go_below_each_other)
{
    float values[4 * 9] = {0};
    for (int i = 0; i < 36; i++) values[i] = (float)(i / 9);
    const char *tokens[] = {"a", "b", "c"}, *titles[] = {"1", "2", "3", "4"};
    struct heatmap heatmap = {values, 1, 4, 3, 3, titles, tokens, tokens, NULL, "q", NULL};
    setenv("COLUMNS", "30", 1);
    cr_expect_str_eq(print_heatmaps(&heatmap),
                     "q ↓\n"
                     "     1        2\n"
                     "  ┌──────┐ ┌──────┐\n"
                     "a │      │ │░░░░░░│\n"
                     "b │      │ │░░░░░░│\n"
                     "c │      │ │░░░░░░│\n"
                     "  └──────┘ └──────┘\n"
                     "   a b c    a b c\n"
                     "\n"
                     "q ↓\n"
                     "     3        4\n"
                     "  ┌──────┐ ┌──────┐\n"
                     "a │▓▓▓▓▓▓│ │██████│\n"
                     "b │▓▓▓▓▓▓│ │██████│\n"
                     "c │▓▓▓▓▓▓│ │██████│\n"
                     "  └──────┘ └──────┘\n"
                     "   a b c    a b c\n"
                     "  0 │  ░░░░░▒▒▒▒▒▓▓▓▓▓███│ 3\n",
                     "%s", text);
}

Test(terminal_picture, never_wider_than_the_terminal)
{
    static float values[2 * 5 * 30 * 70];
    static const char *tokens[70];
    for (int i = 0; i < 70; i++) tokens[i] = i % 2 ? "été" : "a longer token";
    const char *titles[] = {"Head 1", "Head 2", "Head 3", "Head 4", "the longest of all titles by far"};
    for (int tokened = 0; tokened < 2; tokened++) {
        struct heatmap heatmap = {values,
                                  2,
                                  5,
                                  30,
                                  70,
                                  titles,
                                  NULL,
                                  NULL,
                                  "Key positions",
                                  "Query positions",
                                  (const char *[]){"Layer 1", "the second layer, with the longest of names"}};
        if (tokened) heatmap.key_labels = heatmap.query_labels = tokens;
        for (int width = 45; width < 400; width += width / 8) {
            char columns[16];
            snprintf(columns, sizeof columns, "%d", width);
            setenv("COLUMNS", columns, 1);
            print_heatmaps(&heatmap);
            char *note = strstr(text, "each character is");
            if (note) *note = '\0';
            cr_expect_leq(widest_line(text), width, "%s", text);
            cr_expect_eq(strstr(text, "lon") != NULL || !tokened, true);
        }
    }
    setenv("COLUMNS", "40", 1);
    struct heatmap heatmap = {values, 1, 1, 30, 70, NULL, NULL, tokens, NULL, NULL, NULL};
    cr_expect(strstr(print_heatmaps(&heatmap), "\nthe labels of the keys have no room\n"), "%s", text);
    for (int width = 1; width < 10; width++) {
        char columns[16];
        snprintf(columns, sizeof columns, "%d", width);
        setenv("COLUMNS", columns, 1);
        print_heatmaps(&heatmap);
    }
}

Test(terminal_picture, colours)
{
    float values[] = {0, 1, NAN};
    struct heatmap heatmap = {values, 1, 1, 1, 3, NULL, NULL, NULL, NULL, NULL, NULL};
    setenv("CLICOLOR_FORCE", "1", 1);
    setenv("TERM", "xterm-256color", 1);
    cr_expect(strstr(print_heatmaps(&heatmap), "\n0 │\033[48;5;231m  \033[48;5;52m  \033[48;5;250m  \033[0m│\n"), "%s",
              text);
    setenv("COLORTERM", "truecolor", 1);
    cr_expect(strstr(print_heatmaps(&heatmap), "\n0 │\033[48;2;255;246;241m  \033[48;2;107;0;15m  "
                                               "\033[48;2;204;204;204m  \033[0m│\n"),
              "%s", text);
    setenv("NO_COLOR", "1", 1);
    cr_expect(strstr(print_heatmaps(&heatmap), "\n0 │  ██××│\n"), "%s", text);
    unsetenv("NO_COLOR");
    setenv("TERM", "dumb", 1);
    cr_expect(strstr(print_heatmaps(&heatmap), "\n0 │  ██××│\n"), "%s", text);
}

Test(terminal_picture, two_queries_share_a_line_of_narrow_cells_in_colours)
{
    float values[] = {0, 1, 1, 0, 0, 0};
    struct heatmap heatmap = {values, 1, 1, 3, 2, NULL, NULL, NULL, NULL, NULL, NULL};
    setenv("CLICOLOR_FORCE", "1", 1);
    setenv("TERM", "xterm-256color", 1);
    setenv("COLUMNS", "6", 1);
    cr_expect(strstr(print_heatmaps(&heatmap), "\n0 │\033[38;5;231m\033[48;5;52m▀\033[38;5;52m\033[48;5;231m▀\033[0m│\n"
                                               "2 │\033[38;5;231m▀\033[38;5;231m▀\033[0m│\n"),
              "%s", text);
}

Test(terminal_picture, terminals_are_recognised_and_measured)
{
    int reader;
    FILE *terminal = open_terminal(11, &reader);
    float values[8] = {0, 0, 0, 0, 0, 0, 0, 1};
    struct heatmap heatmap = {values, 1, 1, 1, 8, NULL, NULL, NULL, NULL, NULL, NULL};
    static const struct {
        const char *kind, *part;
    } terminals[] = {{"xterm", "│       █│"}, {"xterm-256color", "\033[38;5;231m▀\033[38;5;52m▀\033[0m│"}};
    for (int i = 0; i < 2; i++) {
        setenv("TERM", terminals[i].kind, 1);
        cr_expect_not(picture_print_heatmaps(terminal, NULL, NULL, 0));
        resize_terminal(terminal, 12);
        cr_assert(picture_print_heatmaps(terminal, &heatmap, error, sizeof error), "%s", error);
        ssize_t length = 0, news = 1;
        memset(text, 0, sizeof text);
        for (; news > 0 && !strstr(text, "│ 1\r\n"); length += news)
            news = read(reader, text + length, sizeof text - 1 - (size_t)length);
        cr_expect(strstr(text, terminals[i].part), "%s", text);
    }
    fclose(terminal);
    close(reader);
}

Test(terminal_picture, chart_of_two_lines_and_points)
{
    double x[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, up[11], down[11], px[] = {5, 5}, py[] = {0, 10};
    for (int i = 0; i < 11; i++) up[i] = i, down[i] = i == 3 ? (double)NAN : 10 - i;
    struct chart_series series[] = {{"up", x, up, 11, false},
                                    {"down", x, down, 11, false},
                                    {"data", px, py, 2, true},
                                    {NULL, x, up, 0, false}};
    struct chart chart = {.series = series, .num_series = 4, .title = "two", .x_label = "x", .y_label = "loss"};
    setenv("COLUMNS", "26", 1);
    cr_expect_str_eq(print_chart(&chart),
                     "             two\n"
                     "loss\n"
                     "10 ┤ +         •         *\n"
                     "   │  +                 *\n"
                     "   │   ++             **\n"
                     "   │     +           *\n"
                     "   │               **\n"
                     "   │              *\n"
                     "   │         ++ **\n"
                     " 5 ┤           +\n"
                     "   │          * +\n"
                     "   │        **   +\n"
                     "   │       *      +\n"
                     "   │      *        ++\n"
                     "   │    **           ++\n"
                     "   │   *               +\n"
                     "   │  *                 +\n"
                     " 0 ┤ *         •         +\n"
                     "   └─┬───────────────────┬\n"
                     "     0                  10\n"
                     "              x\n"
                     "    * up   + down   • data\n",
                     "%s", text);
}

Test(terminal_picture, things_that_cannot_be_printed)
{
    float value = 1;
    double x[] = {1, 2}, nothing[] = {NAN, INFINITY};
    const char *broken[] = {"\xc3"};
    struct heatmap heatmap = {&value, 1, 1, 1, 1, NULL, NULL, NULL, NULL, NULL, NULL}, bad = heatmap;
    struct chart_series series = {"loss", x, x, 2, false};
    struct chart chart = {.series = &series, .num_series = 1};
    expect_error(picture_print_heatmaps(NULL, &heatmap, error, sizeof error), "NULL");
    expect_error(picture_print_heatmaps(stdout, NULL, error, sizeof error), "no values");
    bad.keys = 0;
    expect_error(picture_print_heatmaps(stdout, &bad, error, sizeof error), "(1, 1, 1, 0)");
    bad = heatmap, bad.titles = broken;
    expect_error(picture_print_heatmaps(stdout, &bad, error, sizeof error), "titles[0]");
    bad = heatmap, bad.x_label = "\xff";
    expect_error(picture_print_heatmaps(stdout, &bad, error, sizeof error), "x_label of the picture is not UTF-8");
    expect_error(picture_print_chart(NULL, &chart, error, sizeof error), "NULL");
    expect_error(picture_print_chart(stdout, NULL, error, sizeof error), "no series");
    chart.title = "\xed\xa0\x80"; /* a surrogate */
    expect_error(picture_print_chart(stdout, &chart, error, sizeof error), "title of the picture is not UTF-8");
    chart.title = NULL, series.y = nothing;
    expect_error(picture_print_chart(stdout, &chart, error, sizeof error), "finite point");
    series.y = x, series.name = "\xc0\xaf"; /* overlong */
    expect_error(picture_print_chart(stdout, &chart, error, sizeof error), "name of a series");
    series.name = NULL;
    FILE *full = fopen("/dev/full", "w");
    if (!full) cr_skip_test("this machine has no /dev/full");
    expect_error(picture_print_heatmaps(full, &heatmap, error, sizeof error), "No space left");
    expect_error(picture_print_chart(full, &chart, error, sizeof error), "No space left");
    cr_expect_not(picture_print_chart(full, &chart, NULL, 0));
    fclose(full);
}

/* A straight line from corner to corner, in dots: 16 x 64 of them on 8 columns and 16 lines. */
Test(terminal_picture, a_lone_line_is_drawn_in_braille)
{
    double x[] = {0, 1}, y[] = {1, 100};
    struct chart_series series = {NULL, x, y, 2, false};
    struct chart chart = {.series = &series, .num_series = 1, .logarithmic_y = true};
    setenv("COLUMNS", "3", 1);
    cr_expect_str_eq(print_chart(&chart),
                     "100 ┤       ⢠\n"
                     "    │       ⡇\n"
                     "    │      ⢸\n"
                     "    │      ⡇\n"
                     "    │     ⢸\n"
                     "    │     ⡇\n"
                     "    │    ⢸\n"
                     " 10 ┤    ⡇\n"
                     "    │   ⢸\n"
                     "    │   ⡇\n"
                     "    │  ⢸\n"
                     "    │  ⡇\n"
                     "    │ ⢸\n"
                     "    │ ⡇\n"
                     "    │⢸\n"
                     "  1 ┤⠃\n"
                     "    └┬───────\n"
                     "     0\n",
                     "%s", text);
}
