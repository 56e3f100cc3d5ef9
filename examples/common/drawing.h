/* What drawn heatmaps and charts share: files, text and lines. Private to the pictures; lengths are in points (1/72
 * inch). */
#ifndef EXAMPLES_DRAWING_H
#define EXAMPLES_DRAWING_H

#include <cairo.h>

#include "figure.h"

enum { LABEL_SIZE = 10, TITLE_SIZE = 12, MAX_LABEL_WIDTH = 150, LABEL_ROOM = 256, MAX_SIDE = 8000 };

/* Draws at any coordinates; must draw the same each time that it is called. */
typedef void drawing_function(cairo_t *cairo, const void *what);

/* Calls draw once to find out how large the picture is, and once to draw it. */
bool drawing_write(const char *path, drawing_function *draw, const void *what, char *error, size_t error_size);

/* Sets the colour for what follows. */
void drawing_colour(cairo_t *cairo, struct colour colour, double opacity);

/* Sets the font for what follows. */
void drawing_font(cairo_t *cairo, double size);

/* The width of a text in the current font; 0 for NULL. */
double drawing_text_width(cairo_t *cairo, const char *text);

/* Shows a text whose left end (anchor 0), middle (0.5) or right end (1) is at x, with capital letters centred on y,
   turned counter-clockwise around (x, y). NULL shows nothing. */
void drawing_text(cairo_t *cairo, const char *text, double x, double y, double anchor, double degrees);

/* Copies a label, with an ellipsis in place of what is beyond MAX_LABEL_WIDTH and U+FFFD in that of each noncharacter,
 * and returns room. */
const char *drawing_shorten(cairo_t *cairo, const char *label, char room[LABEL_ROOM]);

/* A line of the usual width of axes. */
void drawing_line(cairo_t *cairo, double x0, double y0, double x1, double y1);
void drawing_frame(cairo_t *cairo, double x, double y, double width, double height);

#endif
