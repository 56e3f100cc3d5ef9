/* Sums of products over axes with names, as Einstein wrote them; and outer, the product without a sum. */
#include <rapt/ops.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tensor/core.h"
#include "tensor/utf8.h"

#define NAME "einsum"

/* Axes have labels: letters in alphabetical order, behind them the axes that "..." stands for, aligned at the last. */
enum { letters = 52, labels = letters + RAPT_MAX_RANK, never = -1 };

typedef struct operand {
    rapt_tensor *tensor;
    int rank, label[RAPT_MAX_RANK];
} operand;

typedef struct equation {
    int64_t size[labels]; /* never: the label does not occur */
    int last[labels];     /* the last operand that has it; one more where the result has it */
    int times[labels];
    int count, result_rank, result[labels];
} equation;

static int label_of(char letter)
{
    return letter >= 'a' ? 26 + letter - 'a' : letter - 'A';
}

static char letter_of(int label)
{
    return (char)(label >= letters ? '.' : label >= 26 ? 'a' + label - 26 : 'A' + label);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Says what stands where no such character may: whole, or the byte of one that is no text. */
static int fail_at(const char *text)
{
    char shown[8];
    const size_t length = rapt_utf8_length(text, strlen(text));
    if (length > 1 || (length == 1 && *text >= ' ' && *text <= '~'))
        snprintf(shown, sizeof shown, "'%.*s'", (int)length, text);
    else
        snprintf(shown, sizeof shown, "0x%02x", (unsigned char)*text);
    rapt_fail(RAPT_ERROR_VALUE, NAME, "%s in the equation; letters, \"...\", ',' and one \"->\" expected", shown);
    return -1;
}

/* Reads the labels up to a comma, an arrow or the end; "..." stands for `others` axes. −1 after an error. */
static int read_labels(const char **text, int others, int most, int *label)
{
    int count = 0;
    bool has_others = false;
    for (;; (*text)++) {
        while (isspace((unsigned char)**text)) (*text)++;
        const char c = **text;
        if (c == ',' || c == 0 || (c == '-' && (*text)[1] == '>')) return count;
        const bool dots = strncmp(*text, "...", 3) == 0;
        const int more = dots ? others : 1;
        if (!is_letter(c) && !dots) return fail_at(*text);
        if (dots && has_others) {
            rapt_fail(RAPT_ERROR_VALUE, NAME, "\"...\" stands twice among the axes of one tensor");
            return -1;
        }
        if (count + more > most) {
            rapt_fail(RAPT_ERROR_SHAPE, NAME, "more than %d axes are named for one tensor", most);
            return -1;
        }
        for (int i = 0; i < more; i++) label[count++] = dots ? labels - others + i : label_of(c);
        has_others |= dots;
        if (dots) *text += 2;
    }
}

/* How many axes "..." stands for: those of the tensor for which its part of the equation has no letter. */
static int count_others(const char *text, int rank)
{
    int named = 0;
    for (; *text && *text != ',' && *text != '-'; text++) named += is_letter(*text);
    return rank > named ? rank - named : 0;
}

/* Notes the sizes of an operand's axes. A size of 1 goes with every other. */
static bool note_sizes(equation *e, const operand *o, int number)
{
    for (int i = 0; i < o->rank; i++) {
        const int label = o->label[i];
        const int64_t size = o->tensor->shape[i], known = e->size[label];
        for (int k = 0; k < i; k++)
            if (o->label[k] == label && o->tensor->shape[k] != size)
                return rapt_fail(RAPT_ERROR_SHAPE, NAME, "'%c' names axes of the sizes %lld and %lld of tensor %d",
                                 letter_of(label), (long long)o->tensor->shape[k], (long long)size, number);
        if (known != never && known != 1 && size != 1 && known != size)
            return rapt_fail(RAPT_ERROR_SHAPE, NAME,
                             "'%c' names axes of the sizes %lld and %lld, the latter of tensor %d", letter_of(label),
                             (long long)known, (long long)size, number);
        if (known == never || known == 1) e->size[label] = size;
        e->last[label] = number;
        e->times[label]++;
    }
    return true;
}

static bool read_operand(equation *e, const char **text, operand *o, rapt_tensor *tensor, int number)
{
    o->tensor = tensor;
    o->rank = read_labels(text, count_others(*text, tensor->rank), RAPT_MAX_RANK, o->label);
    if (o->rank < 0) return false;
    if (o->rank == tensor->rank) return note_sizes(e, o, number);
    char shape[RAPT_SHAPE_TEXT];
    return rapt_fail(RAPT_ERROR_SHAPE, NAME, "the equation names %d axes of tensor %d, which has shape %s", o->rank,
                     number, rapt_shape_text(tensor->rank, tensor->shape, shape));
}

/* The result's labels: those behind the arrow, or "..." and each letter that occurs once. */
static bool read_result(equation *e, const char *text)
{
    int others = 0;
    for (int label = letters; label < labels; label++) others += e->size[label] != never;
    e->result_rank = 0;
    if (*text == '-') {
        text += 2;
        if ((e->result_rank = read_labels(&text, others, labels, e->result)) < 0) return false;
        if (*text) return rapt_fail(RAPT_ERROR_VALUE, NAME, "'%c' behind the axes of the result", *text);
    } else {
        for (int i = 0; i < labels; i++) {
            const int label = (i + letters) % labels;
            if (label >= letters ? e->size[label] != never : e->times[label] == 1) e->result[e->result_rank++] = label;
        }
    }
    for (int i = 0; i < e->result_rank; i++) {
        const int label = e->result[i];
        if (e->size[label] == never)
            return rapt_fail(RAPT_ERROR_VALUE, NAME, "the result has '%c', which names no axis", letter_of(label));
        if (e->last[label] == e->count)
            return rapt_fail(RAPT_ERROR_VALUE, NAME, "the result has '%c' twice", letter_of(label));
        e->last[label] = e->count;
    }
    return true;
}

/* --- one tensor --- */

static int find(const operand *o, int label)
{
    for (int i = 0; i < o->rank; i++)
        if (o->label[i] == label) return i;
    return never;
}

static void drop_axis(operand *o, int axis)
{
    o->rank--;
    memmove(o->label + axis, o->label + axis + 1, (size_t)(o->rank - axis) * sizeof *o->label);
}

/* Two axes of one size n become one: places 0, n + 1, 2 (n + 1) … of both in one row. */
static void take_diagonal(operand *o, int first, int second)
{
    int order[RAPT_MAX_RANK], count = 0;
    int64_t shape[RAPT_MAX_RANK];
    const int64_t size = o->tensor->shape[first];
    const int label = o->label[first];
    for (int i = 0; i < o->rank; i++) {
        if (i == first || i == second) continue;
        shape[count] = o->tensor->shape[i];
        order[count++] = i;
    }
    shape[count] = size * size;
    order[count] = first;
    order[count + 1] = second;
    rapt_tensor *pairs = rapt_reshape(rapt_permute(o->tensor, o->rank, order), count + 1, shape);
    o->tensor = rapt_slice(pairs, -1, 0, size * size, size + 1);
    drop_axis(o, second);
    drop_axis(o, first);
    o->label[o->rank++] = label;
}

/* Each label once, and none for a size of 1 where another tensor has more. */
static void simplify(const equation *e, operand *o)
{
    for (int i = o->rank - 1; o->tensor && i >= 0; i--) {
        const int first = find(o, o->label[i]);
        if (first < i) {
            take_diagonal(o, first, i);
            i = o->rank;
        } else if (o->tensor->shape[i] == 1 && e->size[o->label[i]] != 1) {
            o->tensor = rapt_squeeze(o->tensor, i);
            drop_axis(o, i);
        }
    }
}

/* Sums over what neither `other` nor what comes after operand `number` needs. */
static void sum_rest(const equation *e, operand *o, const operand *other, int number)
{
    int axes[RAPT_MAX_RANK], count = 0;
    for (int i = 0; i < o->rank; i++)
        if (e->last[o->label[i]] <= number && (!other || find(other, o->label[i]) == never)) axes[count++] = i;
    if (count > 0) o->tensor = rapt_sum(o->tensor, count, axes, false);
    while (count > 0) drop_axis(o, axes[--count]);
}

/* --- two tensors --- */

/* Axes of an operand in a new order, in three groups, of which each becomes one axis. */
typedef struct grouping {
    int count, order[RAPT_MAX_RANK];
    int64_t size[3];
} grouping;

static void add_axis(grouping *g, const operand *o, int axis, int group)
{
    g->order[g->count++] = axis;
    g->size[group] *= o->tensor->shape[axis];
}

static rapt_tensor *group(const operand *o, const grouping *g)
{
    return rapt_reshape(rapt_permute(o->tensor, g->count, g->order), 3, g->size);
}

/* a becomes its product with b, as products of matrices (batch, left, summed) · (batch, summed, right). */
static bool multiply(const equation *e, operand *a, const operand *b, int number)
{
    grouping left = {.size = {1, 1, 1}}, right = {.size = {1, 1, 1}};
    int label[2 * RAPT_MAX_RANK], rank = 0;
    int64_t shape[2 * RAPT_MAX_RANK];
    bool sums = false;
    for (int group = 0; group < 3; group++) {
        for (int i = 0; i < a->rank; i++) {
            const int other = find(b, a->label[i]);
            const int its_group = other == never ? 1 : e->last[a->label[i]] > number ? 0 : 2;
            if (its_group != group) continue;
            add_axis(&left, a, i, group);
            if (group != 1) add_axis(&right, b, other, group == 0 ? 0 : 1);
            sums |= group == 2;
            if (group == 2) continue;
            label[rank] = a->label[i];
            shape[rank++] = a->tensor->shape[i];
        }
    }
    for (int i = 0; i < b->rank; i++) {
        if (find(a, b->label[i]) != never) continue;
        add_axis(&right, b, i, 2);
        label[rank] = b->label[i];
        shape[rank++] = b->tensor->shape[i];
    }
    if (rank > RAPT_MAX_RANK)
        return rapt_fail(RAPT_ERROR_SHAPE, NAME, "the product of tensors 0 to %d has %d axes; %d at most expected",
                         number, rank, RAPT_MAX_RANK);
    a->tensor = rapt_reshape((sums ? rapt_matmul : rapt_mul)(group(a, &left), group(b, &right)), rank, shape);
    a->rank = rank;
    memcpy(a->label, label, (size_t)rank * sizeof *label);
    return a->tensor;
}

/* --- all of them --- */

static bool check_inputs(const char *text, int count, rapt_tensor *const *tensors)
{
    if (!text) return rapt_fail_null(NAME, "equation");
    if (!tensors && count > 0) return rapt_fail_null(NAME, "tensors");
    int parts = 1;
    for (const char *c = text; *c; c++) parts += *c == ',';
    if (parts != count)
        return rapt_fail(RAPT_ERROR_VALUE, NAME, "%d tensors given for \"%s\", which names %d", count, text, parts);
    for (int i = 0; i < count; i++) {
        if (!tensors[i]) return rapt_fail_null(NAME, "a tensor");
        if (!rapt_check_floating(NAME, tensors[i])) return false;
        if (tensors[i]->dtype != tensors[0]->dtype)
            return rapt_fail(RAPT_ERROR_DTYPE, NAME,
                             "tensor 0 is %s, tensor %d is %s; one dtype expected (rapt_cast converts)",
                             rapt_dtype_name(tensors[0]->dtype), i, rapt_dtype_name(tensors[i]->dtype));
    }
    return true;
}

static rapt_tensor *finish(const equation *e, const operand *product)
{
    int order[RAPT_MAX_RANK];
    for (int i = 0; i < e->result_rank; i++) order[i] = find(product, e->result[i]);
    return rapt_permute(product->tensor, e->result_rank, order);
}

rapt_tensor *rapt_einsum(const char *text, int count, rapt_tensor *const *tensors)
{
    if (!check_inputs(text, count, tensors)) return NULL;
    equation e = {.count = count};
    for (int label = 0; label < labels; label++) e.size[label] = e.last[label] = never;
    const char *rest = text;
    operand product = {0}, next;
    for (int i = 0; i < count; i++, rest += *rest == ',')
        if (!read_operand(&e, &rest, &next, tensors[i], i)) return NULL;
    if (!read_result(&e, rest)) return NULL;
    rest = text;
    for (int i = 0; i < count; i++, rest++) {
        next.tensor = tensors[i];
        next.rank = read_labels(&rest, count_others(rest, tensors[i]->rank), RAPT_MAX_RANK, next.label);
        simplify(&e, &next);
        if (i > 0 && product.tensor && next.tensor) {
            sum_rest(&e, &product, &next, i);
            sum_rest(&e, &next, &product, i);
            if (!product.tensor || !next.tensor || !multiply(&e, &product, &next, i)) return NULL;
        } else {
            product = next;
            if (product.tensor) sum_rest(&e, &product, NULL, 0);
        }
        if (!product.tensor) return NULL;
    }
    return finish(&e, &product);
}

/* yᵢⱼ = aᵢ bⱼ */
rapt_tensor *rapt_outer(rapt_tensor *a, rapt_tensor *b)
{
    if (!a || !b) return rapt_fail_null("outer", a ? "b" : "a"), NULL;
    if (a->rank != 1 || b->rank != 1) {
        rapt_fail(RAPT_ERROR_SHAPE, "outer", "tensors of the ranks %d and %d; vectors expected", a->rank, b->rank);
        return NULL;
    }
    if (a->dtype != b->dtype) {
        rapt_fail(RAPT_ERROR_DTYPE, "outer", "a is %s, b is %s; one dtype expected (rapt_cast converts)",
                  rapt_dtype_name(a->dtype), rapt_dtype_name(b->dtype));
        return NULL;
    }
    return rapt_mul(rapt_unsqueeze(a, 1), b);
}
