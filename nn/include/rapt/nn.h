/* Everything of the folder nn, in one header. */
#ifndef RAPT_NN_H
#define RAPT_NN_H

#include <rapt/attention.h>
#include <rapt/fields.h>
#include <rapt/generate.h>
#include <rapt/gpt.h>
#include <rapt/initialize.h>
#include <rapt/layers.h>
#include <rapt/mask.h>
#include <rapt/module.h>
#include <rapt/module_values.h>
#include <rapt/module_views.h>
#include <rapt/multi_head.h>
#include <rapt/positions.h>
#include <rapt/recurrent.h>
#include <rapt/ring.h>
#include <rapt/score_modification.h>
#include <rapt/scoring.h>
#include <rapt/seq2seq.h>
#include <rapt/transformer.h>

#endif
