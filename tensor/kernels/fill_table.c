/* Fills the whole table for one instruction-set level. */
#include "tensor/kernels.h"

void RAPT_AT_LEVEL(rapt_fill_kernels)(rapt_kernels *kernels);

void RAPT_AT_LEVEL(rapt_fill_kernels)(rapt_kernels *kernels)
{
#define X(family) RAPT_AT_LEVEL(rapt_fill_##family)(kernels);
    RAPT_KERNEL_FAMILIES(X)
#undef X
}
