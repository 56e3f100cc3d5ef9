/* The list of everything in the catalogue. */
#include <string.h>

#include "catalogue.h"

static bool is_first_of_name(const op_row *row)
{
    EACH_OP(other) if (strcmp(other->name, row->name) == 0) return other == row;
    return false;
}

const char *catalogue_name(int i)
{
    EACH_OP(row)
    if (is_first_of_name(row) && i-- == 0) return row->name;
    return NULL;
}

const char *catalogue_kind(int i)
{
    (void)i;
    return "op";
}

entry catalogue_check(int i, bool brief)
{
    return catalogue_op(catalogue_name(i), brief);
}
