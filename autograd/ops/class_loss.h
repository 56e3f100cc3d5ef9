/* What the losses of class numbers share. */
#ifndef RAPT_OPS_CLASS_LOSS_H
#define RAPT_OPS_CLASS_LOSS_H

#include <rapt/op.h>
#include <rapt/ops.h>

/* What NULL stands for: the mean, nothing left out. */
extern const rapt_cross_entropy_options rapt_standard_class_loss;

/* False and an error unless the options are good, x is floating and the targets are integers of x's shape without its
 * last axis. */
bool rapt_check_class_loss(const char *op, const rapt_cross_entropy_options *options, const rapt_tensor *x,
                           const rapt_tensor *targets);

/* The targets as a new contiguous int64 tensor, with −1 in the rows that are left out. NULL after an error: a target
 * that is no class. */
rapt_tensor *rapt_checked_targets(const char *op, const rapt_cross_entropy_options *options, int64_t classes,
                                  const rapt_tensor *targets);

/* How many of checked targets are not left out, and what each of them counts in the mean: 0 where there is none. */
int64_t rapt_count_targets(const rapt_tensor *checked);
double rapt_mean_share(const rapt_tensor *checked);

/* x, of rows of the last axis, with zeros in the rows that are left out, whatever they hold. By recorded ops. NULL in
 * gives NULL. */
rapt_tensor *rapt_read_counting(rapt_tensor *x, rapt_tensor *checked);

/* The losses themselves, their sum, or that times the share. Made of recorded ops. */
rapt_tensor *rapt_reduce_losses(rapt_tensor *losses, rapt_reduction reduction, double share);

/* The gradient of the logits by recorded ops, for cross-entropy with those options and checked targets: from the
 * gradient g of what it gave. statistics are the kernel's; NULL: they are computed. NULL in gives NULL. */
rapt_tensor *rapt_cross_entropy_gradient(const rapt_cross_entropy_options *options, rapt_tensor *g, rapt_tensor *logits,
                                         rapt_tensor *targets, rapt_tensor *statistics);

/* In the vjp of a loss that forward reduced to one number: an input's gradient for a g of 1, which forward saved, can
 * be given times g. False, and no error, where it was not saved or is no longer there, or g is not finite. */
bool rapt_can_scale_saved(rapt_call *call, int index);

/* Gives it, if that input wants one. False after an error. */
bool rapt_give_scaled(rapt_call *call, int input, int index);

#endif
