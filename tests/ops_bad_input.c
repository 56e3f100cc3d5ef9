/* All input on which ops of the table must fail. */
#include <stdio.h>
#include <string.h>

#include "ops.h"

static void each_bad_sample(const op_row *row, op_visit *visit)
{
    for (int i = 0; i < row->failure_count; i++)
        for (int gradient = 0; gradient < 2; gradient++) {
            RAPT_SCOPE;
            op_case c = op_case_new(row, &row->failures[i], op_dtype(row), dense, gradient && row->differentiable);
            visit(&c, row->failures[i].error, gradient ? "bad input, with a gradient" : "bad input");
            op_case_free(&c);
        }
}

/* The dtypes that any row of this name allows. */
static unsigned dtypes_of(const char *name)
{
    unsigned dtypes = 0;
    EACH_OP(row) if (strcmp(row->name, name) == 0) dtypes |= op_dtypes(row);
    return dtypes;
}

static bool has_dtype(const op_row *row, const op_case *c, int input)
{
    return c->inputs[input] && row->domain[input] <= small;
}

static void each_wrong_dtype(const op_row *row, op_visit *visit)
{
    for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_BOOL; dtype++) {
        if (dtypes_of(row->name) >> dtype & 1) continue;
        RAPT_SCOPE;
        op_case c = op_case_new(row, &row->samples[0], dtype, dense, false);
        if (c.inputs[0] && has_dtype(row, &c, 0)) visit(&c, RAPT_ERROR_DTYPE, rapt_dtype_name(dtype));
        op_case_free(&c);
    }
}

/* One input of another dtype than the rest. masked_softmax takes lengths of any. */
static void each_mixed_dtype(const op_row *row, op_visit *visit)
{
    if (strcmp(row->name, "masked_softmax") == 0 || op_dtype(row) != RAPT_FLOAT64) return;
    for (int other = 0; other < most_inputs; other++) {
        RAPT_SCOPE;
        op_case c = op_case_new(row, &row->samples[0], RAPT_FLOAT64, dense, false);
        int alike = 0;
        for (int i = 0; i < c.count; i++) alike += has_dtype(row, &c, i);
        if (alike > 1 && other < c.count && has_dtype(row, &c, other)) {
            c.inputs[other] = rapt_cast(c.inputs[other], RAPT_FLOAT32);
            visit(&c, RAPT_ERROR_DTYPE, "mixed dtypes");
        }
        op_case_free(&c);
    }
}

/* Indices must be integers, conditions bool. */
static void each_floating_index(const op_row *row, op_visit *visit)
{
    for (int other = 0; other < most_inputs; other++) {
        RAPT_SCOPE;
        op_domain domain = row->domain[other];
        op_case c = op_case_new(row, &row->samples[0], RAPT_FLOAT64, dense, false);
        if (other < c.count && (domain == boolean || domain == index64 || domain == index32)) {
            c.inputs[other] = rapt_cast(c.inputs[other], RAPT_FLOAT64);
            visit(&c, RAPT_ERROR_DTYPE, "floating indices");
        }
        op_case_free(&c);
    }
}

static void each_null(const op_row *row, op_visit *visit)
{
    for (int missing = 0; missing < most_inputs; missing++) {
        if (row->optional >> missing & 1) continue;
        RAPT_SCOPE;
        op_case c = op_case_new(row, &row->samples[0], op_dtype(row), dense, false);
        if (missing < c.count) {
            c.inputs[missing] = NULL;
            visit(&c, RAPT_ERROR_NULL, "NULL");
        }
        op_case_free(&c);
    }
}

void op_each_gone(op_visit *visit)
{
    EACH_OP(row)
    for (int gone = 0; gone < most_inputs; gone++) {
        RAPT_SCOPE;
        op_case c = op_case_new(row, &row->samples[0], op_dtype(row), dense, false);
        if (gone < c.count && c.inputs[gone]) {
            rapt_scope scope = rapt_scope_begin();
            c.inputs[gone] = rapt_clone(c.inputs[gone]);
            rapt_scope_end(scope);
            visit(&c, RAPT_ERROR_GONE, "an input that is gone");
        }
        op_case_free(&c);
    }
}

void op_each_null(op_visit *visit)
{
    EACH_OP(row) each_null(row, visit);
}

void op_each_bad_input(op_visit *visit)
{
    EACH_OP(row)
    {
        each_bad_sample(row, visit);
        each_wrong_dtype(row, visit);
        each_mixed_dtype(row, visit);
        each_floating_index(row, visit);
        each_null(row, visit);
    }
}
