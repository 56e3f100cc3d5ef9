/* The element types of safetensors that can be read, and the widening of the two half-sized floating ones. */
#include <string.h>

#include "safetensors.h"

static float float_of_bits(uint32_t bits)
{
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* In a mapped file halves may lie anywhere; the lower byte is first. */
static uint16_t half_at(const void *halves, int64_t i)
{
    const uint8_t *bytes = (const uint8_t *)halves + 2 * i;
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

/* bfloat16 is the upper half of a float32. */
static void widen_bfloat16(const void *in, int64_t count, float *out)
{
    for (int64_t i = 0; i < count; i++) out[i] = float_of_bits((uint32_t)half_at(in, i) << 16);
}

/* IEEE binary16: 1 bit of sign, 5 of exponent (bias 15), 10 of fraction. */
static float widen_half(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 0x3ffu;
    if (exponent == 31) return float_of_bits(sign | 0x7f800000 | fraction << 13);
    if (exponent != 0) return float_of_bits(sign | (exponent + 127 - 15) << 23 | fraction << 13);
    const float magnitude = (float)fraction * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}

static void widen_float16(const void *in, int64_t count, float *out)
{
    for (int64_t i = 0; i < count; i++) out[i] = widen_half(half_at(in, i));
}

/* The first of each dtype is the one that is written. */
static const rapt_stored_type types[] = {
    {"F32", 4, RAPT_FLOAT32, NULL},
    {"F64", 8, RAPT_FLOAT64, NULL},
    {"I64", 8, RAPT_INT64, NULL},
    {"I32", 4, RAPT_INT32, NULL},
    {"U8", 1, RAPT_UINT8, NULL},
    {"BOOL", 1, RAPT_BOOL, NULL},
    {"F16", 2, RAPT_FLOAT32, widen_float16},
    {"BF16", 2, RAPT_FLOAT32, widen_bfloat16},
};

const rapt_stored_type *rapt_stored_type_find(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0) return &types[i];
    return NULL;
}

const char *rapt_stored_type_name(rapt_dtype dtype)
{
    size_t i = 0;
    while (types[i].dtype != dtype) i++;
    return types[i].name;
}
