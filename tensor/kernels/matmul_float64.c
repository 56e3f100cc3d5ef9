/* Matrix products of float64. */
#define T double
#define SIZE 8
#define DTYPE RAPT_FLOAT64
#define OF_TYPE(name) name##_float64
#include "matmul_tmpl.c"
