/* How batch normalisation goes through the numbers of its channels. */
#ifndef RAPT_OPS_BATCH_CHANNELS_H
#define RAPT_OPS_BATCH_CHANNELS_H

#include "tensor/reduce.h"

/* How the numbers of a channel lie: in lines, each dense. Where each would be one number, channels lie side by side,
 * and rows of them are worked on; where lines would be short, channels are put first. */
typedef struct rapt_channels {
    int64_t count, lines, n;     /* n numbers a line */
    int64_t stride, line_stride; /* of channels and of a channel's lines, in elements */
    bool come_first, side_by_side;
} rapt_channels;

typedef struct rapt_channels_work rapt_channels_work;

/* y or dx in steps: x, then what each elementwise loop makes of the result so far and of a channel's number, or g. */
enum { rapt_most_numbers = 4, rapt_most_steps = 5, rapt_of_g = -1 };

typedef struct rapt_channels_steps {
    void (*find)(const rapt_channels_work *, int64_t, double *); /* a channel's numbers, */
    int numbers, count;                                          /* so many; of steps */
    rapt_loop *const *loops[rapt_most_steps];
    int operands[rapt_most_steps]; /* a number's place, or rapt_of_g */
} rapt_channels_steps;

struct rapt_channels_work {
    rapt_channels channels;
    double epsilon;
    const rapt_tensor *g, *x;
    const double *weight, *bias; /* of each channel; NULL: there are none */
    double *mean, *scale;
    rapt_tensor *variance, *average; /* of x's dtype, as the caller gets them */
    rapt_tensor *y;                  /* or dx */
    rapt_tensor *dweight, *dbias;
    rapt_accumulator *sums;          /* backward: Σ g of each channel, and Σ (x − center) g */
    const rapt_channels_steps *side; /* of channels side by side, */
    char *numbers;                   /* whose numbers stand here, those of whole rows again and again: */
    int64_t width;                   /* so many elements of them */
};

rapt_channels rapt_channels_of(const rapt_tensor *x);

/* Σ over a channel of a tensor that lies as x does; or over all channels side by side, false after an error. */
double rapt_channels_fold(const rapt_channels_work *w, const rapt_fold *fold, const rapt_tensor *tensor,
                          int64_t channel, double center);
bool rapt_channels_fold_side_by_side(const rapt_channels_work *w, const char *op, const rapt_fold *fold,
                                     const rapt_tensor *tensor, const rapt_accumulator *centers,
                                     rapt_accumulator *sums);

/* y or dx of a channel; or of all channels side by side, false after an error. */
void rapt_channels_run(const rapt_channels_work *w, const rapt_channels_steps *steps, int64_t channel);
bool rapt_channels_run_side_by_side(rapt_channels_work *w, const char *op, const rapt_channels_steps *steps);

#endif
