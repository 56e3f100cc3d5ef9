/* Fused dot-product attention of float64. */
#define T double
#define SIZE 8
#define DTYPE RAPT_FLOAT64
#define EXP rapt_math_exp_weight
#define OF_TYPE(name) name##_float64
#include "dot_tmpl.c"
