/* Products that are fused with a sum, by the formula and not by the compiler. */
#ifndef RAPT_KERNELS_MULTIPLY_ADD_H
#define RAPT_KERNELS_MULTIPLY_ADD_H

/* a b + c, rounded once where the processor does so. Compilers fuse what they find in one place, but not across a
 * branch, or with a product that they moved out of the loop; and of two products whose sum is wanted, gcc 15 fuses one
 * in vectors and the other one alone. Then a formula has other bits in vectors than alone: the sum of two products is
 * written with this. */
#if defined __FMA__ || defined __aarch64__ || defined __FP_FAST_FMAF
#define RAPT_MULTIPLY_ADD(a, b, c) _Generic((a) + (b), float : __builtin_fmaf, double : __builtin_fma)(a, b, c)
#else
#define RAPT_MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#endif

#endif
