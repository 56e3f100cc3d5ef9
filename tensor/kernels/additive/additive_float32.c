/* Fused additive attention of float32. */
#define T float
#define SIZE 4
#define DTYPE RAPT_FLOAT32
#define EXP rapt_math_expf
#define TANH rapt_math_tanhf
#define FABS fabsf
#define COPYSIGN copysignf
#define OF_TYPE(name) name##_float32
#include "additive_tmpl.c"
