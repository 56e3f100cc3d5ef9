/* How heatmaps are laid out in the columns of a terminal. Private to the printed heatmaps. */
#ifndef EXAMPLES_TERMINAL_LAYOUT_H
#define EXAMPLES_TERMINAL_LAYOUT_H

#include "terminal.h"

enum { LONGEST_LABEL = 16 }; /* columns beside a matrix, or lines below it */

struct terminal_layout {
    struct heatmap heatmap;              /* what is printed: coarser than what was given, if that is too large */
    int64_t merged_queries, merged_keys; /* that one printed cell is the mean of */
    bool labels_left_out;                /* those of the keys */
    enum terminal_colours colours;
    double low, high;
    int width;       /* of the terminal */
    int label_width; /* of the queries' */
    int cell;        /* columns */
    bool halves;     /* one line shows two queries, in the halves of its characters */
    int room;        /* columns of a matrix with its frame, title and x_label */
    int64_t band;    /* matrices beside each other */
};

/* Decides everything from heatmap, width and colours, and replaces the heatmap's values by a new array, which
   the caller frees and which is returned; NULL without memory. */
float *terminal_lay_out(struct terminal_layout *layout);

int64_t terminal_divide_up(int64_t a, int64_t b);

/* The columns of the widest text; 0 for NULL. */
int terminal_widest(const char *const *texts, int64_t count);

/* The width, but at least 1 and at most `most`. */
int terminal_clamp(int width, int most);

#endif
