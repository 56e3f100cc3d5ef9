/* Functions of float32 that weigh x by a gate, x σ(v) and x Φ(x), and their slopes, for processors that fuse multiply
 * and add: in float32 throughout, what would lose digits being carried in two numbers, of which the second is the
 * rounding of the first. Branch-free as vector_math.h, whose notes hold here too; some coefficients were moved by an
 * ulp or two after their rounding, to where float32's own errors are least, and so were the middles of variables.
 *
 * Both gates at −x are 1 less those at x, and so are the slopes. So all is computed at −a, where a = |x|, and there
 * the value is a times a gate that vanishes, and the slope has a zero, whose distance is a factor. */
#ifndef RAPT_TENSOR_KERNELS_GATE_MATH_H
#define RAPT_TENSOR_KERNELS_GATE_MATH_H

#include "vector_math.h"

#if defined __FMA__ || defined __aarch64__
#define RAPT_MATH_FUSED

/* The number high + low. */
struct rapt_math_pair {
    float high, low;
};

RAPT_MATH_INLINE struct rapt_math_pair rapt_math_square(float a)
{
    struct rapt_math_pair square;
    square.high = a * a;
    square.low = RAPT_MULTIPLY_ADD(a, a, -square.high);
    return square;
}

/* log2(e) v = k + r with |r| ≤ ½, k standing in the low bits of `shifted` */
struct rapt_math_exponent {
    float shifted, r;
};

/* of a b + rest */
RAPT_MATH_INLINE struct rapt_math_exponent rapt_math_exponent_of(float a, float b, float rest)
{
    struct rapt_math_exponent v;
    v.shifted = a * b + RAPT_MATH_ROUNDER;
    v.r = RAPT_MULTIPLY_ADD(a, b, RAPT_MATH_ROUNDER - v.shifted) + rest;
    return v;
}

/* 2⁻⁶⁴ 2^k and 2⁶⁴ 2^−k for 0 ≤ k < 190: what is made of them may be as small as a denormal before it is scaled back */
#define RAPT_MATH_LESS 0x1p-64f

RAPT_MATH_INLINE float rapt_math_scale_up(struct rapt_math_exponent v)
{
    return rapt_math_from_bits((rapt_math_bits(v.shifted) << 23) + ((127u - 64u) << 23));
}

RAPT_MATH_INLINE float rapt_math_scale_down(struct rapt_math_exponent v)
{
    return rapt_math_from_bits((127u << 24) - rapt_math_bits(rapt_math_scale_up(v)));
}

/* 2^r − 1 for |r| ≤ ½; fit 2^-28.5 of 2^r */
RAPT_MATH_INLINE float rapt_math_exp2m1(float r)
{
    float p = 0x1.486388p-13f;
    p = p * r + 0x1.5fe1a2p-10f;
    p = p * r + 0x1.3b2508p-7f;
    p = p * r + 0x1.c6ad6ep-5f;
    p = p * r + 0x1.ebfbe6p-3f;
    return RAPT_MULTIPLY_ADD(r, 0x1.62e432p-1f, r * r * p);
}

/* p u + constant, a polynomial's last step */
RAPT_MATH_INLINE struct rapt_math_pair rapt_math_last_step(float p, float u, float constant)
{
    struct rapt_math_pair sum;
    sum.high = RAPT_MULTIPLY_ADD(p, u, constant);
    sum.low = RAPT_MULTIPLY_ADD(p, u, constant - sum.high);
    return sum;
}

/* |x|, at most `most`, where all results have vanished or are constant; NaN stays */
RAPT_MATH_INLINE float rapt_math_magnitude(float x, float most)
{
    const float a = fabsf(x);
    return most < a ? most : a;
}

/* What a − zero is more than the distance, which is a − zero.high rounded (Knuth's sum of two numbers) */
RAPT_MATH_INLINE float rapt_math_beyond(float a, float distance, struct rapt_math_pair zero)
{
    const float back = distance - a;
    return ((a - (distance - back)) - (zero.high + back)) - zero.low;
}

/* (a − zero) p */
RAPT_MATH_INLINE float rapt_math_from_zero(float a, float distance, struct rapt_math_pair zero, float p)
{
    return RAPT_MULTIPLY_ADD(distance, p, rapt_math_beyond(a, distance, zero) * p);
}

/* x g(x), of a g(−a): −lost at x = −a, x − lost at a. NaN at −∞, as −∞ · 0 is. */
RAPT_MATH_INLINE float rapt_math_value_of(float x, float lost, float scale)
{
    const float most = x < 0.0f ? x * 0.0f : x;
    return most - lost * scale;
}

/* The slope, of minus the slope at −a. NaN at both infinities, as ∞ · 0 is. */
RAPT_MATH_INLINE float rapt_math_slope_of(float x, float lost, float scale)
{
    const uint32_t bits = rapt_math_bits(x), negative = 0u - (bits >> 31);
    const float most = rapt_math_from_bits(rapt_math_bits(1.0f) & ~negative) + x * 0.0f;
    return most + rapt_math_from_bits(rapt_math_bits(lost) ^ (bits & 0x80000000u)) * scale;
}

/* --- x σ(v), v an odd function of x --- */

/* 2⁶⁴ σ(−v) = 2⁶⁴ / (1 + e^v) for v ≥ 0, high to be multiplied by 1 + low */
RAPT_MATH_INLINE struct rapt_math_pair rapt_math_gate(struct rapt_math_exponent v)
{
    const float scale = rapt_math_scale_up(v);
    const float more = RAPT_MULTIPLY_ADD(scale, rapt_math_exp2m1(v.r), RAPT_MATH_LESS);
    const float below = scale + more, below_rest = more - (below - scale);
    struct rapt_math_pair gate;
    gate.high = 1.0f / below;
    gate.low = RAPT_MULTIPLY_ADD(-gate.high, below, 1.0f) - gate.high * below_rest;
    return gate;
}

RAPT_MATH_INLINE float rapt_math_gated(float x, float a, struct rapt_math_pair gate)
{
    return rapt_math_value_of(x, RAPT_MULTIPLY_ADD(a, gate.high, a * gate.high * gate.low), RAPT_MATH_LESS);
}

/* With t = σ(−v) minus the slope is t (w (1 − t) − 1), w = a v'; `less` is w − 1. Where it is near its zero, which is
 * below `end`, it is `near`. */
RAPT_MATH_INLINE float rapt_math_gated_slope(float x, float a, struct rapt_math_pair gate, struct rapt_math_pair less,
                                             float end, float near)
{
    const float t = gate.high * RAPT_MATH_LESS;
    struct rapt_math_pair factor;
    factor.high = RAPT_MULTIPLY_ADD(-t, less.high + 1.0f, less.high);
    factor.low = RAPT_MULTIPLY_ADD(-t, less.high + 1.0f, less.high - factor.high) + (less.low - t * less.low);
    const float rest = RAPT_MULTIPLY_ADD(gate.high, factor.low, gate.high * factor.high * gate.low);
    const float far = RAPT_MULTIPLY_ADD(gate.high, factor.high, rest);
    return rapt_math_slope_of(x, a < end ? near : far, RAPT_MATH_LESS);
}

/* v = x. Beyond 112 the value is 0. */
#define RAPT_MATH_SILU_MAGNITUDE(x) rapt_math_magnitude(x, 112.0f)

RAPT_MATH_INLINE struct rapt_math_pair rapt_math_silu_gate(float a)
{
    const struct rapt_math_pair log2_e = {0x1.715476p+0f, 0x1.4ae0cp-26f};
    return rapt_math_gate(rapt_math_exponent_of(a, log2_e.high, a * log2_e.low));
}

RAPT_MATH_INLINE float rapt_math_siluf(float x)
{
    const float a = RAPT_MATH_SILU_MAGNITUDE(x);
    return rapt_math_gated(x, a, rapt_math_silu_gate(a));
}

RAPT_MATH_INLINE float rapt_math_silu_slopef(float x)
{
    const float a = RAPT_MATH_SILU_MAGNITUDE(x);
    const struct rapt_math_pair zero = {0x1.474974p+0f, -0x1.bdf6fap-27f}, less = {a - 1.0f, 0.0f};
    /* 2⁶⁴ times minus the slope at −a, by a − zero, in a − zero for a ≤ 1.75; fit 2^-28.7 */
    const float d = a - zero.high;
    float p = 0x1.6a01f2p+47f;
    p = p * d + 0x1.96035ap+49f;
    p = p * d - 0x1.2d32fcp+49f;
    p = p * d - 0x1.95957ep+51f;
    p = p * d + 0x1.a030dap+53f;
    p = p * d - 0x1.07cf68p+51f;
    p = p * d - 0x1.b0e94ap+56f;
    p = p * d + 0x1.f2d0bcp+57f;
    p = p * d + 0x1.353e7cp+58f;
    p = p * d - 0x1.2c5634p+61f;
    p = p * d + 0x1.be141p+61f;
    const float near = rapt_math_from_zero(a, d, zero, p);
    return rapt_math_gated_slope(x, a, rapt_math_silu_gate(a), less, 1.75f, near);
}

/* v = 2 √(2/π) (x + 0.044715 x³). Beyond 11 the value is 0. */
#define RAPT_MATH_GELU_TANH_MAGNITUDE(x) rapt_math_magnitude(x, 11.0f)

/* constant + cubic s with as many digits as two numbers have; the constant's first part has so few that what is left
 * of it beside the sum is exact */
RAPT_MATH_INLINE struct rapt_math_pair rapt_math_line(struct rapt_math_pair constant, struct rapt_math_pair cubic,
                                                      struct rapt_math_pair s)
{
    struct rapt_math_pair line;
    line.high = RAPT_MULTIPLY_ADD(cubic.high, s.high, constant.high);
    line.low = RAPT_MULTIPLY_ADD(cubic.high, s.high, constant.high - line.high) +
               (cubic.high * s.low + (cubic.low * s.high + constant.low));
    return line;
}

RAPT_MATH_INLINE struct rapt_math_pair rapt_math_gelu_tanh_gate(float a, struct rapt_math_pair square)
{
    /* log2(e) 2 √(2/π), and 0.044715 of it */
    const struct rapt_math_pair constant = {0x1.26aecp+1f, 0x1.0de73ap-22f}, cubic = {0x1.a5a7d0p-4f, -0x1.151aaep-29f};
    const struct rapt_math_pair line = rapt_math_line(constant, cubic, square);
    return rapt_math_gate(rapt_math_exponent_of(a, line.high, a * line.low));
}

RAPT_MATH_INLINE float rapt_math_gelu_tanhf(float x)
{
    const float a = RAPT_MATH_GELU_TANH_MAGNITUDE(x);
    return rapt_math_gated(x, a, rapt_math_gelu_tanh_gate(a, rapt_math_square(a)));
}

RAPT_MATH_INLINE float rapt_math_gelu_tanh_slopef(float x)
{
    const float a = RAPT_MATH_GELU_TANH_MAGNITUDE(x);
    const struct rapt_math_pair square = rapt_math_square(a), zero = {0x1.8142a0p-1f, -0x1.85a06cp-27f};
    /* v' = 2 √(2/π) (1 + 3 · 0.044715 a²) */
    const struct rapt_math_pair constant = {0x1.9884p+0f, 0x1.4cf50ep-18f}, cubic = {0x1.b6676cp-3f, -0x1.175e2p-32f};
    const struct rapt_math_pair slope = rapt_math_line(constant, cubic, square);
    const struct rapt_math_pair less = {RAPT_MULTIPLY_ADD(a, slope.high, -1.0f), a * slope.low};
    /* 2⁶⁴ times minus the slope at −a, by a − zero, in a − zero for a ≤ 1.25; fit 2^-28.5 */
    const float d = a - zero.high;
    float p = -0x1.52869ap+52f;
    p = p * d - 0x1.c33a08p+53f;
    p = p * d + 0x1.43702p+55f;
    p = p * d + 0x1.57ee0ap+56f;
    p = p * d - 0x1.42a3dp+58f;
    p = p * d - 0x1.1045ccp+58f;
    p = p * d + 0x1.d2b846p+60f;
    p = p * d - 0x1.02967cp+58f;
    p = p * d - 0x1.8cd1a4p+62f;
    p = p * d + 0x1.b8bacep+62f;
    const float near = rapt_math_from_zero(a, d, zero, p);
    /* Where it vanishes the formula has 0, not −0 */
    return rapt_math_gated_slope(x, a, rapt_math_gelu_tanh_gate(a, square), less, 1.1875f, near) + 0.0f;
}

/* --- x Φ(x) --- */

/* 1 / (3.5 + a), the variable of the fits below, which hold for a up to 14.8 and vanish beyond; high to be multiplied
 * by 1 + low */
RAPT_MATH_INLINE struct rapt_math_pair rapt_math_tail_place(float a)
{
    const float below = 3.5f + a, below_rest = a - (below - 3.5f);
    struct rapt_math_pair t;
    t.high = 1.0f / below;
    t.low = RAPT_MULTIPLY_ADD(-t.high, below, 1.0f) - t.high * below_rest;
    return t;
}

/* log2(e) a² / 2 but for what is left of a² and of log2(e): the factor is 1 − rest */
struct rapt_math_decay {
    struct rapt_math_exponent v;
    float rest;
};

RAPT_MATH_INLINE struct rapt_math_decay rapt_math_half_square(float a)
{
    const struct rapt_math_pair square = rapt_math_square(a);
    struct rapt_math_decay decay;
    decay.v = rapt_math_exponent_of(square.high, 0x1.715476p-1f, 0.0f);
    decay.rest = RAPT_MULTIPLY_ADD(square.low, 0.5f, square.high * 0x1.cab1b6p-28f);
    return decay;
}

/* e^(−a²/2) (b c + rest) before it is scaled by 2^−k */
RAPT_MATH_INLINE float rapt_math_decayed(struct rapt_math_decay decay, float b, float c, float rest)
{
    const float y = b * c, y_rest = RAPT_MULTIPLY_ADD(b, c, -y), low = rest - y * decay.rest;
    const float e = rapt_math_exp2m1(-decay.v.r);
    return RAPT_MULTIPLY_ADD(b, c, y * e + ((y_rest + low) * e + low));
}

RAPT_MATH_INLINE float rapt_math_geluf(float x)
{
    const float a = rapt_math_magnitude(x, 14.8f);
    const struct rapt_math_decay decay = rapt_math_half_square(a);
    const struct rapt_math_pair t = rapt_math_tail_place(a);
    /* Φ(−a) e^(a²/2) / t in t − 0.153687; fit 2^-26.9 */
    const float u = (t.high - 0x1.3acp-3f) + t.high * t.low;
    float p = -0x1.13a1eap+12f;
    p = p * u + 0x1.f0f2fcp+10f;
    p = p * u + 0x1.2b4134p+9f;
    p = p * u - 0x1.4efebcp+8f;
    p = p * u - 0x1.08752cp+7f;
    p = p * u + 0x1.19f7ap+5f;
    p = p * u + 0x1.4bd592p+5f;
    p = p * u + 0x1.0c6e9cp+4f;
    p = p * u + 0x1.13b49p+2f;
    const struct rapt_math_pair quotient = rapt_math_last_step(p, u, 0x1.940bcep-1f);
    /* 2³² a / (3.5 + a), so that nothing is lost where x is as small as a denormal */
    const float grown = 0x1p32f * a, share = grown * t.high;
    const float share_rest = RAPT_MULTIPLY_ADD(grown, t.high, -share) + share * t.low;
    const float rest = RAPT_MULTIPLY_ADD(share, quotient.low, share_rest * quotient.high);
    const float lost = rapt_math_decayed(decay, share, quotient.high, rest) * rapt_math_scale_down(decay.v);
    return rapt_math_value_of(x, lost, 0x1p-32f * RAPT_MATH_LESS);
}

RAPT_MATH_INLINE float rapt_math_gelu_slopef(float x)
{
    const float a = rapt_math_magnitude(x, 14.8f);
    const struct rapt_math_decay decay = rapt_math_half_square(a);
    const struct rapt_math_pair t = rapt_math_tail_place(a), zero = {0x1.80ead2p-1f, -0x1.a03fd4p-27f};
    /* minus the slope at −a by e^(−a²/2) (a − zero), in t − 0.171021; fit 2^-27.4 */
    const float u = (t.high - 0x1.5e4p-3f) + t.high * t.low;
    float p = 0x1.af454cp+7f;
    p = p * u + 0x1.dd69a2p+4f;
    p = p * u - 0x1.8d388cp+5f;
    p = p * u - 0x1.96ac2ep+3f;
    p = p * u + 0x1.42d622p+3f;
    p = p * u + 0x1.188954p+3f;
    p = p * u + 0x1.c6338ep+1f;
    p = p * u + 0x1.eb177cp-1f;
    const float distance = a - zero.high;
    const struct rapt_math_pair quotient = rapt_math_last_step(p, u, 0x1.f99e34p-2f);
    const float rest = RAPT_MULTIPLY_ADD(distance, quotient.low, rapt_math_beyond(a, distance, zero) * quotient.high);
    const float lost = rapt_math_decayed(decay, distance, quotient.high, rest) * rapt_math_scale_down(decay.v);
    return rapt_math_slope_of(x, lost, RAPT_MATH_LESS);
}

#endif

#endif
