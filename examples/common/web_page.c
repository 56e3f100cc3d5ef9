/* The page of a run: a head that draws (web_page.html), then a line of script for each thing that was seen. */
#include "web_page.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "system.h"

static const char head[] =
#include "web_page_html.h"
    ;

/* Within quotation marks of a script, in which "</script>" must not stand. */
static void put_text(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (; *text; text++) {
        const unsigned char byte = (unsigned char)*text;
        if (byte < 32 || byte == '"' || byte == '\\' || byte == '<')
            fprintf(stream, "\\u%04x", byte);
        else
            fputc(byte, stream);
    }
    fputc('"', stream);
}

static void put_labels(FILE *stream, const char *name, int64_t count, const char *const *labels)
{
    fprintf(stream, ", %s: [", name);
    for (int64_t i = 0; i < count; i++) {
        if (i > 0) fputs(", ", stream);
        put_text(stream, labels[i]);
    }
    fputc(']', stream);
}

/* All that was written arrives, or what did not arrive whole is cut off again, and nothing more is written. */
static bool arrive(struct web_page *page)
{
    const bool good = !page->failed && !ferror(page->stream) && fflush(page->stream) == 0;
    const long end = good ? ftell(page->stream) : -1;
    const int reason = errno;
    page->failed = end < 0;
    if (!page->failed)
        page->whole = end;
    else if (ftruncate(fileno(page->stream), (off_t)page->whole) == 0)
        errno = reason;
    return !page->failed;
}

bool web_page_is_whole(const struct web_page *page)
{
    return !page->stream || (!page->failed && !ferror(page->stream));
}

static bool can_write(const struct web_page *page)
{
    return page->stream && web_page_is_whole(page);
}

static bool begin(struct web_page *page, const char *title, const char *note)
{
    fputs(head, page->stream);
    fputs("<script>title(", page->stream);
    put_text(page->stream, title);
    fputs(", ", page->stream);
    put_text(page->stream, note);
    fputs(")</script>\n", page->stream);
    return arrive(page);
}

/* How many bytes the whole lines of a page have: a kill may have torn the last one. */
static int64_t whole_lines(FILE *stream)
{
    int64_t whole = 0, at = 0;
    for (int byte; (byte = getc(stream)) != EOF;) {
        at++;
        if (byte == '\n') whole = at;
    }
    return ferror(stream) ? -1 : whole;
}

static bool go_on(struct web_page *page, int64_t step)
{
    page->whole = whole_lines(page->stream);
    if (page->whole < 0 || ftruncate(fileno(page->stream), (off_t)page->whole) != 0 ||
        fseek(page->stream, (long)page->whole, SEEK_SET) != 0)
        return false;
    fprintf(page->stream, "<script>back(%lld)</script>\n", (long long)step);
    return arrive(page);
}

/* Does the page at the path begin as this one, which has just been begun? Another run's, or anything else, does not. */
static bool is_of_this_run(struct web_page *page, const char *path)
{
    FILE *there = fopen(path, "rb");
    if (!there || fseek(page->stream, 0, SEEK_SET) != 0) {
        if (there) fclose(there);
        return false;
    }
    int64_t at = 0;
    while (at < page->whole && getc(there) == getc(page->stream)) at++;
    fclose(there);
    return at == page->whole && fseek(page->stream, (long)page->whole, SEEK_SET) == 0;
}

/* Replaces the page at the place, or goes on with it. False: errno says why. */
static bool open_at(struct web_page *page, const char *place, mode_t mode, const char *title, const char *note,
                    int64_t step)
{
    char beside[PATH_MAX + 32];
    snprintf(beside, sizeof beside, "%.*s.%ld.tmp", PATH_MAX, place, (long)getpid());
    *page = (struct web_page){.stream = fopen(beside, "w+b")};
    if (!page->stream) return false;
    bool good = begin(page, title, note);
    if (good && step > 0 && is_of_this_run(page, place)) {
        fclose(page->stream);
        remove(beside);
        *page = (struct web_page){.stream = fopen(place, "r+b")};
        good = page->stream && go_on(page, step);
    } else
        good = good && (mode == 0 || chmod(beside, mode) == 0) && rename(beside, place) == 0;
    if (good) return true;
    const int reason = errno;
    if (page->stream) fclose(page->stream);
    remove(beside);
    page->stream = NULL;
    errno = reason;
    return false;
}

bool web_page_open(struct web_page *page, const char *path, const char *title, const char *note, int64_t step,
                   char *error, size_t error_size)
{
    const char *why;
    mode_t mode;
    char *place = system_file_behind(path, &mode, &why);
    bool good = place && open_at(page, place, mode, title, note, step);
    if (!good) snprintf(error, error_size, "'%s' cannot be written: %s", path, place ? strerror(errno) : why);
    free(place);
    return good;
}

void web_page_point(struct web_page *page, int64_t step, const char *curve, double value)
{
    if (!can_write(page) || !isfinite(value)) return;
    fprintf(page->stream, "<script>point(%lld, {", (long long)step);
    put_text(page->stream, curve);
    fprintf(page->stream, ": %.7g})</script>\n", value);
}

static void put_map(FILE *stream, const struct web_page_map *map)
{
    fputs("{query_axis: ", stream);
    put_text(stream, map->query_axis);
    fputs(", key_axis: ", stream);
    put_text(stream, map->key_axis);
    fprintf(stream, ", layers: %lld, heads: %lld", (long long)map->layers, (long long)map->heads);
    put_labels(stream, "queries", map->queries, map->query_labels);
    put_labels(stream, "keys", map->keys, map->key_labels);
    fputs(", values: \"", stream);
    for (int64_t i = 0; i < map->layers * map->heads * map->queries * map->keys; i++) {
        const float weight = map->weights[i];
        fprintf(stream, "%02x", weight > 0 ? weight < 1 ? (unsigned)lrintf(255 * weight) : 255u : 0u);
    }
    fputs("\"}", stream);
}

void web_page_attention(struct web_page *page, int64_t step, const char *source, const char *translation, int count,
                        const struct web_page_map *maps)
{
    if (!can_write(page)) return;
    fprintf(page->stream, "<script>attention(%lld, ", (long long)step);
    put_text(page->stream, source);
    fputs(", ", page->stream);
    put_text(page->stream, translation);
    fputs(", [", page->stream);
    for (int i = 0; i < count; i++) {
        if (i > 0) fputs(", ", page->stream);
        put_map(page->stream, &maps[i]);
    }
    fputs("])</script>\n", page->stream);
    arrive(page);
}

bool web_page_close(struct web_page *page, char *error, size_t error_size)
{
    if (!page->stream) return true;
    const bool arrived = arrive(page);
    const bool good = fclose(page->stream) == 0 && arrived;
    page->stream = NULL;
    if (!good) snprintf(error, error_size, "the page of the run could not be written whole");
    return good;
}
