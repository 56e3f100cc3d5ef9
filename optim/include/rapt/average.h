/* Averages of a module's values over a training run, and gradients added over several batches. */
#ifndef RAPT_AVERAGE_H
#define RAPT_AVERAGE_H

#include <rapt/optimizer.h>

RAPT_BEGIN_DECLS

/* Averages of all parameters and floating buffers, kept beside the module; other buffers are copied. */
typedef struct rapt_average rapt_average;

/* How values are averaged. */
typedef struct rapt_average_config {
    double decay;  /* 0.999; averages += (1 − decay) · (values − averages) (Polyak & Juditsky 1992) */
    bool equal;    /* all updates count the same instead: stochastic weight averaging (Izmailov et al. 2018) */
    bool warms_up; /* the decay is at most (1 + n) / (10 + n) after n updates: the beginning is soon forgotten. An error
                    * beside equal */
} rapt_average_config;

/* Shares the module, which must outlive it; NULL is all defaults. The averages are the present values; the first update
 * copies too, as PyTorch's AveragedModel does. NULL after an error. Free it with rapt_average_free. */
RAPT_API rapt_average *rapt_average_new(rapt_module *module, const rapt_average_config *config);
RAPT_API void rapt_average_free(rapt_average *average);

/* To be called after each step of the optimizer. False after an error, which it is while values are swapped; nothing
 * is changed then. */
RAPT_API bool rapt_average_update(rapt_average *average);

/* Exchanges the averages and the module's values: before an evaluation with the averages, and once more behind it,
 * before training goes on. Buffers that the evaluation computes anew become the averages'. Parameters must stay: where
 * a step, loading or another average's swap has changed one, the swap back is an error. Of several averages the last
 * that came in goes out first; else the values of before are lost, and training goes on from a checkpoint, with a new
 * average. Takes memory for the module's values until it is swapped back. False after an error; nothing is changed
 * then. */
RAPT_API bool rapt_average_swap(rapt_average *average);

/* Updates so far; 0 and an error for NULL. */
RAPT_API int64_t rapt_average_get_updates(const rapt_average *average);

/* To an archive, and back, as rapt_optimizer_to_archive: "updates" and "values.NAME". An error while values are
 * swapped. */
RAPT_API bool rapt_average_to_archive(const rapt_average *average, const char *prefix, rapt_archive *archive);
RAPT_API bool rapt_average_from_archive(rapt_average *average, const char *prefix, const rapt_archive *archive);

/* Gradient accumulation: one step for a batch that is too large for memory, from parts of it. All zeros are a
 * beginning. Checkpoints have neither it nor gradients: save behind rapt_optimizer_step, before the next part. */
typedef struct rapt_accumulation {
    double weight; /* of all parts so far */
    double loss;   /* Σ weight · loss of the parts */
} rapt_accumulation;

/* Adds the gradients of weight · loss to those that are there. The weight is what the part counts, above 0: of
 * losses that are means, how many rows or tokens it is the mean of. False after an error, as for a weight that the
 * loss's dtype has not with all digits. */
RAPT_API bool rapt_accumulate(rapt_accumulation *accumulation, rapt_tensor *loss, double weight);

/* Divides the gradients of the optimizer's parameters by the weight of all parts, before they are clipped and the step
 * is made: they are then those of the mean loss of the whole batch, which goes to *loss unless that is NULL. The
 * accumulation begins anew. False after an error, which it is when there was no part; nothing is changed then. */
RAPT_API bool rapt_accumulation_end(rapt_accumulation *accumulation, rapt_optimizer *optimizer, double *loss);

/* The same where several optimizers share the model, 1 or more: each gradient is divided once, also that of a parameter
 * which two of them have. */
RAPT_API bool rapt_accumulation_end_many(rapt_accumulation *accumulation, int count, rapt_optimizer *const *optimizers,
                                         double *loss);

RAPT_END_DECLS

#endif
