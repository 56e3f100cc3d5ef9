/* Matrix products of float32. */
#define T float
#define SIZE 4
#define DTYPE RAPT_FLOAT32
#define OF_TYPE(name) name##_float32
#include "matmul_tmpl.c"
