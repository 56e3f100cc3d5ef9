/* The four models that are asked for the same bits. */
#ifndef TORTURE_MODELS_H
#define TORTURE_MODELS_H

#include <rapt.h>

enum { num_models = 4 };
extern const char *const model_names[num_models + 1]; /* closed by NULL */

struct model {
    rapt_module *root;
    void *part[3];
    int parts;
    rapt_tensor *(*loss)(const struct model *model); /* of a batch that the calling thread's random numbers draw */
};

/* A model whose weights are the same each time. Free its root. */
struct model model_new(int which);

/* The hash of the weights after so many steps of training, dropout included; 0, and a line on stderr, after an error.
 */
uint64_t model_train(int which, int steps);

#endif
