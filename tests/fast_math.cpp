// A user's program in C++ under flags by which a compiler takes NaN and infinities for numbers (-Ofast, -ffast-math):
// what rapt.hpp checks itself is checked all the same.
#include <cmath>
#include <cstdio>

#include <rapt.hpp>

static int failures;
static volatile double zero = 0; // so that nothing is known when compiling

static void expect(bool good, const char *what)
{
    if (good) return;
    std::fprintf(stderr, "fast_math.cpp: %s (%s)\n", what, rapt_error() ? rapt_error() : "no error");
    failures++;
}

static bool refuses(double value, rapt_dtype dtype)
{
    int refusals = 0;
    try {
        rapt::tensor(value, dtype);
    } catch (const std::invalid_argument &) {
        refusals++;
    }
    try {
        rapt::zeros({2}, dtype) * value;
    } catch (const std::invalid_argument &) {
        refusals++;
    }
    return refusals == 2;
}

int main()
{
    for (rapt_dtype dtype : {RAPT_INT64, RAPT_INT32, RAPT_UINT8}) {
        expect(refuses(NAN, dtype) && refuses(zero / zero, dtype), "NaN");
        expect(refuses(1 / zero, dtype) && refuses(-1 / zero, dtype), "infinities");
        expect(refuses(2.5 + zero, dtype) && refuses(std::ldexp(1, 63) + zero, dtype), "what the dtype has not");
        expect(rapt::tensor(200 + zero, dtype).item() == 200, "a number that it has");
    }
    expect(rapt::tensor(zero - std::ldexp(1, 63), RAPT_INT64).item() == -std::ldexp(1, 63), "the least number");
    expect(rapt::tensor(2.5 + zero).item() == 2.5, "a floating number");
    expect(!rapt_error(), "no error of the library's");
    return failures > 0;
}
