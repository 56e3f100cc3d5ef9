/* Every optimizer and option against numbers that a few lines of Python made from PyTorch's documented formulas, and
 * from Lion's. */
#include "optimizing.h"

#include <math.h>

enum { elements = 5, checked = 3 };

/* Exact in float32; the gradient at step t is first[i] + slope[i]·t. */
static const double start[elements] = {1, -2, 0.5, 3, -0.75};
static const double first[elements] = {0.5, -0.25, 0, 1, 0};
static const double slope[elements] = {0.125, 0.0625, -0.5, -0.25, 0};

/* One of the configurations, and the parameters after some steps. */
typedef struct run {
    const rapt_sgd_config *sgd;
    const rapt_adam_config *adam, *adamw;
    const rapt_rmsprop_config *rmsprop;
    const rapt_adagrad_config *adagrad;
    const rapt_lion_config *lion;
    double expected[checked][elements];
} run;

static const int steps[checked] = {1, 2, 7};

static const run runs[] = {
    {.sgd = &(rapt_sgd_config){0},
     .expected = {{0.99375, -1.998125, 0.505, 2.9925, -0.75},
                  {0.9862500000000001, -1.996875, 0.515, 2.9875000000000003, -0.75},
                  {0.93, -2.0, 0.6400000000000001, 3.0, -0.75}}},
    {.sgd = &(rapt_sgd_config){.learning_rate = 0.1, .weight_decay = 0.25},
     .expected = {{0.9125, -1.93125, 0.5375, 2.85, -0.73125},
                  {0.8146875, -1.87046875, 0.6240625, 2.7287500000000002, -0.7129687499999999},
                  {0.17973870725402832, -1.679292817121887, 1.7509400897308351, 2.52921330098877,
                   -0.6281936951248168}}},
    {.sgd = &(rapt_sgd_config){.learning_rate = 0.1, .momentum = 0.9},
     .expected = {{0.9375, -1.98125, 0.55, 2.925, -0.75},
                  {0.80625, -1.951875, 0.6950000000000001, 2.8074999999999997, -0.75},
                  {-1.0595799375000003, -1.87745391875, 4.12897555, 2.5098156749999996, -0.75}}},
    {.sgd = &(rapt_sgd_config){.learning_rate = 0.1, .momentum = 0.9, .dampening = 0.5, .weight_decay = 0.125},
     .expected = {{0.925, -1.95625, 0.54375, 2.8875, -0.740625},
                  {0.81421875, -1.8983984375, 0.6297265624999999, 2.743203125, -0.72755859375},
                  {-0.3312023190731213, -1.5542065249836656, 2.319641582702586, 2.0717450495907355,
                   -0.6217621575515889}}},
    {.sgd = &(rapt_sgd_config){.learning_rate = 0.1, .momentum = 0.9, .nesterov = true},
     .expected = {{0.88125, -1.964375, 0.595, 2.8575, -0.75},
                  {0.688125, -1.9254375, 0.8254999999999999, 2.70175, -0.75},
                  {-1.5536219437500005, -1.889708526875, 5.166077995, 2.5588341075, -0.75}}},
    {.adam = &(rapt_adam_config){0},
     .expected = {{0.999000000016, -1.9990000000533332, 0.50099999998, 2.9990000000133334, -0.75},
                  {0.9979993869159167, -1.9980296479861392, 0.501965181993615, 2.998029647900463, -0.75},
                  {0.9929478721569824, -1.9960467394024937, 0.5068142772174752, 2.996046739193672, -0.75}}},
    {.adam =
         &(rapt_adam_config){.learning_rate = 0.1, .beta1 = 0.5, .beta2 = 0.75, .epsilon = 0.125, .weight_decay = 0.25},
     .expected = {{0.9125, -1.9153846153846155, 0.575, 2.9076923076923076, -0.69},
                  {0.8234940082637555, -1.8329171039933672, 0.6601426112945541, 2.818384244965008, -0.6316276800116929},
                  {0.35243826636124803, -1.4926998741242312, 1.1651948186216325, 2.531520924149883,
                   -0.3760198487160049}}},
    {.adam = &(rapt_adam_config){.learning_rate = 0.1, .beta1 = RAPT_ZERO},
     .expected = {{0.9000000016, -1.900000005333333, 0.599999998, 2.9000000013333334, -0.75},
                  {0.7913620078766789, -1.821546008411273, 0.7264721239219532, 2.8215460007182553, -0.75},
                  {0.16522062413993746, -2.0954572527028072, 1.4723391226187696, 3.095457263028147, -0.75}}},
    {.adamw = &(rapt_adam_config){0},
     .expected = {{0.998990000016, -1.9989800000533333, 0.5009949999800001, 2.9989700000133337, -0.7499925000000001},
                  {0.9979793970159166, -1.997989658186139, 0.5019551720436153, 2.9979696582004633, -0.7499850000750001},
                  {0.9928780848640648, -1.9959069200481743, 0.5067790737703554, 2.9958369219393277,
                   -0.749947501574974}}},
    {.adamw = &(rapt_adam_config){.learning_rate = 0.1, .weight_decay = 0.5},
     .expected = {{0.8500000016, -1.800000005333333, 0.574999998, 2.750000001333333, -0.7124999999999999},
                  {0.7074386915116779, -1.612964798347276, 0.6427681994614906, 2.515464789979596, -0.6768749999999999},
                  {0.09009337783350552, -1.0818059642302107, 0.9364904008980725, 1.7801432434712825,
                   -0.5237529720703121}}},
    {.adamw = &(rapt_adam_config){.weight_decay = RAPT_ZERO},
     .expected = {{0.999000000016, -1.9990000000533332, 0.50099999998, 2.9990000000133334, -0.75},
                  {0.9979993869159167, -1.9980296479861392, 0.501965181993615, 2.998029647900463, -0.75},
                  {0.9929478721569824, -1.9960467394024937, 0.5068142772174752, 2.996046739193672, -0.75}}},
    {.rmsprop = &(rapt_rmsprop_config){0},
     .expected = {{0.9000000159999975, -1.900000053333305, 0.599999980000004, 2.9000000133333317, -0.75},
                  {0.8230199880092811, -1.844337044121143, 0.6895322681911417, 2.84433698553094, -0.75},
                  {0.533774123626358, -1.9478741760518299, 1.0337189044342117, 2.9478741433427547, -0.75}}},
    {.rmsprop = &(rapt_rmsprop_config){.learning_rate = 0.1, .alpha = 0.5, .epsilon = 0.125, .weight_decay = 0.25},
     .expected = {{0.8823479477525922, -1.887504565445005, 0.5961131723051123, 2.8734882021255452, -0.6772077938642145},
                  {0.7789725411053386, -1.7983293351068488, 0.7087852630881011, 2.7773445526107947,
                   -0.6161000280535902},
                  {0.2875196980587189, -1.4810310217872626, 1.2663159531931618, 2.5791806430976476,
                   -0.37179520929881416}}},
    {.rmsprop = &(rapt_rmsprop_config){.momentum = 0.5},
     .expected = {{0.9000000159999975, -1.900000053333305, 0.599999980000004, 2.9000000133333317, -0.75},
                  {0.7730199960092798, -1.7943370707877957, 0.7395322581911437, 2.794336992197606, -0.75},
                  {0.17523037913160694, -1.813287479816355, 1.4407589859375651, 2.813287394298974, -0.75}}},
    {.rmsprop = &(rapt_rmsprop_config){.centered = true},
     .expected = {{0.8994962346356924, -1.899496272346104, 0.600503761323905, 2.8994962319420905, -0.75},
                  {0.8217450943258496, -1.8432929936743163, 0.6908490214968616, 2.843292934317445, -0.75},
                  {0.52564513766878, -1.946789640361589, 1.041969201863718, 2.9467896068468327, -0.75}}},
    {.rmsprop = &(rapt_rmsprop_config){.alpha = 0.75, .momentum = 0.5, .weight_decay = 0.25, .centered = true},
     .expected = {{0.9769059898419388, -1.9769059900081725, 0.5230940093453629, 2.9769059895879706, -0.726905992076859},
                  {0.9441822926195593, -1.946156702200352, 0.5585176995233939, 2.946975314712489, -0.6954759192897727},
                  {0.7060607527728687, -1.7773486695029324, 0.801463891448051, 2.836819348900901,
                   -0.4920834004265034}}},
    {.adagrad = &(rapt_adagrad_config){0},
     .expected = {{0.9900000000016, -1.9900000000053333, 0.509999999998, 2.9900000000013334, -0.75},
                  {0.9823177872064132, -1.9844529980455425, 0.5189442719071992, 2.9844529980396963, -0.75},
                  {0.9535934554568679, -1.9946201562931172, 0.5532128640249286, 2.9946201562897627, -0.75}}},
    {.adagrad = &(rapt_adagrad_config){.learning_rate = 0.5,
                                       .learning_rate_decay = 0.25,
                                       .initial_accumulator = 0.5,
                                       .epsilon = 0.125,
                                       .weight_decay = 0.25},
     .expected = {{0.65, -1.6906590362884601, 0.7026171589037318, 2.579434314465545, -0.640548497247523},
                  {0.41803961154388597, -1.5158388340486433, 0.9614410834882012, 2.3654538708635804,
                   -0.5672479495114459},
                  {-0.19865931021653166, -1.237356647389265, 1.7951755271815608, 2.1603780134130934,
                   -0.39127291181921364}}},
    {.lion = &(rapt_lion_config){0},
     .expected = {{0.9999, -1.9999, 0.5001, 2.9999, -0.75},
                  {0.9998, -1.9998, 0.5002, 2.9997999999999996, -0.75},
                  {0.9993000000000001, -1.9999, 0.5006999999999999, 2.9999, -0.75}}},
    {.lion = &(rapt_lion_config){.learning_rate = 0.1, .beta1 = 0.5, .beta2 = 0.75, .weight_decay = 0.25},
     .expected = {{0.875, -1.8499999999999999, 0.5875, 2.8249999999999997, -0.73125},
                  {0.753125, -1.7037499999999997, 0.6728125, 2.6543749999999995, -0.7129687499999999},
                  {0.18795796749877927, -1.6106745609985351, 1.0684294227508544, 2.44826615449829,
                   -0.6281936951248167}}},
};

enum { run_count = sizeof runs / sizeof *runs };

static rapt_optimizer *optimizer_of(const run *r)
{
    return r->sgd       ? rapt_sgd_new(NULL, r->sgd)
           : r->adam    ? rapt_adam_new(NULL, r->adam)
           : r->adamw   ? rapt_adamw_new(NULL, r->adamw)
           : r->rmsprop ? rapt_rmsprop_new(NULL, r->rmsprop)
           : r->lion    ? rapt_lion_new(NULL, r->lion)
                        : rapt_adagrad_new(NULL, r->adagrad);
}

/* Every other element of a tensor of twice the size. */
static rapt_tensor *strided_parameter(rapt_dtype dtype)
{
    rapt_tensor *pairs = rapt_zeros(dtype, RAPT_SHAPE(elements, 2));
    rapt_tensor *tensor = rapt_select(pairs, 1, 1);
    cr_assert(rapt_copy(tensor, rapt_from(RAPT_FLOAT64, RAPT_SHAPE(elements), start)), "%s", rapt_error());
    return rapt_require_gradient(tensor);
}

static void check_run(int index, rapt_dtype dtype, bool strided, double tolerance)
{
    RAPT_SCOPE;
    rapt_tensor *p = strided ? strided_parameter(dtype) : parameter_from(dtype, elements, start);
    rapt_optimizer *optimizer = optimizer_of(&runs[index]);
    cr_assert(rapt_optimizer_add(optimizer, "p", p), "%s", rapt_error());
    for (int t = 1, next = 0; next < checked; t++) {
        double values[elements];
        for (int i = 0; i < elements; i++) values[i] = first[i] + slope[i] * t;
        rapt_tensor *gradient = rapt_empty(dtype, RAPT_SHAPE(elements));
        rapt_copy(gradient, rapt_from(RAPT_FLOAT64, RAPT_SHAPE(elements), values));
        give_gradient(p, gradient);
        cr_assert(rapt_optimizer_step(optimizer), "%s", rapt_error());
        if (t != steps[next]) continue;
        for (int i = 0; i < elements; i++) {
            double expected = runs[index].expected[next][i];
            cr_expect(fabs(element(p, i) - expected) <= tolerance * (1 + fabs(expected)),
                      "run %d, %s, step %d, element %d: %.17g, not %.17g", index, rapt_dtype_name(dtype), t, i,
                      element(p, i), expected);
        }
        next++;
    }
    rapt_optimizer_free(optimizer);
    expect_no_error();
}

Test(optimizer_formulas, float64)
{
    for (int i = 0; i < run_count; i++) check_run(i, RAPT_FLOAT64, false, 1e-14);
}

Test(optimizer_formulas, float32)
{
    for (int i = 0; i < run_count; i++) check_run(i, RAPT_FLOAT32, false, 2e-6);
}

Test(optimizer_formulas, strided)
{
    for (int i = 0; i < run_count; i++) {
        check_run(i, RAPT_FLOAT64, true, 1e-14);
        check_run(i, RAPT_FLOAT32, true, 2e-6);
    }
}

/* Equal gradients have no variance, and rounding must not make it a negative one. */
Test(optimizer_formulas, centered_rmsprop_of_constant_gradients_stays_finite)
{
    RAPT_SCOPE;
    rapt_tensor *p = rapt_require_gradient(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(64)));
    rapt_optimizer *optimizer = rapt_rmsprop_new(NULL, &(rapt_rmsprop_config){.alpha = 0.5, .centered = true});
    rapt_optimizer_add(optimizer, "p", p);
    double values[64];
    for (int i = 0; i < 64; i++) values[i] = 0.1 * i + 0.37;
    for (int t = 0; t < 100; t++) {
        rapt_tensor *gradient = rapt_empty_like(p);
        rapt_copy(gradient, rapt_from(RAPT_FLOAT64, RAPT_SHAPE(64), values));
        give_gradient(p, gradient);
        cr_assert(rapt_optimizer_step(optimizer), "%s", rapt_error());
    }
    for (int i = 0; i < 64; i++) cr_expect(isfinite(element(p, i)), "element %d is %g", i, element(p, i));
    rapt_optimizer_free(optimizer);
}
