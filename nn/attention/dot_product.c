/* The scaled dot product as a scoring function: a(q, k) = qᵀk / √d. */
#include <rapt/attention.h>

#include <math.h>

static rapt_tensor *score(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *keys)
{
    (void)scoring;
    /* q kᵀ / √d, the scale on the smaller side */
    rapt_tensor *scaled = rapt_mul_scalar(queries, 1 / sqrt((double)rapt_size(queries, -1)));
    return rapt_matmul(scaled, rapt_transpose(keys, -2, -1));
}

static const rapt_module_class kind = {.name = "ScaledDotProduct"};

rapt_scoring *rapt_scaled_dot_product_scoring_new(void)
{
    rapt_scoring *scoring = rapt_module_new(sizeof *scoring, &kind);
    if (scoring) scoring->score = score;
    return scoring;
}

rapt_attention *rapt_dot_product_attention_new(double dropout)
{
    return rapt_attention_new(rapt_scaled_dot_product_scoring_new(), dropout);
}
