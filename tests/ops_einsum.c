/* Rows: products over axes with names. */
#include <string.h>

#include "ops.h"

/* The equations, by variant: as they are given, and with a letter for each axis and an arrow. */
static const struct {
    const char *given, *plain;
} equations[] = {
    {"ij,jk->ik", "ij,jk->ik"},
    {"ij, kj -> ki", "ij,kj->ki"},
    {"bhqd,bhkd->bhqk", "bhqd,bhkd->bhqk"},
    {"ij,jk", "ij,jk->ik"},
    {"...ij,...jk->...ik", "yzij,yzjk->yzik"},
    {"b...,bc", "byz,bc->yzc"},
    {"ii", "ii->"},
    {"bii->bi", "bii->bi"},
    {"iji->j", "iji->j"},
    {"ij->ji", "ij->ji"},
    {"ba", "ba->ab"},
    {"i,j->ij", "i,j->ij"},
    {"i,i->", "i,i->"},
    {"ij,ij->i", "ij,ij->i"},
    {"ab,bc,cd->da", "ab,bc,cd->da"},
    {"ab,cd,bd,e->ac", "ab,cd,bd,e->ac"},
    {"...->", "yz->"},
    {",ij->ij", ",ij->ij"},
    {"iA,Aj", "iA,Aj->ij"},
    {"iii->i", "iii->i"},
    {"ij,j", "ij,j->i"},
    {"iiij->ij", "iiij->ij"},
};

static rapt_tensor *call_einsum(rapt_tensor *const *in, const op_sample *s)
{
    int count = 1;
    for (const char *c = equations[s->variant].plain; *c; c++) count += *c == ',';
    return rapt_einsum(equations[s->variant].given, count, in);
}

static rapt_tensor *call_outer(rapt_tensor *const *in, const op_sample *s)
{
    (void)s;
    return rapt_outer(in[0], in[1]);
}

/* Goes through all places of all letters: the product of what the inputs have there is added to the result. */
static array reference_einsum(const array *in, const op_sample *s)
{
    const char *text = equations[s->variant].plain, *result = strchr(text, '>') + 1;
    int64_t size[128], at[128], place[RAPT_MAX_RANK], shape[RAPT_MAX_RANK] = {0};
    char names[RAPT_MAX_RANK * 4];
    int count = 0, input = 0, axis = 0, rank = (int)strlen(result);
    for (int i = 0; i < 128; i++) size[i] = -1;
    for (const char *c = text; *c != '-'; c++, axis++) {
        if (*c == ',') {
            input++;
            axis = -1;
            continue;
        }
        if (size[(int)*c] == -1) names[count++] = *c;
        if (size[(int)*c] == -1 || size[(int)*c] == 1) size[(int)*c] = in[input].shape[axis];
    }
    for (int i = 0; i < rank; i++) shape[i] = size[(int)result[i]];
    array y = array_new(rank, shape);
    bool more = true;
    for (int i = 0; i < count; i++) {
        at[(int)names[i]] = 0;
        more = more && size[(int)names[i]] > 0;
    }
    while (more) {
        double product = 1;
        input = 0;
        for (const char *c = text; *c != '-'; c++, input++) {
            for (axis = 0; *c != ',' && *c != '-'; c++) place[axis++] = at[(int)*c];
            product *= *array_at(&in[input], axis, place);
            if (*c == '-') break;
        }
        for (int i = 0; i < rank; i++) place[i] = at[(int)result[i]];
        *array_at(&y, rank, place) += product;
        int i = count - 1;
        for (; i >= 0 && ++at[(int)names[i]] == size[(int)names[i]]; i--) at[(int)names[i]] = 0;
        more = i >= 0;
    }
    return y;
}

static array reference_outer(const array *in, const op_sample *s)
{
    (void)s;
    array y = array_new(2, (int64_t[]){in[0].count, in[1].count});
    for (int64_t i = 0; i < y.count; i++) y.data[i] = in[0].data[i / in[1].count] * in[1].data[i % in[1].count];
    return y;
}

static const op_sample einsums[] = {
    {.in = {SHAPE(3, 4), SHAPE(4, 2)}, .variant = 0},
    {.in = {SHAPE(3, 4), SHAPE(2, 4)}, .variant = 1},
    {.in = {SHAPE(2, 2, 3, 2), SHAPE(2, 2, 4, 2)}, .variant = 2},
    {.in = {SHAPE(1, 2, 3, 2), SHAPE(2, 2, 4, 1)}, .variant = 2},
    {.in = {SHAPE(3, 4), SHAPE(4, 2)}, .variant = 3},
    {.in = {SHAPE(2, 2, 3, 2), SHAPE(2, 2, 2, 3)}, .variant = 4},
    {.in = {SHAPE(2, 1, 3, 2), SHAPE(1, 2, 2, 3)}, .variant = 4},
    {.in = {SHAPE(3, 2, 2), SHAPE(3, 4)}, .variant = 5},
    {.in = {SHAPE(4, 4)}, .variant = 6},
    {.in = {SHAPE(2, 3, 3)}, .variant = 7},
    {.in = {SHAPE(3, 2, 3)}, .variant = 8},
    {.in = {SHAPE(3, 2)}, .variant = 9},
    {.in = {SHAPE(3, 2)}, .variant = 10},
    {.in = {SHAPE(3), SHAPE(4)}, .variant = 11},
    {.in = {SHAPE(5), SHAPE(5)}, .variant = 12},
    {.in = {SHAPE(3, 4), SHAPE(3, 4)}, .variant = 13},
    {.in = {SHAPE(2, 3), SHAPE(3, 2), SHAPE(2, 4)}, .variant = 14},
    {.in = {SHAPE(2, 3), SHAPE(3, 2), SHAPE(3, 2), SHAPE(3)}, .variant = 15},
    {.in = {SHAPE(3, 2)}, .variant = 16},
    {.in = {SCALAR, SHAPE(3, 2)}, .variant = 17},
    {.in = {SHAPE(2, 3), SHAPE(3, 2)}, .variant = 18},
    {.in = {SHAPE(3, 3, 3)}, .variant = 19},
    {.in = {SHAPE(3, 1), SHAPE(4)}, .variant = 20},
    {.in = {SHAPE(2, 2, 2, 3)}, .variant = 21},
    {.in = {SHAPE(3, 0), SHAPE(0, 2)}, .variant = 0},
    {.in = {SHAPE(0, 3), SHAPE(3, 2)}, .variant = 0},
    {.in = {SHAPE(0, 0)}, .variant = 6},
    {.in = {SHAPE(120, 130), SHAPE(140, 130)}, .variant = 1, .large = true},
    {.in = {SHAPE(300, 301), SHAPE(300, 301)}, .variant = 13, .large = true},
};
#define BAD(code) .error = RAPT_ERROR_##code
static const op_sample bad_einsums[] = {
    {.in = {SHAPE(3, 4), SHAPE(3, 2)}, .variant = 0, BAD(SHAPE)},
    {.in = {SHAPE(3, 4, 1), SHAPE(4, 2)}, .variant = 0, BAD(SHAPE)},
    {.in = {SHAPE(3), SHAPE(4, 2)}, .variant = 0, BAD(SHAPE)},
    {.in = {SHAPE(3, 4)}, .variant = 6, BAD(SHAPE)},
};
static const op_sample outers[] = {
    {.in = {SHAPE(3), SHAPE(4)}}, {.in = {SHAPE(1), SHAPE(3)}}, {.in = {SHAPE(3), SHAPE(1)}},
    {.in = {SHAPE(0), SHAPE(4)}}, {.in = {SHAPE(2), SHAPE(0)}}, {.in = {SHAPE(301), SHAPE(303)}, .large = true},
};
static const op_sample bad_outers[] = {
    {.in = {SHAPE(3, 1), SHAPE(4)}, BAD(SHAPE)},
    {.in = {SHAPE(3), SCALAR}, BAD(SHAPE)},
};

#define ROW(op) .name = #op, .call = call_##op, .reference = reference_##op, .is_combined = true

static const op_row rows[] = {
    {ROW(einsum), .differentiable = every_input, SAMPLES(einsums), FAILURES(bad_einsums)},
    {ROW(outer), .differentiable = 3, .dtypes = number_dtypes, SAMPLES(outers), FAILURES(bad_outers)},
};

const op_family ops_einsum = {rows, sizeof rows / sizeof *rows};
