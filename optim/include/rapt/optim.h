/* Everything of the folder optim, in one header. */
#ifndef RAPT_OPTIM_H
#define RAPT_OPTIM_H

#include <rapt/average.h>
#include <rapt/checkpoint.h>
#include <rapt/loader.h>
#include <rapt/metrics.h>
#include <rapt/optimizer.h>
#include <rapt/progress.h>
#include <rapt/schedule.h>
#include <rapt/watch.h>

#endif
