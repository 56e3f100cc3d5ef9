/* A stream as a terminal: how wide it is, which colours it has, and texts in columns. Private to what examples
 * print. */
#ifndef EXAMPLES_TERMINAL_H
#define EXAMPLES_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

#include "figure.h"

enum terminal_colours { TERMINAL_PLAIN, TERMINAL_256, TERMINAL_24_BIT };
enum terminal_colours terminal_colours(FILE *stream);

/* The escape sequences for the colour of what follows; nothing for TERMINAL_PLAIN. */
void terminal_set_colour(FILE *stream, enum terminal_colours colours, struct colour colour, bool is_background);
/* The same for figure_heat's colour of a share. */
void terminal_set_heat(FILE *stream, enum terminal_colours colours, double share, bool is_background);
void terminal_reset(FILE *stream, enum terminal_colours colours);

/* The byte after the first character of a UTF-8 text and the combining characters on it; the text itself at its end.
   *width: the columns that it takes, 1 or 2, or 0 at the end. */
const char *terminal_next(const char *text, int *width);

/* The columns that a UTF-8 text takes; 0 for NULL. */
int terminal_text_width(const char *text);

/* Prints a text from `from` to `to` (as terminal_next gives it), control characters as their pictures (␊), and
 * noncharacters as U+FFFD. */
void terminal_put_characters(FILE *stream, const char *from, const char *to);

/* Prints exactly `width` columns: a text (NULL: none) and spaces around it, at the left (anchor 0), in the middle
   (0.5) or at the right (1); a longer one is cut and ends in an ellipsis. */
void terminal_put(FILE *stream, const char *text, int width, double anchor);

/* Text that is printed at once, when it is complete. */
struct page {
    FILE *stream; /* to be written to */
    char *text;
    size_t size;
};

bool page_open(struct page *page, char *error, size_t error_size);

/* Prints it, without spaces at the ends of its lines, in ASCII where UTF-8 is not the locale's, and frees it. */
bool page_print(struct page *page, FILE *stream, char *error, size_t error_size);

#endif
