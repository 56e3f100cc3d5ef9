/* Transposing matrices of numbers of 8 bytes. */
#define T uint64_t
#define SIZE 8
#define OF_SIZE(name) name##_8
#include "transpose_numbers_tmpl.c"
