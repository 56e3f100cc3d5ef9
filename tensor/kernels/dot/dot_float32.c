/* Fused dot-product attention of float32. */
#define T float
#define SIZE 4
#define DTYPE RAPT_FLOAT32
#define EXP rapt_math_exp_weightf
#define OF_TYPE(name) name##_float32
#include "dot_tmpl.c"
