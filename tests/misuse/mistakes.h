/* Mistakes that people make: each is a row with a function that makes it, what then happens, and the cure. */
#ifndef RAPT_TESTS_MISTAKES_H
#define RAPT_TESTS_MISTAKES_H

#include <rapt.h>

/* What comes of a mistake. */
typedef enum mistake_end {
    FAILS, /* an error with that code, whose sentence has those words */
    GONE,  /* undefined, as after free; in the debugging mode an error with those words */
    WARNS, /* it works, with a warning that has those words */
    WORKS, /* there is no error; the words say what happens */
} mistake_end;

/* A mistake, as the page docs/mistakes.md tells it. */
typedef struct mistake {
    const char *what;
    bool (*make)(void); /* true when, beside the error, everything is as it should be */
    mistake_end end;
    rapt_error_code code;
    const char *words;
    const char *cure;
} mistake;

/* Those of one kind; the list ends with a row without a `what`. */
typedef struct mistake_family {
    const char *title;
    const mistake *mistakes;
} mistake_family;

extern const mistake scope_mistakes[], graph_mistakes[], module_mistakes[], attention_mistakes[], data_mistakes[],
    optimizer_mistakes[], file_mistakes[], own_op_mistakes[], process_mistakes[];

/* float32 ones, and a leaf of them. */
static inline rapt_tensor *ones(int rank, const int64_t *shape)
{
    return rapt_ones(RAPT_FLOAT32, rank, shape);
}

static inline rapt_tensor *leaf(int rank, const int64_t *shape)
{
    return rapt_require_gradient(ones(rank, shape));
}

static inline rapt_tensor *total(rapt_tensor *x)
{
    return rapt_sum(x, RAPT_ALL_AXES, false);
}

static inline rapt_tensor *integers(int count, const int64_t *values)
{
    return rapt_from(RAPT_INT64, RAPT_SHAPE(count), values);
}

/* All elements are the number. */
static inline bool is_all(rapt_tensor *x, double number)
{
    return x && rapt_item(rapt_all(rapt_equal_scalar(x, number), RAPT_ALL_AXES, false)) == 1;
}

#endif
