/* What a run gave against what PyTorch gave, and the worst of it for each op. */
#include "judge.h"

#include <math.h>
#include <string.h>

enum { most_names = 400, most_reports = 20, value = 0, gradient, second, kinds };

static const char *const kind_names[kinds] = {"value", "gradient", "second"};

/* By the op that made a value, or that a gradient came from first. */
typedef struct tally {
    char name[64];
    int64_t tensors[kinds];
    double deviation[2], part[2]; /* float32, float64 */
} tally;

static tally tallies[most_names];
static int name_count;
static int64_t reports, compared;

int64_t judge_reports(void)
{
    return reports;
}

int64_t judge_compared(void)
{
    return compared;
}

static tally *tally_of(const char *name)
{
    for (int i = 0; i < name_count; i++)
        if (strcmp(tallies[i].name, name) == 0) return &tallies[i];
    if (name_count == most_names) return &tallies[most_names - 1];
    snprintf(tallies[name_count].name, sizeof tallies->name, "%s", name);
    return &tallies[name_count++];
}

void report(const run *r, const char *what)
{
    if (reports++ >= most_reports) return;
    const record *head = &r->program->records[0];
    printf("\nseed %lld, %s: %s: %s\n", (long long)record_integer(head, "seed"), rapt_dtype_name(r->dtype),
           r->step->line, what);
    program_print(r->program);
    fflush(stdout); /* a long run says at once what it found */
}

/* "element 3 is 0.5, not 0.25; 1e-15 is allowed" */
static void report_element(const run *r, const record *expected, int64_t i, double is, double allowed)
{
    char what[256];
    snprintf(what, sizeof what, "element %lld of %lld is %.17g, not %.17g; %.2g is allowed", (long long)i,
             (long long)expected->numbers.count, is, expected->numbers.data[i], allowed);
    report(r, what);
}

static bool fits(const run *r, const record *expected, const rapt_tensor *got)
{
    const array *e = &expected->numbers;
    rapt_dtype dtype = rapt_get_dtype(got);
    bool good = rapt_rank(got) == e->rank &&
                (record_says(expected, "dtype", "float") ? dtype == r->dtype
                                                         : record_says(expected, "dtype", rapt_dtype_name(dtype)));
    for (int axis = 0; good && axis < e->rank; axis++) good = rapt_size(got, axis) == e->shape[axis];
    return good;
}

static void count(const run *r, const record *expected, double difference, double largest, double allowed)
{
    char name[64] = "";
    const int wide = r->dtype == RAPT_FLOAT64;
    sscanf(record_text(expected, "of"), "%63s", name);
    tally *t = tally_of(name);
    for (int kind = 0; kind < kinds; kind++) t->tensors[kind] += record_says(expected, "what", kind_names[kind]);
    compared++;
    if (allowed < 0.01 * largest) t->deviation[wide] = fmax(t->deviation[wide], difference / largest);
    if (difference > 0) t->part[wide] = fmax(t->part[wide], difference / allowed);
}

void judge(run *r, const record *expected, const rapt_tensor *got)
{
    RAPT_SCOPE;
    r->step = expected;
    char text[128];
    const array *e = &expected->numbers;
    if (got && !fits(r, expected, got)) {
        report(r, rapt_describe(got, text, sizeof text));
        return;
    }
    array found = got ? array_read(got) : array_new(e->rank, e->shape);
    const double allowed = record_real(expected, rapt_dtype_name(r->dtype));
    double difference = 0, largest = 0;
    int64_t worst = 0;
    for (int64_t i = 0; i < e->count; i++) {
        double off = fabs(found.data[i] - e->data[i]);
        if (!(off <= difference)) worst = i;
        difference = off <= difference ? difference : off; /* NaN stays */
        largest = fmax(largest, fabs(e->data[i]));
    }
    if (!(difference <= allowed))
        report_element(r, expected, worst, found.data[worst], allowed);
    else
        count(r, expected, difference, largest, allowed);
    array_free(&found);
}

bool judge_saw(const char *name, bool derivatives)
{
    const tally *t = tally_of(name);
    return t->tensors[value] > 0 && (!derivatives || (t->tensors[gradient] > 0 && t->tensors[second] > 0));
}

void judge_print(void)
{
    printf("%-24s %26s   %s\n%-24s %8s %8s %8s   %11s %11s   %8s %8s\n", "", "tensors compared",
           "largest difference: of the largest number, and as a part of what is allowed", "op", "values", "first",
           "second", "float32", "float64", "float32", "float64");
    for (int i = 0; i < name_count; i++) {
        const tally *t = &tallies[i];
        printf("%-24s %8lld %8lld %8lld   %11.1e %11.1e   %8.3f %8.3f\n", t->name, (long long)t->tensors[value],
               (long long)t->tensors[gradient], (long long)t->tensors[second], t->deviation[0], t->deviation[1],
               t->part[0], t->part[1]);
    }
}
