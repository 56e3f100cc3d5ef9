/* Initial values of parameters, in place. fan_in is how many numbers a number of the output is made of, fan_out in how
 * many numbers of the output one of the input has a share: of a Linear's weight (out, in) these are in and out, of a
 * convolution's (out, in, …) both times the kernel's size. Each returns false after an error (NULL, not floating, rank
 * below 2, a gain that is below 0 or not finite). rapt_fill_uniform and rapt_fill_normal (random.h) need no fans. */
#ifndef RAPT_INITIALIZE_H
#define RAPT_INITIALIZE_H

#include <rapt/autograd.h>

RAPT_BEGIN_DECLS

/* Uniform within ±gain·√(6 / (fan_in + fan_out)); normal with deviation gain·√(2 / (fan_in + fan_out)) (Glorot & Bengio
 * 2010). A gain of 1 suits linear and tanh layers. */
RAPT_API bool rapt_init_xavier_uniform(rapt_tensor *tensor, double gain);
RAPT_API bool rapt_init_xavier_normal(rapt_tensor *tensor, double gain);

/* Uniform within ±gain·√(3 / fan_in); normal with deviation gain / √fan_in (He et al. 2015). A gain of √2 suits
 * relu. */
RAPT_API bool rapt_init_kaiming_uniform(rapt_tensor *tensor, double gain);
RAPT_API bool rapt_init_kaiming_normal(rapt_tensor *tensor, double gain);

RAPT_END_DECLS

#endif
