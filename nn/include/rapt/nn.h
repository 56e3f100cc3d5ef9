/* Everything of the folder nn, in one header. */
#ifndef RAPT_NN_H
#define RAPT_NN_H

#include <rapt/attention.h>
#include <rapt/initialize.h>
#include <rapt/layers.h>
#include <rapt/module.h>
#include <rapt/recurrent.h>
#include <rapt/seq2seq.h>

#endif
