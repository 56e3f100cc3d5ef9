/* Printing a tensor in numpy's layout: nested brackets, columns that line up, long axes and long lines cut. */
#include <rapt/print.h>

#include <string.h>

#include "print.h"
#include "tensor/debug.h"
#include "tensor/system.h"

typedef struct printer {
    FILE *stream;
    const rapt_tensor *tensor;
    rapt_number_format format;
    bool summarised;
    int64_t edge;
    int width;
    int column; /* of the text written to this line, the spaces that wait included */
    int spaces; /* that wait for something to follow: none stand at the end of a line */
} printer;

typedef void each_element(printer *p, const char *data);

static void put(printer *p, const char *text)
{
    const size_t leading = strspn(text, " ");
    size_t end = strlen(text);
    p->column += (int)end;
    if (text[leading] == '\0') {
        p->spaces += (int)leading;
        return;
    }
    while (text[end - 1] == ' ') end--;
    fprintf(p->stream, "%*s%.*s", p->spaces, "", (int)end, text);
    p->spaces = (int)(strlen(text) - end);
}

static void start_line(printer *p, int newlines, int indent)
{
    for (int i = 0; i < newlines; i++) fputc('\n', p->stream);
    p->spaces = p->column = indent;
}

/* The first index after the gap, when the axis is cut at all; else the first index of all. */
static int64_t gap_end(const printer *p, int axis)
{
    const int64_t size = p->tensor->shape[axis];
    return p->summarised && size / 2 >= p->edge && size > 2 * p->edge ? size - p->edge : 0;
}

static int64_t byte_stride(const printer *p, int axis)
{
    return p->tensor->strides[axis] * (int64_t)rapt_dtype_size(p->format.dtype);
}

static void for_each_shown(printer *p, int axis, const char *data, each_element *each)
{
    if (axis == p->tensor->rank) {
        each(p, data);
        return;
    }
    const int64_t resume = gap_end(p, axis);
    for (int64_t i = 0; i < p->tensor->shape[axis]; i++) {
        if (resume && i == p->edge) i = resume;
        for_each_shown(p, axis + 1, data + i * byte_stride(p, axis), each);
    }
}

static void see(printer *p, const char *data)
{
    rapt_number_see(&p->format, data);
}

static void fit(printer *p, const char *data)
{
    rapt_number_fit(&p->format, data);
}

/* A word of the innermost axis, on a new line when it would not fit on this one. A scalar has depth 0. */
static void write_word(printer *p, const char *word, int depth)
{
    if (p->column + (int)strlen(word) > p->width - depth && p->column > depth) start_line(p, 1, depth);
    put(p, word);
}

static void write_items(printer *p, int axis, const char *data)
{
    char text[RAPT_NUMBER_TEXT];
    if (axis == p->tensor->rank) {
        write_word(p, rapt_number_write(&p->format, data, text), axis);
        return;
    }
    const int64_t resume = gap_end(p, axis);
    const int newlines = p->tensor->rank - 1 - axis;
    put(p, "[");
    for (int64_t i = 0; i < p->tensor->shape[axis]; i++) {
        if (i > 0 && newlines == 0) put(p, " ");
        if (i > 0 && newlines > 0) start_line(p, newlines, axis + 1);
        if (resume && i == p->edge) {
            write_word(p, "...", axis + 1);
            i = resume - 1;
            continue;
        }
        write_items(p, axis + 1, data + i * byte_stride(p, axis));
    }
    put(p, "]");
}

static void write_values(printer *p)
{
    const rapt_tensor *tensor = p->tensor;
    if (tensor->count == 0) {
        fputs("[]", p->stream);
        return;
    }
    for_each_shown(p, 0, tensor->data, see);
    rapt_number_choose(&p->format);
    for_each_shown(p, 0, tensor->data, fit);
    rapt_number_close(&p->format);
    if (tensor->rank == 0 && p->format.dtype == RAPT_BOOL) p->format.left = 0; /* nothing to line up with */
    write_items(p, 0, tensor->data);
}

/* float32, int64 and bool are what numbers with and without a point and True and False stand for. */
static bool dtype_shows(rapt_dtype dtype)
{
    return dtype == RAPT_FLOAT32 || dtype == RAPT_INT64 || dtype == RAPT_BOOL;
}

static void print_to(FILE *stream, const rapt_tensor *tensor, const rapt_print_options *options)
{
    printer p = {.stream = stream,
                 .tensor = tensor,
                 .format = {.dtype = tensor->dtype, .precision = options->precision ? options->precision : 4},
                 .summarised = tensor->count > (options->threshold ? options->threshold : 1000),
                 .edge = options->edge_items ? options->edge_items : 3,
                 .width = options->line_width ? options->line_width : 75};
    write_values(&p);
    char text[256];
    if (p.summarised || tensor->count == 0)
        fprintf(stream, " %s", rapt_describe(tensor, text, sizeof text));
    else if (!dtype_shows(p.format.dtype))
        fprintf(stream, " %s", rapt_dtype_name(p.format.dtype));
    fputc('\n', stream);
}

static bool check_options(const rapt_print_options *options)
{
    if (options->precision >= 0 && options->precision <= RAPT_MAX_PRECISION && options->threshold >= 0 &&
        options->edge_items >= 0 && options->line_width >= 0)
        return true;
    return rapt_fail(
        RAPT_ERROR_VALUE, "print",
        "precision %d, threshold %lld, edge_items %d, line_width %d; none below 0 expected, and a precision "
        "of at most %d",
        options->precision, (long long)options->threshold, options->edge_items, options->line_width,
        RAPT_MAX_PRECISION);
}

bool rapt_print_to(FILE *stream, const rapt_tensor *tensor, const rapt_print_options *options)
{
    static const rapt_print_options defaults;
    if (!stream) return rapt_fail_null("print", "stream");
    if (!rapt_check_alive("print", "the tensor", tensor)) return false;
    if (!options) options = &defaults;
    if (!check_options(options)) return false;
    /* a point is a point in every locale */
    rapt_plain_numbers kept;
    if (!rapt_plain_numbers_begin(&kept))
        return rapt_fail(RAPT_ERROR_MEMORY, "print", "no memory for the locale of numbers");
    if (tensor)
        print_to(stream, tensor, options);
    else
        fputs("NULL\n", stream);
    rapt_plain_numbers_end(&kept);
    return !ferror(stream) || rapt_fail(RAPT_ERROR_FILE, "print", "the stream cannot be written");
}

void rapt_print(const rapt_tensor *tensor)
{
    rapt_print_to(stdout, tensor, NULL);
}
