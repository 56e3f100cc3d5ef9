/* The library's own score modifications of float32. */
#define T float
#define DTYPE RAPT_FLOAT32
#define TANH rapt_math_tanhf
#define OF_TYPE(name) name##_float32
#include "modification_tmpl.c"
