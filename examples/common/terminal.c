/* Width and colours of terminals, and texts in columns. */
#include "terminal.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "system.h"

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && value[0] != '\0' && strcmp(value, "0") != 0;
}

enum terminal_colours terminal_colours(FILE *stream)
{
    const char *kind = getenv("TERM"), *depth = getenv("COLORTERM"), *none = getenv("NO_COLOR");
    if (none && none[0] != '\0') return TERMINAL_PLAIN; /* whatever its value: no-color.org */
    if (!is_set("CLICOLOR_FORCE") && !isatty(fileno(stream))) return TERMINAL_PLAIN;
    if (!kind || strcmp(kind, "dumb") == 0) return TERMINAL_PLAIN;
    if (depth && (strcmp(depth, "truecolor") == 0 || strcmp(depth, "24bit") == 0)) return TERMINAL_24_BIT;
    return strstr(kind, "256color") ? TERMINAL_256 : TERMINAL_PLAIN;
}

/* The nearest of the 256 colours, in their cube of 6 x 6 x 6. */
static int nearest_in_cube(const int rgb[3])
{
    static const int levels[] = {0, 95, 135, 175, 215, 255};
    int number = 0;
    for (int channel = 0; channel < 3; channel++) {
        int best = 0;
        for (int i = 1; i < 6; i++)
            if (abs(levels[i] - rgb[channel]) < abs(levels[best] - rgb[channel])) best = i;
        number = 6 * number + best;
    }
    return 16 + number;
}

void terminal_set_colour(FILE *stream, enum terminal_colours colours, struct colour colour, bool is_background)
{
    int rgb[3], ground = is_background ? 48 : 38;
    for (int channel = 0; channel < 3; channel++) rgb[channel] = (int)lround(255 * colour.channels[channel]);
    if (colours == TERMINAL_24_BIT) fprintf(stream, "\033[%d;2;%d;%d;%dm", ground, rgb[0], rgb[1], rgb[2]);
    if (colours == TERMINAL_256) fprintf(stream, "\033[%d;5;%dm", ground, nearest_in_cube(rgb));
}

void terminal_set_heat(FILE *stream, enum terminal_colours colours, double share, bool is_background)
{
    static const int reds[] = {231, 224, 217, 210, 203, 196, 160, 124, 88, 52}; /* the nearest ones would change hue */
    enum { NUM_REDS = sizeof reds / sizeof reds[0], GREY = 250 };
    int number = isnan(share) ? GREY : reds[(int)fmin(fmax(NUM_REDS * share, 0), NUM_REDS - 1)];
    if (colours == TERMINAL_256) fprintf(stream, "\033[%d;5;%dm", is_background ? 48 : 38, number);
    if (colours == TERMINAL_24_BIT) terminal_set_colour(stream, colours, figure_heat(share), is_background);
}

void terminal_reset(FILE *stream, enum terminal_colours colours)
{
    if (colours != TERMINAL_PLAIN) fputs("\033[0m", stream);
}

struct range {
    uint32_t first, last;
};

static bool is_in(uint32_t code, const struct range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (code >= ranges[i].first && code <= ranges[i].last) return true;
    return false;
}

/* The columns of a code point: 0 for the usual combining marks, joiners and selectors, 2 for East Asian wide ones. */
static int code_width(uint32_t code)
{
    static const struct range combining[] = {{0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x610, 0x61a},
                                             {0x64b, 0x65f},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f},
                                             {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}};
    static const struct range wide[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},  {0xac00, 0xd7a3},
                                        {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},  {0xffe0, 0xffe6},
                                        {0x1f300, 0x1f64f}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
    if (is_in(code, combining, sizeof combining / sizeof combining[0])) return 0;
    return is_in(code, wide, sizeof wide / sizeof wide[0]) ? 2 : 1;
}

const char *terminal_next(const char *text, int *width)
{
    const char *at = text;
    int length;
    *width = 0;
    if (*at == '\0') return text;
    int first = code_width(figure_code_point(at, &length));
    *width = first == 0 ? 1 : first; /* a combining mark alone */
    for (at += length; *at != '\0' && code_width(figure_code_point(at, &length)) == 0; at += length) continue;
    return at;
}

int terminal_text_width(const char *text)
{
    int total = 0, width = 1;
    while (text && width > 0) {
        text = terminal_next(text, &width);
        total += width;
    }
    return total;
}

void terminal_put_characters(FILE *stream, const char *from, const char *to)
{
    while (from < to) {
        int length;
        uint32_t code = figure_code_point(from, &length);
        if (code < 0x20)
            fprintf(stream, "\xe2\x90%c", (int)(0x80 + code)); /* U+2400 + code */
        else if ((code >= 0x7f && code < 0xa0) || figure_is_noncharacter(code))
            fputs(code == 0x7f ? "␡" : "�", stream);
        else
            fwrite(from, 1, (size_t)length, stream);
        from += length;
    }
}

void terminal_put(FILE *stream, const char *text, int width, double anchor)
{
    if (width <= 0) return;
    if (!text) text = "";
    int total = terminal_text_width(text), room = total > width ? width - 1 : width, used = 0, next_width = 1;
    const char *end = text, *next;
    while ((next = terminal_next(end, &next_width)) != end && used + next_width <= room) end = next, used += next_width;
    int columns = total > width ? used + 1 : used, before = (int)(anchor * (width - columns));
    fprintf(stream, "%*s", before, "");
    terminal_put_characters(stream, text, end);
    if (total > width) fputs("…", stream);
    fprintf(stream, "%*s", width - columns - before, "");
}

bool page_open(struct page *page, char *error, size_t error_size)
{
    *page = (struct page){0};
    page->stream = system_open_text(&page->text, &page->size);
    return page->stream || figure_fail(error, error_size, "terminal: out of memory for a picture");
}

/* What stands for a character of pictures where there is only ASCII. */
static const char *ascii_of(const char *character, size_t length)
{
    static const char *const table[][2] = {{"─", "-"}, {"│", "|"}, {"┌", "+"}, {"┐", "+"}, {"└", "+"},
                                           {"┘", "+"}, {"┬", "+"}, {"┤", "+"}, {"░", "."}, {"▒", ":"},
                                           {"▓", "*"}, {"█", "#"}, {"×", "x"}, {"↓", "v"}, {"…", "."},
                                           {"⋮", ":"}, {"•", "o"}, {"◦", "."}, {"▪", "#"}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strlen(table[i][0]) == length && memcmp(table[i][0], character, length) == 0) return table[i][1];
    return NULL;
}

/* Makes the text ASCII, in its place: no character takes more columns than bytes. */
static void make_ascii(char *text)
{
    char *out = text;
    int width;
    for (const char *at = text, *next; *at; at = next) {
        next = terminal_next(at, &width);
        const char *known = (unsigned char)*at < 0x80 ? at : ascii_of(at, (size_t)(next - at));
        for (int column = 0; column < width; column++) *out++ = known ? *known : '?';
    }
    *out = '\0';
}

bool page_print(struct page *page, FILE *stream, char *error, size_t error_size)
{
    if (!system_close_text(page->stream, &page->text, &page->size))
        return figure_fail(error, error_size, "terminal: out of memory for a picture");
    if (!system_is_utf8()) make_ascii(page->text);
    bool written = true;
    for (const char *line = page->text; *line;) {
        size_t length = strcspn(line, "\n"), shown = length;
        while (shown > 0 && line[shown - 1] == ' ') shown--;
        written = written && fwrite(line, 1, shown, stream) == shown && fputc('\n', stream) == '\n';
        line += length + (line[length] == '\n');
    }
    free(page->text);
    written = fflush(stream) == 0 && written;
    return written || figure_fail(error, error_size, "terminal: cannot write the picture: %s", strerror(errno));
}
