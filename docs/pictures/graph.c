/* Draws the graph of the guide "How it works inside", with its numbers: graph FILE.svg. */
#include <stdio.h>
#include <stdlib.h>

#include <rapt.h>

enum { WIDTH = 136, HEIGHT = 76, STATIONS = 7 };

typedef struct station {
    const char *name, *op;
    int x, y;
    rapt_tensor *tensor, *gradient; /* gradient may be NULL */
} station;

/* A line of text: the word, and at most two numbers of the tensor. */
static void write_line(FILE *file, const station *s, int line, const char *colour, const char *word,
                       rapt_tensor *tensor)
{
    fprintf(file, "<text x=\"%d\" y=\"%d\" fill=\"%s\">%s", s->x + 10, s->y + 22 * line, colour, word);
    rapt_tensor *flat = tensor ? rapt_reshape(tensor, RAPT_SHAPE(-1)) : NULL;
    for (int64_t i = 0; flat && i < rapt_count(flat) && i < 2; i++)
        fprintf(file, "%s%.3g", i ? ", " : "", rapt_at(flat, &i));
    fprintf(file, "%s</text>\n", flat && rapt_count(flat) > 2 ? ", …" : "");
}

static void write_station(FILE *file, const station *s)
{
    fprintf(file, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\" fill=\"%s\" stroke=\"#456\"/>\n", s->x,
            s->y, WIDTH, HEIGHT, s->gradient ? "#eef4fb" : "#f3f3f3");
    write_line(file, s, 1, "#234", s->name, NULL);
    fprintf(file, "<text x=\"%d\" y=\"%d\" fill=\"#678\" text-anchor=\"end\">%s</text>\n", s->x + WIDTH - 10, s->y + 22,
            s->op);
    write_line(file, s, 2, "#000", "", s->tensor);
    if (s->gradient) write_line(file, s, 3, "#a22", "d ", s->gradient);
}

/* From the right side of one to the left side of another, bent by so much. */
static void write_arrow(FILE *file, const station *from, const station *to, int bend)
{
    const int x = from->x + WIDTH, y = from->y + HEIGHT / 2 + bend, to_x = to->x - 6, to_y = to->y + HEIGHT / 2 + bend;
    fprintf(file, "<path d=\"M%d %dC%d %d %d %d %d %d\" fill=\"none\" stroke=\"#456\" marker-end=\"url(#tip)\"/>\n", x,
            y, x + 24, y + bend, to_x - 24, to_y + bend, to_x, to_y);
}

int main(int argc, char **argv)
{
    FILE *file = argc == 2 ? fopen(argv[1], "w") : NULL;
    if (!file) {
        fputs("usage: graph FILE.svg\n", stderr);
        return 2;
    }
    rapt_on_error(rapt_exit_on_error);
    rapt_tensor *x = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(2, 2), (float[]){1, 2, 3, 4});
    rapt_tensor *w = rapt_require_gradient(rapt_from(RAPT_FLOAT32, RAPT_SHAPE(1, 2), (float[]){0.5F, -0.5F}));
    rapt_tensor *b = rapt_require_gradient(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(1)));
    rapt_tensor *u = rapt_affine(x, w, b), *h = rapt_tanh(u), *squares = rapt_mul(h, h);
    rapt_tensor *loss = rapt_sum(squares, RAPT_ALL_AXES, false);
    rapt_tensor *inputs[] = {w, b, u, h, squares, loss}, *d[6];
    rapt_gradients(1, &loss, NULL, 6, inputs, d, 0);

    const station stations[] = {{"x", "data", 2, 2, x, NULL},        {"w", "leaf", 2, 92, w, d[0]},
                                {"b", "leaf", 2, 182, b, d[1]},      {"u", "affine", 188, 92, u, d[2]},
                                {"h", "tanh", 374, 92, h, d[3]},     {"h²", "mul", 560, 92, squares, d[4]},
                                {"loss", "sum", 746, 92, loss, d[5]}};
    fputs("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 886 262\" width=\"886\" height=\"262\" "
          "font-family=\"sans-serif\" font-size=\"15\">\n"
          "<defs><marker id=\"tip\" markerWidth=\"9\" markerHeight=\"8\" refX=\"5\" refY=\"4\" orient=\"auto\">"
          "<path d=\"M0 0L9 4L0 8z\" fill=\"#456\"/></marker></defs>\n",
          file);
    for (int i = 0; i < STATIONS; i++) write_station(file, &stations[i]);
    for (int i = 0; i < 3; i++) write_arrow(file, &stations[i], &stations[3], 0);
    write_arrow(file, &stations[3], &stations[4], 0);
    write_arrow(file, &stations[4], &stations[5], -9);
    write_arrow(file, &stations[4], &stations[5], 9);
    write_arrow(file, &stations[5], &stations[6], 0);
    fputs("</svg>\n", file);
    return fclose(file) ? EXIT_FAILURE : EXIT_SUCCESS;
}
