/* Fused additive attention of float64. */
#define T double
#define SIZE 8
#define DTYPE RAPT_FLOAT64
#define EXP exp
#define EXPONENTIAL_LANES 1
#define TANH tanh
#define FABS fabs
#define COPYSIGN copysign
#define OF_TYPE(name) name##_float64
#include "additive_tmpl.c"
