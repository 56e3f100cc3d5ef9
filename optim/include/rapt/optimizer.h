/* Optimizers: they change the parameters of a module by the gradients that backward left there. */
#ifndef RAPT_OPTIMIZER_H
#define RAPT_OPTIMIZER_H

#include <rapt/nn.h>

RAPT_BEGIN_DECLS

/* What changes parameters, and what it keeps of each. */
typedef struct rapt_optimizer rapt_optimizer;

/* In all configurations 0 means the default named beside it; RAPT_ZERO is a true zero; NULL is all defaults. The module
 * may be NULL: parameters are then added by rapt_optimizer_add. A tensor that a module has under several names is one
 * parameter, of the first. Constructors give NULL after an error (a number out of its range, no memory). The optimizer
 * takes shares in the parameters; free it with rapt_optimizer_free, before or after the module. Formulas and names of
 * the state are PyTorch's; t counts the steps of each parameter, from 1. Steps are computed in the parameter's dtype: a
 * learning rate that is infinite there, as 1e39 in float32, or an epsilon that is infinite or turns to 0, as 1e-50, is
 * an error of the step. */

/* g += weight_decay·p; v = momentum·v + (1 − dampening)·g; p −= learning_rate·v (Nesterov: g + momentum·v instead of v,
 * which needs momentum and no dampening). The first v is g. */
typedef struct rapt_sgd_config {
    double learning_rate; /* 0.01 */
    double momentum;      /* none */
    double dampening;     /* none */
    double weight_decay;  /* none */
    bool nesterov;
} rapt_sgd_config;
RAPT_API rapt_optimizer *rapt_sgd_new(rapt_module *module, const rapt_sgd_config *config);

/* m = β₁ m + (1 − β₁) g; v = β₂ v + (1 − β₂) g²; p −= learning_rate · m̂ / (√v̂ + ε) with m̂ = m / (1 − β₁ᵗ) and
 * v̂ = v / (1 − β₂ᵗ) (Kingma & Ba 2015). adam adds weight_decay·p to g; adamw multiplies p by
 * 1 − learning_rate·weight_decay instead (Loshchilov & Hutter 2019). */
typedef struct rapt_adam_config {
    double learning_rate; /* 0.001 */
    double beta1;         /* 0.9 */
    double beta2;         /* 0.999 */
    double epsilon;       /* 1e-8 */
    double weight_decay;  /* adam: none; adamw: 0.01 */
} rapt_adam_config;
RAPT_API rapt_optimizer *rapt_adam_new(rapt_module *module, const rapt_adam_config *config);
RAPT_API rapt_optimizer *rapt_adamw_new(rapt_module *module, const rapt_adam_config *config);

/* v = α v + (1 − α) g²; p −= learning_rate · g / (√v + ε), through a momentum buffer when there is momentum;
 * centered: v less the square of the mean gradient, at least 0 (Hinton 2012; Graves 2013). weight_decay·p is added
 * to g. */
typedef struct rapt_rmsprop_config {
    double learning_rate; /* 0.01 */
    double alpha;         /* 0.99 */
    double epsilon;       /* 1e-8 */
    double momentum;      /* none */
    double weight_decay;  /* none */
    bool centered;
} rapt_rmsprop_config;
RAPT_API rapt_optimizer *rapt_rmsprop_new(rapt_module *module, const rapt_rmsprop_config *config);

/* s += g²; p −= learning_rate / (1 + (t − 1)·decay) · g / (√s + ε) (Duchi et al. 2011), where s starts from
 * initial_accumulator. weight_decay·p is added to g. */
typedef struct rapt_adagrad_config {
    double learning_rate;       /* 0.01 */
    double learning_rate_decay; /* none */
    double initial_accumulator; /* 0 */
    double epsilon;             /* 1e-10 */
    double weight_decay;        /* none */
} rapt_adagrad_config;
RAPT_API rapt_optimizer *rapt_adagrad_new(rapt_module *module, const rapt_adagrad_config *config);

/* c = β₁ m + (1 − β₁) g; p = (1 − learning_rate·weight_decay)·p − learning_rate · sign c; m = β₂ m + (1 − β₂) g (Chen
 * et al. 2023, whose advice is a learning rate 3 to 10 times below AdamW's and a weight decay as many times above).
 * Half of Adam's state. */
typedef struct rapt_lion_config {
    double learning_rate; /* 0.0001 */
    double beta1;         /* 0.9 */
    double beta2;         /* 0.99 */
    double weight_decay;  /* none */
} rapt_lion_config;
RAPT_API rapt_optimizer *rapt_lion_new(rapt_module *module, const rapt_lion_config *config);

/* For matrices: v = μ v + (1 − μ) g; p = (1 − learning_rate·weight_decay)·p − learning_rate · scale · O, where O is
 * g + μ (v − g) with its singular values brought near 1 by iterations of Newton and Schulz (Jordan et al. 2024), in
 * the parameter's dtype, and scale √max(1, rows / columns). Parameters that are no matrices are stepped by AdamW, whose
 * learning rate follows rapt_optimizer_set_learning_rate in its ratio to this one: a true zero here is an error, unless
 * AdamW's is one, too. */
typedef struct rapt_muon_config {
    double learning_rate; /* 0.001 */
    double momentum;      /* 0.95 */
    double epsilon;       /* 1e-7; the least norm that the matrix is divided by, 1.2e-38 or more in float32 */
    double weight_decay;  /* 0.1 */
    int iterations;       /* 5 */
    bool heavy_ball;      /* O of v itself, without Nesterov's look ahead */
    bool match_rms; /* scale is 0.2 · √max(rows, columns), which learning rates of AdamW fit (Liu et al. 2025) */
    rapt_adam_config adamw;
} rapt_muon_config;
RAPT_API rapt_optimizer *rapt_muon_new(rapt_module *module, const rapt_muon_config *config);

/* Leaves to AdamW also the matrices whose names match the pattern (fnmatch's): embeddings and the last layer, as Jordan
 * advises. Before the first step and before state is loaded; false after an error, which it is when none matches. */
RAPT_API bool rapt_muon_by_adamw(rapt_optimizer *optimizer, const char *pattern);

/* u = g / max(√v, ε₁); p = (1 − learning_rate·weight_decay)·p − max(ε₂, rms p) · min(learning_rate, 1/√t) /
 * max(1, rms(u) / clip) · u, where v is a running mean of g² with β₂ = 1 − t^−beta2_decay, of which a parameter of rank
 * 2 or more keeps the means of rows and columns only (Shazeer & Stern 2018, who add to g² what is ε₁² here: for their
 * 1e-30 give 1e-15). A parameter or u that is not finite is an error of the step. */
typedef struct rapt_adafactor_config {
    double learning_rate; /* 0.01, relative to the size of the parameter */
    double beta2_decay;   /* 0.8 */
    double epsilon1;      /* the dtype's precision; 1.1e-19 or more in float32, where v has nothing below its square */
    double epsilon2;      /* 0.001 */
    double clip;          /* 1 */
    double weight_decay;  /* none */
} rapt_adafactor_config;
RAPT_API rapt_optimizer *rapt_adafactor_new(rapt_module *module, const rapt_adafactor_config *config);

/* Frees it, with its state and its shares in the parameters. NULL does nothing. */
RAPT_API void rapt_optimizer_free(rapt_optimizer *optimizer);

/* Adds a parameter, a leaf that is not there yet, under a name of up to 511 bytes that is not in use. It is in no
 * group. */
RAPT_API bool rapt_optimizer_add(rapt_optimizer *optimizer, const char *name, rapt_tensor *parameter);

/* What a group of parameters has of its own. */
typedef struct rapt_group_config {
    double learning_rate; /* 0: the optimizer's; RAPT_ZERO freezes the group: its state does not change either */
    double weight_decay;  /* 0: the optimizer's; RAPT_ZERO: none */
} rapt_group_config;

/* Puts every parameter that is there and whose name matches the pattern (fnmatch's: "*.bias") into a group of its
 * own; a later group takes parameters from an earlier one. False after an error, which it is when none matches, and for
 * a learning rate above 0 where the constructor was given a true zero. */
RAPT_API bool rapt_optimizer_group(rapt_optimizer *optimizer, const char *pattern, const rapt_group_config *config);

/* One step: changes every parameter that has a gradient and is not frozen, and then drops all gradients. False after
 * an error (no memory for the state at a parameter's first step, a parameter cast since, a number that its dtype has
 * not); then no parameter was changed. The first step of all warns (rapt_on_warning) of parameters that have no
 * gradient, and names them. */
RAPT_API bool rapt_optimizer_step(rapt_optimizer *optimizer);

/* Makes what the next step keeps of the parameters that have a gradient, so that the step, of any kind but Muon and
 * Adafactor, does not fail for want of memory: for who must know that before others take theirs. Nothing else changes.
 * False after an error. */
RAPT_API bool rapt_optimizer_prepare(rapt_optimizer *optimizer);

/* Drops the gradients without a step. */
RAPT_API void rapt_optimizer_clear_gradients(rapt_optimizer *optimizer);

/* The learning rate of all parameters without one from their group. Those with one follow it: theirs is multiplied
 * by its ratio to the learning rate that the constructor was given: for a warm-up from 0 that is the full one, and 0 is
 * set here. NULL gives NaN and an error. */
RAPT_API double rapt_optimizer_get_learning_rate(const rapt_optimizer *optimizer);
RAPT_API bool rapt_optimizer_set_learning_rate(rapt_optimizer *optimizer, double learning_rate);

/* Steps taken so far; 0 and an error for NULL. */
RAPT_API int64_t rapt_optimizer_get_steps(const rapt_optimizer *optimizer);

/* Parameters that it has, frozen ones too; 0 and an error for NULL. */
RAPT_API int rapt_optimizer_count(const rapt_optimizer *optimizer);

/* Whether it steps each number by that number's own gradient and state, so that pieces may be stepped in a parameter's
 * place: every kind but Muon and Adafactor. False and an error for NULL. */
RAPT_API bool rapt_optimizer_is_elementwise(const rapt_optimizer *optimizer);

/* Scales all gradients so that their global L2 norm is at most the limit (g · limit / norm only if norm > limit;
 * Pascanu et al. 2013); the norm before, summed in double, goes to *norm unless that is NULL. The limit is above 0;
 * INFINITY only measures. What a group's rate of RAPT_ZERO leaves as it is counts in the norm; what is frozen has no
 * gradient, and does not. A norm that is not finite, as its square is not from 1.4e154 on, is an error that names the
 * parameter; after an error gradients and *norm are as before. */
RAPT_API bool rapt_clip_gradient_norm(rapt_optimizer *optimizer, double limit, double *norm);

/* rapt_clip_gradient_norm and rapt_optimizer_step in one, with the same bits: clipped gradients, which the step would
 * drop, are not written to memory. After an error no parameter was changed and *norm is as before; but where an op in
 * the step of Muon or Adafactor fails (no memory, say) the gradients are clipped already: their norm is the limit. */
RAPT_API bool rapt_optimizer_step_clipped(rapt_optimizer *optimizer, double limit, double *norm);

/* Cuts every element of every gradient to [−limit, limit], limit above 0. NaN stays. After an error the gradients
 * are as before. */
RAPT_API bool rapt_clip_gradient_value(rapt_optimizer *optimizer, double limit);

/* The optimizer's state to an archive, and back; all names with the prefix put before them (may be NULL). It is the
 * kind, "learning_rate", "steps", and for each parameter "NAME.step" and its state under PyTorch's names
 * ("NAME.exp_avg"). The archive shares the state, it does not copy it; where a parameter was cast since, that is an
 * error. Loading copies, after everything was checked: an optimizer of another kind, a parameter that is missing,
 * another shape or dtype is an error that names it, and nothing is changed. What the archive has besides is ignored;
 * the other numbers of the configuration and the groups are not part of the state. */
RAPT_API bool rapt_optimizer_to_archive(const rapt_optimizer *optimizer, const char *prefix, rapt_archive *archive);
RAPT_API bool rapt_optimizer_from_archive(rapt_optimizer *optimizer, const char *prefix, const rapt_archive *archive);

RAPT_END_DECLS

#endif
