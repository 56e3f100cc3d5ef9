/* Files, text and lines of the pictures, through cairo. */
#include "drawing.h"

#include <cairo-svg.h>
#include <errno.h>
#include <fontconfig/fontconfig.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "system.h"

const bool picture_has_files = true;

enum { MARGIN = 6, PNG_SCALE = 2, SECONDS_OF_A_PICTURE = 60 };

static const char FONT[] = "DejaVu Sans";

static bool ends_in(const char *path, const char *suffix)
{
    size_t length = strlen(path), suffix_length = strlen(suffix);
    return length > suffix_length && strcmp(path + length - suffix_length, suffix) == 0;
}

/* What fontconfig does by itself when it is first asked, which loops where its files cannot be read for want of
 * memory. */
static FcConfig *load_fonts_once(void)
{
    FcConfig *config = FcConfigCreate();
    return config && FcConfigParseAndLoad(config, NULL, FcTrue) && FcConfigBuildFonts(config) ? config : NULL;
}

/* What the font of all texts is there; NULL where the system has none at all. */
static FcPattern *find_font(FcConfig *config)
{
    FcResult result;
    FcPattern *wanted = FcNameParse((const FcChar8 *)FONT);
    if (!wanted || !FcConfigSubstitute(config, wanted, FcMatchPattern)) return NULL;
    FcDefaultSubstitute(wanted);
    return FcFontMatch(config, wanted, &result);
}

/* Twice, because fontconfig goes on without the folders and rules for which it has no memory: it finds another font
 * then. */
static bool load_fonts(void)
{
    FcConfig *first = load_fonts_once(), *second = first ? load_fonts_once() : NULL;
    if (!second) return false;
    const FcPattern *found = find_font(first), *again = find_font(second);
    return (found && again ? FcPatternEqual(found, again) : found == again) && FcConfigSetCurrent(second);
}

static void set_up(cairo_t *cairo)
{
    cairo_font_options_t *options = cairo_font_options_create();
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE); /* the same widths on every surface */
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    cairo_set_font_options(cairo, options);
    cairo_font_options_destroy(options);
    cairo_select_font_face(cairo, FONT, CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    drawing_font(cairo, LABEL_SIZE);
    cairo_set_line_join(cairo, CAIRO_LINE_JOIN_ROUND);
}

struct box {
    double x, y, width, height;
};

static cairo_status_t measure(drawing_function *draw, const void *what, struct box *box)
{
    cairo_surface_t *surface = cairo_recording_surface_create(CAIRO_CONTENT_COLOR_ALPHA, NULL);
    cairo_t *cairo = cairo_create(surface);
    set_up(cairo);
    draw(cairo, what);
    cairo_status_t status = cairo_status(cairo);
    double x, y, width, height;
    cairo_recording_surface_ink_extents(surface, &x, &y, &width, &height);
    if (!status) status = cairo_surface_status(surface); /* of the extents, too, which are cut where memory was short */
    /* Whole points, so that edges which draw puts on whole points stay sharp. */
    box->x = floor(x) - MARGIN, box->y = floor(y) - MARGIN;
    box->width = ceil(x + width) + MARGIN - box->x, box->height = ceil(y + height) + MARGIN - box->y;
    cairo_destroy(cairo);
    cairo_surface_destroy(surface);
    return status;
}

static cairo_status_t write_bytes(void *file, const unsigned char *bytes, unsigned length)
{
    return fwrite(bytes, 1, length, file) == length ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

static cairo_status_t render(FILE *file, bool svg, drawing_function *draw, const void *what, const struct box *box)
{
    cairo_surface_t *surface =
        svg ? cairo_svg_surface_create_for_stream(write_bytes, file, box->width, box->height)
            : cairo_image_surface_create(CAIRO_FORMAT_RGB24, PNG_SCALE * (int)box->width, PNG_SCALE * (int)box->height);
    cairo_t *cairo = cairo_create(surface);
    cairo_set_source_rgb(cairo, 1, 1, 1);
    cairo_paint(cairo);
    set_up(cairo);
    if (!svg) cairo_scale(cairo, PNG_SCALE, PNG_SCALE);
    cairo_translate(cairo, -box->x, -box->y);
    draw(cairo, what);
    cairo_status_t status = cairo_status(cairo);
    cairo_destroy(cairo);
    if (!svg && !status) status = cairo_surface_write_to_png_stream(surface, write_bytes, file);
    cairo_surface_finish(surface);
    if (!status) status = cairo_surface_status(surface);
    cairo_surface_destroy(surface);
    return status;
}

/* Renders into the file beside the path and renames it; why says what went wrong. */
static bool store(const char *path, const char *beside, mode_t mode, drawing_function *draw, const void *what,
                  const struct box *box, const char **why)
{
    FILE *file = fopen(beside, "wb");
    if (!file) return *why = strerror(errno), false;
    cairo_status_t status = render(file, ends_in(path, ".svg"), draw, what, box);
    bool stored =
        !status && fflush(file) == 0 && (mode == 0 || fchmod(fileno(file), mode) == 0) && fsync(fileno(file)) == 0;
    *why = status && status != CAIRO_STATUS_WRITE_ERROR ? cairo_status_to_string(status) : strerror(errno);
    bool closed = fclose(file) == 0;
    if (stored) {
        stored = closed && rename(beside, path) == 0;
        *why = strerror(errno);
    }
    return stored;
}

/* A picture on its way: where it goes, through which file, and what it shows. */
struct picture {
    const char *path, *place, *beside;
    mode_t mode;
    drawing_function *draw;
    const void *what;
};

/* What became of it, with its sentence. */
struct outcome {
    bool stored;
    char error[600];
};

static struct outcome draw_picture(const struct picture *p)
{
    struct outcome outcome = {.stored = false};
    struct box box;
    if (!load_fonts()) {
        figure_fail(outcome.error, sizeof outcome.error, "the picture '%s' cannot be drawn: no fonts can be loaded",
                    p->path);
        return outcome;
    }
    const cairo_status_t status = measure(p->draw, p->what, &box);
    const char *why;
    if (status)
        figure_fail(outcome.error, sizeof outcome.error, "the picture '%s' cannot be drawn: %s", p->path,
                    cairo_status_to_string(status));
    else if (!(box.width <= MAX_SIDE && box.height <= MAX_SIDE))
        figure_fail(outcome.error, sizeof outcome.error,
                    "the picture '%s' would be %.0f x %.0f points large, more than %d", p->path, box.width, box.height,
                    MAX_SIDE);
    else if (store(p->place, p->beside, p->mode, p->draw, p->what, &box, &why))
        outcome.stored = true;
    else
        figure_fail(outcome.error, sizeof outcome.error, "cannot write the picture '%s': %s", p->path, why);
    return outcome;
}

/* What a child tells of itself; the end that it came to where it does not. */
static struct outcome hear(int pipe, pid_t child, const char *path)
{
    struct outcome outcome;
    size_t heard = 0;
    ssize_t got;
    int status = 0;
    while (heard < sizeof outcome) {
        got = read(pipe, (char *)&outcome + heard, sizeof outcome - heard);
        if (got == 0 || (got < 0 && errno != EINTR)) break;
        heard += got > 0 ? (size_t)got : 0;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (heard == sizeof outcome) return outcome;
    outcome.stored = false;
    figure_fail(outcome.error, sizeof outcome.error,
                "the picture '%s' cannot be drawn: cairo or fontconfig ended by %s", path,
                WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "itself");
    return outcome;
}

/* In a child, because fontconfig ends the process or loops where memory is short. */
static struct outcome draw_in_child(const struct picture *p)
{
    struct outcome outcome = {.stored = false};
    int ends[2];
    if (pipe(ends) != 0) {
        figure_fail(outcome.error, sizeof outcome.error, "cannot draw the picture '%s': %s", p->path, strerror(errno));
        return outcome;
    }
    const pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CPU, &(struct rlimit){SECONDS_OF_A_PICTURE, SECONDS_OF_A_PICTURE + 1});
        outcome = draw_picture(p);
        _exit(write(ends[1], &outcome, sizeof outcome) != (ssize_t)sizeof outcome);
    }
    const int reason = errno;
    close(ends[1]);
    if (child < 0)
        figure_fail(outcome.error, sizeof outcome.error, "cannot draw the picture '%s': %s", p->path, strerror(reason));
    else
        outcome = hear(ends[0], child, p->path);
    close(ends[0]);
    return outcome;
}

bool drawing_write(const char *path, drawing_function *draw, const void *what, char *error, size_t error_size)
{
    if (!ends_in(path, ".svg") && !ends_in(path, ".png"))
        return figure_fail(error, error_size, "the picture '%s' must end in .svg or .png", path);
    const char *why;
    struct picture picture = {.path = path, .draw = draw, .what = what};
    char *place = system_file_behind(path, &picture.mode, &why), *beside = NULL;
    if (place && asprintf(&beside, "%s.%ld.tmp", place, (long)getpid()) < 0) beside = NULL, why = "out of memory";
    picture.place = place;
    picture.beside = beside;
    struct outcome outcome = {.stored = false};
    if (beside)
        outcome = draw_in_child(&picture);
    else
        figure_fail(outcome.error, sizeof outcome.error, "cannot write the picture '%s': %s", path, why);
    if (beside && !outcome.stored) remove(beside);
    free(place);
    free(beside);
    return outcome.stored || figure_fail(error, error_size, "%s", outcome.error);
}

void drawing_colour(cairo_t *cairo, struct colour colour, double opacity)
{
    cairo_set_source_rgba(cairo, colour.channels[0], colour.channels[1], colour.channels[2], opacity);
}

void drawing_font(cairo_t *cairo, double size)
{
    cairo_set_font_size(cairo, size);
}

double drawing_text_width(cairo_t *cairo, const char *text)
{
    if (!text) return 0;
    cairo_text_extents_t extents;
    cairo_text_extents(cairo, text, &extents);
    return extents.x_advance;
}

void drawing_text(cairo_t *cairo, const char *text, double x, double y, double anchor, double degrees)
{
    if (!text) return;
    cairo_text_extents_t capital;
    cairo_text_extents(cairo, "H", &capital);
    cairo_save(cairo);
    cairo_translate(cairo, x, y);
    cairo_rotate(cairo, -degrees * acos(-1) / 180);
    cairo_move_to(cairo, -anchor * drawing_text_width(cairo, text), capital.height / 2);
    cairo_show_text(cairo, text);
    cairo_restore(cairo);
}

const char *drawing_shorten(cairo_t *cairo, const char *label, char room[LABEL_ROOM])
{
    static const char ellipsis[] = "…", replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
    size_t length = 0;
    for (int size; *label && length + 4 + sizeof ellipsis <= LABEL_ROOM; label += size) {
        const bool is_refused = figure_is_noncharacter(figure_code_point(label, &size)); /* by cairo */
        const size_t count = is_refused ? sizeof replacement - 1 : (size_t)size;
        memcpy(room + length, is_refused ? replacement : label, count);
        length += count;
    }
    room[length] = '\0';
    if (!*label && drawing_text_width(cairo, room) <= MAX_LABEL_WIDTH) return room;
    do {
        while (length > 0 && ((unsigned char)room[length] & 0xc0) == 0x80) length--; /* not within a character */
        memcpy(room + length, ellipsis, sizeof ellipsis);
    } while (drawing_text_width(cairo, room) > MAX_LABEL_WIDTH && length-- > 0);
    return room;
}

void drawing_line(cairo_t *cairo, double x0, double y0, double x1, double y1)
{
    cairo_set_line_width(cairo, 0.8);
    cairo_move_to(cairo, x0, y0);
    cairo_line_to(cairo, x1, y1);
    cairo_stroke(cairo);
}

void drawing_frame(cairo_t *cairo, double x, double y, double width, double height)
{
    cairo_set_line_width(cairo, 0.8);
    cairo_rectangle(cairo, x, y, width, height);
    cairo_stroke(cairo);
}
