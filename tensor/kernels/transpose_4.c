/* Transposing matrices of numbers of 4 bytes. */
#define T uint32_t
#define SIZE 4
#define OF_SIZE(name) name##_4
#include "transpose_numbers_tmpl.c"
