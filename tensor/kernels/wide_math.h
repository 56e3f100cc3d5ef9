/* Functions that float32 loops evaluate in double, to round once: where float would lose digits on the way, in tails
 * and beside zeros of a slope. Branch-free as vector_math.h, whose notes hold here too. */
#ifndef RAPT_TENSOR_KERNELS_WIDE_MATH_H
#define RAPT_TENSOR_KERNELS_WIDE_MATH_H

#include "double_math.h"

/* eˣ within 2^-34, to be rounded to float */
RAPT_MATH_INLINE double rapt_math_exp_short(double x)
{
    return rapt_math_exp2_short(x * 0x1.71547652b82fep+0);
}

/* 1 / (3.5 + a), the variable of the fits below, which hold for a up to 14.6 and vanish in float beyond */
RAPT_MATH_INLINE double rapt_math_tail_variable(double a)
{
    return 1.0 / (3.5 + a);
}

/* The normal distribution Φ(x). With a = |x|: Φ(−a) = e^(−a²/2) p(t); fit 2^-27.0 */
RAPT_MATH_INLINE double rapt_math_normal(double x)
{
    const double t = rapt_math_tail_variable(fabs(x));
    double p = -0x1.16264e3b338e4p+12;
    p = p * t + 0x1.fd5e169fd8873p+12;
    p = p * t - 0x1.604d6816443afp+12;
    p = p * t + 0x1.a8091abcaeec3p+10;
    p = p * t - 0x1.e8732214dc9b9p+7;
    p = p * t + 0x1.0fd44a3115587p+6;
    p = p * t + 0x1.436d0e0b2c971p+3;
    p = p * t + 0x1.27fb84142cbe7p+2;
    p = p * t + 0x1.647c2688f70a8p+0;
    p = p * t + 0x1.98902d988364fp-2;
    const double tail = rapt_math_exp_short(-0.5 * x * x) * (p * t);
    return x < 0.0 ? tail : 1.0 - tail;
}

/* The derivative of x Φ(x), which at −a is e^(−a²/2) (zero − a) p(t) with its only zero as a factor; fit 2^-27.4 */
RAPT_MATH_INLINE double rapt_math_gelu_slope(double x)
{
    const double a = fabs(x), t = rapt_math_tail_variable(a);
    double p = 0x1.ae9b4d2a1a503p+7;
    p = p * t - 0x1.08b5e1394ec74p+8;
    p = p * t + 0x1.6bb816719e4cfp+6;
    p = p * t - 0x1.de313244fd07cp+1;
    p = p * t + 0x1.b5cebefe4582ap+2;
    p = p * t + 0x1.1f5713f08e254p+1;
    p = p * t + 0x1.c1ebc2cb69656p-1;
    p = p * t + 0x1.331a829aee79dp-2;
    p = p * t + 0x1.98842fac92701p-2;
    const double tail = rapt_math_exp_short(-0.5 * x * x) * ((0x1.80ead197f00b4p-1 - a) * p);
    return x < 0.0 ? tail : 1.0 - tail;
}

#endif
