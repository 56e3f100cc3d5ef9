/* What constructors check of their sizes and options. */
#include <float.h>
#include <math.h>

#include "nn/options.h"

bool rapt_check_size(const char *layer, const char *what, int64_t size)
{
    return size >= 0 || rapt_fail(RAPT_ERROR_VALUE, layer, "%s %lld; 0 or more expected", what, (long long)size);
}

bool rapt_check_above_0(const char *layer, const char *what, double number)
{
    return (number >= (double)FLT_MIN && number <= (double)FLT_MAX) ||
           rapt_fail(RAPT_ERROR_VALUE, layer, "%s %g; a finite number above 0 expected, also as float32", what, number);
}

bool rapt_check_flags(const char *layer, int flags)
{
    return flags == RAPT_NO_BIAS || flags == RAPT_BIAS ||
           rapt_fail(RAPT_ERROR_VALUE, layer, "flags %d; RAPT_NO_BIAS or RAPT_BIAS expected", flags);
}

bool rapt_check_names(const char *layer, rapt_parameter_names names)
{
    return (unsigned)names <= RAPT_NAMES_GPT2 ||
           rapt_fail(RAPT_ERROR_VALUE, layer, "names %d are none of rapt_parameter_names", (int)names);
}

bool rapt_check_rotary_scaling(const char *layer, const rapt_rotary_scaling *s)
{
    const bool is_alone = s->low_turns == 0 && s->high_turns == 0 && s->context == 0;
    if (s->factor == 0 && is_alone) return true;
    const bool fits =
        is_alone || (s->low_turns >= 0 && s->low_turns < s->high_turns && !isinf(s->high_turns) && s->context > 0);
    if (!fits)
        return rapt_fail(RAPT_ERROR_VALUE, layer,
                         "rotary scaling with low_turns %g and high_turns %g in a context of %lld; 0 ≤ low_turns < "
                         "high_turns in 1 or more expected, or zeros",
                         s->low_turns, s->high_turns, (long long)s->context);
    return rapt_check_above_0(layer, "the factor of rotary scaling", s->factor);
}
