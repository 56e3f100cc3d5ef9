/* Every layer against PyTorch: outputs and all gradients of the fixtures in tests/parity, in float32 and float64. A
 * tensor may differ by a part of its largest value in PyTorch's result: 10⁻¹² in float64, 10⁻⁵ in float32.
 * `test_parity --verbose` says how far off each case is. */
#include "expect.h"

#include <stdio.h>

#include "parity/parity.h"

typedef struct worst {
    double deviation;
    char name[128];
} worst;

static void expect_near(const parity *p, const char *name, double deviation, void *context)
{
    const double limit = p->dtype == RAPT_FLOAT64 ? 1e-12 : 1e-5;
    cr_expect(deviation <= limit, "%s is off by %.2g; %g allowed", name, deviation, limit);
    worst *largest = context;
    if (deviation < largest->deviation) return;
    largest->deviation = deviation;
    snprintf(largest->name, sizeof largest->name, "%s", name);
}

static void run_case(const rapt_archive *fixture, const parity_case *of, rapt_dtype dtype)
{
    RAPT_SCOPE;
    parity run = {.fixture = fixture, .dtype = dtype};
    worst largest = {.deviation = 0};
    bool good = parity_run(&run, of);
    cr_expect(good, "%s (%s): %s", of->name, rapt_dtype_name(dtype), rapt_error());
    if (good) {
        parity_compare(&run, expect_near, &largest);
        cr_expect(largest.name[0], "%s: nothing was compared", of->name);
        cr_log_info("%.1e %s", largest.deviation, largest.name);
    }
    rapt_clear_error();
    parity_end(&run);
}

static const parity_case *find_case(const parity_case *cases, const char *name, size_t length)
{
    while (cases->name && (strncmp(cases->name, name, length) != 0 || cases->name[length])) cases++;
    return cases->name ? cases : NULL;
}

static void run_cases(const char *name, const parity_case *cases)
{
    const int64_t before = rapt_memory_get_statistics().live_bytes;
    char path[512];
    snprintf(path, sizeof path, "%s/tests/parity/%s.safetensors", RAPT_SOURCE_ROOT, name);
    rapt_archive *fixture = rapt_load_safetensors(path);
    cr_assert_not_null(fixture, "%s", rapt_error());
    for (const parity_case *of = cases; of->name; of++) {
        run_case(fixture, of, RAPT_FLOAT32);
        run_case(fixture, of, RAPT_FLOAT64);
    }
    for (int64_t i = 0; i < rapt_archive_count(fixture); i++) {
        const char *entry = rapt_archive_name(fixture, i);
        cr_expect(find_case(cases, entry, strcspn(entry, "/")), "no case looks at %s", entry);
    }
    rapt_archive_free(fixture);
    cr_expect_eq(rapt_memory_get_statistics().live_bytes, before, "bytes are left");
}

#define PARITY_TEST(fixture)                                                                                           \
    Test(parity, fixture)                                                                                              \
    {                                                                                                                  \
        run_cases(#fixture, parity_##fixture);                                                                         \
    }
PARITY_FIXTURES(PARITY_TEST)
