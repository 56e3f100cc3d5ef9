/* The catalogue of layers: the cases that are made of each sample of their rows. */
#include <math.h>

#include "catalogue.h"

/* Up to so many leaf elements every derivative is looked at, beyond them one random direction for each case. */
enum { most_looked_at = 40, fewest_draws = 2 };

/* The result against the definition's. */
static void check_values(const subject *s, entry *e)
{
    static const double tolerance = 1e-12;
    RAPT_SCOPE;
    if (!s->layer->definition || (s->layer->draws_otherwise && s->module->training)) return;
    rapt_tensor *y = subject_call(s), *definition = subject_define(s);
    if (!y || !definition) {
        entry_fail(e, "%s: %s: %s", s->c.name, y ? "definition" : "call", rapt_error());
        rapt_clear_error();
        return;
    }
    array got = array_read(y), expected = array_read(definition);
    const double error = array_error(&got, &expected, array_largest(&expected));
    if (!(error <= tolerance))
        entry_fail(e, "%s: off by %.3g of the definition's size, %.3g allowed", s->c.name, error, tolerance);
    entry_note(e, of_values, error);
    array_free(&got);
    array_free(&expected);
}

static void check_case(const layer_row *layer, const op_sample *sample, rapt_dtype dtype, int way, int draw, bool brief,
                       entry *e)
{
    RAPT_SCOPE;
    subject s = subject_of_layer(layer, sample, dtype, way, draw);
    e->tried++;
    if (dtype == RAPT_FLOAT64) {
        check_values(&s, e);
        if (s.count) check_derivatives(&s, !brief && subject_width(&s) <= most_looked_at, e);
    } else {
        subject twice = subject_of_layer(layer, sample, RAPT_FLOAT64, way, draw);
        check_float32(&s, &twice, e);
        subject_free(&twice);
    }
    subject_free(&s);
}

static bool has_way(const layer_row *layer, const op_sample *sample, int way)
{
    return way == dense || (sample_has_way(sample, way) && !sample->large && !(layer->needs_spread && way == expanded));
}

/* How many cases one draw makes. */
static int64_t cases_of(const layer_row *layer)
{
    int64_t cases = 0;
    for (int i = 0; i < layer->row.sample_count; i++)
        for (int way = dense; way < way_count; way++) cases += 2 * has_way(layer, &layer->row.samples[i], way);
    return cases;
}

static void check_sample(const layer_row *layer, const op_sample *sample, int draw, bool brief, entry *e)
{
    const int number = (int)(sample - layer->row.samples);
    for (int way = dense; way < way_count; way++) {
        if (!has_way(layer, sample, way)) continue;
        for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
            e->cases++;
            if (!brief || (!sample->large && draw < fewest_draws && way == (number + draw) % way_count))
                check_case(layer, sample, dtype, way, draw, brief, e);
        }
    }
}

entry catalogue_layer(const layer_row *layer, bool brief)
{
    entry e = entry_new(layer->row.name);
    const int64_t once = cases_of(layer);
    const int64_t draws =
        fewest_draws * once >= fewest_cases || !once ? fewest_draws : (fewest_cases + once - 1) / once;
    for (int draw = 0; draw < draws; draw++)
        for (int i = 0; i < layer->row.sample_count; i++) check_sample(layer, &layer->row.samples[i], draw, brief, &e);
    return e;
}
