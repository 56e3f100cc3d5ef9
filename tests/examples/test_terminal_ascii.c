/* Tests of examples/common/picture.h: pictures as text where the locale has no UTF-8. */
#include <locale.h>
#include <math.h>
#include <string.h>

#include "printed_picture.h"

TestSuite(terminal_ascii, .init = enter);

static void expect_ascii(void)
{
    for (const char *at = text; *at; at++) cr_assert(*at == '\n' || (*at >= ' ' && *at <= '~'), "%s", text);
}

Test(terminal_ascii, another_locale_gets_ascii)
{
    float values[] = {0, 1, 2, 3, 4, NAN};
    const char *keys[] = {"l\xc3\xa9g", "猫"}, *queries[] = {"a word of many letters", "e\xcc\x81t\n", "c"};
    struct heatmap heatmap = {values, 1, 1, 3, 2, NULL, queries, keys, NULL, "q", NULL};
    const char *locales[] = {"C", "POSIX", "no_SUCH.UTF-8"};
    for (int i = 0; i < 3; i++) {
        const locale_t musl_has_each = i == 2 ? newlocale(LC_ALL_MASK, locales[i], (locale_t)0) : (locale_t)0;
        if (musl_has_each) {
            freelocale(musl_has_each);
            continue;
        }
        setenv("LC_ALL", locales[i], 1);
        cr_expect_str_eq(print_heatmaps(&heatmap),
                         "q v\n"
                         "                 +----+\n"
                         "a word of many . |  ..|\n"
                         "             et? |::**|\n"
                         "               c |##xx|\n"
                         "                 +----+\n"
                         "                  l ??\n"
                         "                  ?\n"
                         "                  g\n"
                         "                 0 |  .....:::::*****###| 4   x NaN\n",
                         "%s", text);
    }
}

Test(terminal_ascii, ascii_in_colours_and_in_charts)
{
    setenv("LC_ALL", "C", 1);
    setenv("CLICOLOR_FORCE", "1", 1);
    setenv("TERM", "xterm-256color", 1);
    setenv("COLUMNS", "6", 1);
    float values[] = {0, 1, 1, 0, 0, 0};
    struct heatmap heatmap = {values, 1, 1, 3, 2, NULL, NULL, NULL, NULL, NULL, NULL};
    cr_expect(strstr(print_heatmaps(&heatmap), "\n0 |\033[48;5;231m \033[48;5;52m \033[0m|\n"
                                               "1 |\033[48;5;52m \033[48;5;231m \033[0m|\n"),
              "%s", text);
    setenv("COLUMNS", "80", 1);
    double x[] = {1, 2, 3}, y[] = {1, 2, 1};
    struct chart_series series[] = {{"line", x, y, 3, false}, {"dots", x, x, 3, true}};
    struct chart chart = {.series = series, .num_series = 2, .title = "été", .x_label = "x", .y_label = "y"};
    print_chart(&chart);
    cr_expect(strstr(text, "*") && strstr(text, "o"), "%s", text);
    setenv("NO_COLOR", "1", 1);
    print_chart(&chart);
    expect_ascii();
    cr_expect(strstr(text, "?t?") && strstr(text, "* line   o dots"), "%s", text);
}
