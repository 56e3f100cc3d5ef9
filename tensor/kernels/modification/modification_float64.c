/* The library's own score modifications of float64. */
#define T double
#define DTYPE RAPT_FLOAT64
#define TANH rapt_math_tanh
#define OF_TYPE(name) name##_float64
#include "modification_tmpl.c"
