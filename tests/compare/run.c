/* One run of a program: inputs laid out, ops called through the op table and layers through theirs. */
#include <string.h>

#include "compare.h"
#include "nn/entry.h"

static rapt_dtype dtype_of(const run *r, const record *from, const char *key)
{
    for (rapt_dtype dtype = RAPT_FLOAT32; dtype < RAPT_DTYPE_COUNT; dtype++)
        if (record_says(from, key, rapt_dtype_name(dtype))) return dtype;
    return r->dtype; /* "float" */
}

rapt_tensor *run_tensor(const run *r, const record *from)
{
    return op_lay_out(&from->numbers, dtype_of(r, from, "dtype"), (op_layout)record_integer(from, "layout"));
}

rapt_tensor *step_input(const run *r, int i)
{
    int64_t in[most_values];
    int count = record_integers(r->step, "in", in, most_values);
    return i < count && in[i] >= 0 ? r->values[in[i]] : NULL;
}

int64_t step_integer(const run *r, const char *key)
{
    return record_integer(r->step, key);
}

double step_real(const run *r, const char *key)
{
    return record_real(r->step, key);
}

void step_give(run *r, rapt_tensor *value)
{
    if (!value) rapt_fail(RAPT_ERROR_NULL, "compare", "the step gives NULL");
    r->values[r->count++] = value;
}

/* Sets `plain` of all that has it. */
static void make_plain(rapt_module *module, bool plain)
{
    if (!module) return;
    const char *kind = module->kind->name;
    if (strcmp(kind, "Attention") == 0) ((rapt_attention *)module)->plain = plain;
    if (strcmp(kind, "GRU") == 0 || strcmp(kind, "LSTM") == 0) ((rapt_recurrent *)module)->plain = plain;
    for (int i = 0; i < module->count; i++) make_plain(module->entries[i].child, plain);
}

typedef struct weights {
    run *r;
    int64_t value[most_values];
    int count, used;
} weights;

/* The names stand in the list "names", in the order of the list "weights". */
static bool set_weight(const char *name, rapt_tensor *parameter, void *context)
{
    weights *w = context;
    const char *names = record_text(w->r->step, "names");
    size_t length = strlen(name);
    for (int i = 0; names && i < w->count; i++, names += strcspn(names, ", ") + 1) {
        if (strncmp(names, name, length) != 0 || !strchr(", ", names[length])) continue;
        rapt_tensor **value = &w->r->values[w->value[i]];
        w->used++;
        bool good = rapt_same_shape(parameter, *value) && rapt_copy(parameter, *value);
        *value = parameter;
        return good || rapt_fail(RAPT_ERROR_SHAPE, "compare", "the weight %s has another shape", name);
    }
    return rapt_fail(RAPT_ERROR_VALUE, "compare", "PyTorch has no weight %s", name);
}

void *step_module(run *r, void *module)
{
    if (!module) return NULL;
    weights w = {.r = r, .count = record_integers(r->step, "weights", w.value, most_values)};
    r->modules[r->module_count++] = module;
    make_plain(module, step_integer(r, "plain"));
    if (!rapt_module_cast(module, r->dtype) || !rapt_module_visit(module, RAPT_PARAMETERS, set_weight, &w)) return NULL;
    if (w.used < w.count) rapt_fail(RAPT_ERROR_VALUE, "compare", "the module has %d of %d weights", w.used, w.count);
    return w.used < w.count ? NULL : module;
}

static op_sample sample_of(const run *r)
{
    int64_t in[most_values], axes[RAPT_MAX_RANK];
    op_sample s = {.axis = (int)step_integer(r, "axis"),
                   .keep = step_integer(r, "keep"),
                   .variant =
                       record_text(r->step, "to") ? (int)dtype_of(r, r->step, "to") : (int)step_integer(r, "variant"),
                   .axis_count = record_integers(r->step, "axes", axes, 5),
                   .number_count = record_integers(r->step, "number", s.number, 5),
                   .real = {step_real(r, "real"), step_real(r, "real2")}};
    for (int i = 0; i < s.axis_count; i++) s.axes[i] = (int)axes[i];
    int count = record_integers(r->step, "in", in, most_inputs);
    for (int i = 0; i < count; i++) s.in[i].state = in[i] >= 0 ? given : absent;
    return s;
}

static const step_row *find_row(const char *name)
{
    const step_row *const tables[] = {steps_basic, steps_attention, steps_transformer};
    for (int i = 0; i < 3; i++)
        for (const step_row *row = tables[i]; row->name; row++)
            if (strcmp(row->name, name) == 0) return row;
    return NULL;
}

static void run_op(run *r, const char *name)
{
    rapt_tensor *inputs[most_inputs];
    for (int i = 0; i < most_inputs; i++) inputs[i] = step_input(r, i);
    op_sample sample = sample_of(r);
    EACH_OP(row)
    if (strcmp(row->name, name) == 0) {
        step_give(r, row->call(inputs, &sample));
        return;
    }
    rapt_fail(RAPT_ERROR_VALUE, "compare", "there is no op %s", name);
}

static int64_t refusals;

int64_t run_refusals(void)
{
    return refusals;
}

/* What PyTorch refuses must be an error of a kind that names the mistake. */
static void expect_refusal(run *r, int count_before)
{
    refusals++;
    rapt_error_code code = rapt_error_get_code();
    if (code != RAPT_ERROR_SHAPE && code != RAPT_ERROR_DTYPE && code != RAPT_ERROR_VALUE) report(r, "is not refused");
    rapt_clear_error();
    r->count = count_before;
}

static bool run_step(run *r)
{
    char name[64];
    record_name(r->step, name);
    const step_row *row = find_row(name);
    const int before = r->count;
    if (row)
        row->run(r);
    else
        run_op(r, name);
    if (step_integer(r, "refused")) {
        expect_refusal(r, before);
        return true;
    }
    if (!rapt_error() && r->count - before == step_integer(r, "gives")) return true;
    report(r, rapt_error() ? rapt_error() : "gives another number of values");
    return false;
}

bool run_forward(run *r, bool inputs_exist)
{
    r->count = 0;
    for (int i = 0; i < r->program->count; i++) {
        const record *now = r->step = &r->program->records[i];
        if (record_is(now, "input")) {
            if (!inputs_exist) r->values[r->count] = run_tensor(r, now);
            if (!inputs_exist && record_integer(now, "gradient")) rapt_require_gradient(r->values[r->count]);
            r->count++;
        }
        if (record_is(now, "step") && !run_step(r)) return false;
    }
    return true;
}

void run_end(run *r)
{
    while (r->module_count > 0) rapt_module_free(r->modules[--r->module_count]);
}
