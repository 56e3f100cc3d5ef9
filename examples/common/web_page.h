/* One training run as a page of HTML: losses, learning rates, and weights of attention by layer and head as they
   change. The page is one file that needs no network. It is written as the run goes, and can be looked at meanwhile. */
#ifndef EXAMPLES_WEB_PAGE_H
#define EXAMPLES_WEB_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct web_page {
    FILE *stream;  /* NULL: there is no page, and the functions below do nothing */
    int64_t whole; /* bytes of it that have arrived */
    bool failed;
};

/* Begins a page, with a note under its title. One that is there already is replaced, or, where the run goes on from a
   step (0: it does not) and the page is its own, by title and note, gets what comes, and forgets what it has of later
   steps; of a symbolic link, the page that it leads to. False with one sentence in error; the old page is then what it
   was. */
bool web_page_open(struct web_page *page, const char *path, const char *title, const char *note, int64_t step,
                   char *error, size_t error_size);

/* Has all arrived so far? If not, there is nothing to add any more. */
bool web_page_is_whole(const struct web_page *page);

/* A point of a curve: the "training" or "validation" loss, or the "learning rate". What is not finite is left out. */
void web_page_point(struct web_page *page, int64_t step, const char *curve, double value);

/* Attention of one sentence: weights (layers, heads, queries, keys) from 0 to 1, and what the axes are called. */
struct web_page_map {
    const char *query_axis, *key_axis;
    const char *const *query_labels, *const *key_labels;
    int64_t layers, heads, queries, keys;
    const float *weights;
};

void web_page_attention(struct web_page *page, int64_t step, const char *source, const char *translation, int count,
                        const struct web_page_map *maps);

/* False with one sentence in error, when something could not be written. */
bool web_page_close(struct web_page *page, char *error, size_t error_size);

#endif
