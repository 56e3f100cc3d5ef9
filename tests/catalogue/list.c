/* The list of everything in the catalogue. */
#include <string.h>

#include "catalogue.h"

static bool is_first_of_name(const op_row *row)
{
    EACH_OP(other) if (strcmp(other->name, row->name) == 0) return other == row;
    return false;
}

/* The i-th op; *left: how many names are to be passed over behind the ops. */
static const op_row *op_of(int i, int *left)
{
    *left = i;
    EACH_OP(row)
    if (is_first_of_name(row) && (*left)-- == 0) return row;
    return NULL;
}

const char *catalogue_name(int i)
{
    int left;
    const op_row *op = op_of(i, &left);
    const layer_row *layer = op ? NULL : layer_at(left);
    return op ? op->name : layer ? layer->row.name : NULL;
}

const char *catalogue_kind(int i)
{
    int left;
    if (op_of(i, &left)) return "op";
    const layer_row *layer = layer_at(left);
    return layer->kind ? layer->kind : "layer";
}

entry catalogue_check(int i, bool brief)
{
    int left;
    const op_row *op = op_of(i, &left);
    return op ? catalogue_op(op->name, brief) : catalogue_layer(layer_at(left), brief);
}
