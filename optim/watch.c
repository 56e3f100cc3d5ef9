/* Measured values that are watched: early stopping, plateaus. */
#include <rapt/watch.h>

#include <math.h>

#include "tensor/core.h"

static bool check(const char *op, const rapt_watch *w)
{
    if (!w) return rapt_fail_null(op, "watch");
    return (w->threshold >= 0 && isfinite(w->threshold) && w->patience >= 0) ||
           rapt_fail(RAPT_ERROR_VALUE, op, "threshold %g and patience %lld; a finite number and 0 or more expected",
                     w->threshold, (long long)w->patience);
}

static bool is_better(const rapt_watch *w, double value)
{
    if (w->best_at == 0) return !isnan(value);
    /* a part of infinity is none: whatever is finite is better than ∞ */
    const double margin = isinf(w->best) ? 0 : w->absolute ? w->threshold : w->threshold * fabs(w->best);
    return w->maximize ? value > w->best + margin : value < w->best - margin;
}

bool rapt_watch_take(rapt_watch *watch, double value)
{
    if (!check("watch_take", watch)) return false;
    const bool better = is_better(watch, value);
    if (watch->values < INT64_MAX) watch->values++;
    if (watch->waited < INT64_MAX) watch->waited++;
    if (better) watch->waited = 0;
    if (!better) return false;
    watch->best = value;
    watch->best_at = watch->values;
    return true;
}

bool rapt_watch_is_over(const rapt_watch *watch)
{
    return check("watch_is_over", watch) && watch->waited > watch->patience;
}

static bool check_plateau(const rapt_plateau *p)
{
    const char *op = "plateau_factor";
    if (!p) return rapt_fail_null(op, "plateau");
    if (!check(op, &p->watch)) return false;
    return (p->cut >= 0 && p->cut < 1 && p->least >= 0 && p->least <= 1 && p->cool_down >= 0) ||
           rapt_fail(RAPT_ERROR_VALUE, op,
                     "cut %g, least %g, cool-down %lld; a cut from 0 to below 1, a least factor from 0 to 1 and 0 or "
                     "more values expected",
                     p->cut, p->least, (long long)p->cool_down);
}

double rapt_plateau_factor(rapt_plateau *plateau, double value)
{
    if (!check_plateau(plateau)) return (double)NAN;
    rapt_watch_take(&plateau->watch, value);
    if (plateau->cooling > 0) {
        plateau->cooling--;
        plateau->watch.waited = 0;
    }
    if (rapt_watch_is_over(&plateau->watch)) {
        if (plateau->cuts < INT64_MAX) plateau->cuts++;
        plateau->cooling = plateau->cool_down;
        plateau->watch.waited = 0;
    }
    return fmax(plateau->least, pow(plateau->cut > 0 ? plateau->cut : 0.1, (double)plateau->cuts));
}
