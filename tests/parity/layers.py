"""Cases of the basic and recurrent layers, and of activations."""
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import rnn

from cases import family, integers, normal

# --- layers.safetensors ---
add = family("layers")
add("linear", nn.Linear(5, 3), x=normal(2, 4, 5))
add("linear_no_bias", nn.Linear(5, 3, bias=False), x=normal(4, 5))
add("embedding", nn.Embedding(7, 4), tokens=integers(0, 7, 3, 5))
add("layer_norm", nn.LayerNorm(6), x=normal(2, 3, 6))
add("sequential", nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)), x=normal(5, 4))

for name, function in [
    ("relu", F.relu), ("gelu", F.gelu), ("gelu_tanh", lambda x: F.gelu(x, approximate="tanh")), ("silu", F.silu),
    ("tanh", torch.tanh), ("sigmoid", torch.sigmoid), ("erf", torch.erf),
    ("softmax", lambda x: F.softmax(x, -1)), ("log_softmax", lambda x: F.log_softmax(x, -1)),
]:
    add(name, forward=lambda module, x, function=function: function(2 * x), x=normal(6, 7))

add("rms_norm", nn.RMSNorm(6, eps=1e-6), x=normal(2, 3, 6))



def run_pools(module, x):
    mean = (3, 2), (2, 1), (1, 0), True
    return {"max": F.max_pool2d(x, (3, 2), 2, 1, (1, 2), True), "mean": F.avg_pool2d(x, *mean),
            "inside": F.avg_pool2d(x, *mean, False)}


add("conv1d", nn.Conv1d(4, 6, 3, 2, 3, 2, 2), x=normal(2, 4, 7))
add("conv2d", nn.Conv2d(3, 5, (2, 3), (1, 2), (1, 2), (2, 1), bias=False), x=normal(2, 3, 4, 6))
add("pools", None, run_pools, x=normal(2, 3, 6, 7))


def run_batch_norm(module, x):
    y = module(x)
    return {"y": y, "running_mean": module.running_mean, "running_var": module.running_var,
            "batches": module.num_batches_tracked}


TRACKED = {"num_batches_tracked": np.array(5)}
add("batch_norm", nn.BatchNorm1d(3), run_batch_norm, weights=TRACKED, x=normal(6, 3))
add("batch_norm_images", nn.BatchNorm2d(3), run_batch_norm, weights=TRACKED, x=normal(2, 3, 4, 5))
add("batch_norm_evaluation", nn.BatchNorm1d(3).eval(), run_batch_norm, weights=TRACKED, x=normal(2, 3, 4))

# --- recurrent.safetensors ---
add = family("recurrent")
gru, lstm = nn.GRU(3, 5, num_layers=2), nn.LSTM(3, 5, num_layers=2)
two_grus, two_lstms = (kind(3, 5, num_layers=2, bidirectional=True) for kind in (nn.GRU, nn.LSTM))
LENGTHS = {"lengths": np.array([2, 6, 3])}


def through(module, x, state, lengths):
    if lengths is None:
        return module(x, state)
    y, final = module(rnn.pack_padded_sequence(x, lengths, enforce_sorted=False), state)
    return rnn.pad_packed_sequence(y)[0], final


def run_gru(module, x, h=None, lengths=None):
    y, final = through(module, x, h, lengths)
    return {"y": y, "final": final}


def run_lstm(module, x, h=None, c=None, lengths=None):
    y, (final, final_cell) = through(module, x, None if h is None else (h, c), lengths)
    return {"y": y, "final": final, "final_cell": final_cell}


add("gru", gru, run_gru, x=normal(6, 2, 3))
add("gru_state", gru, run_gru, x=normal(6, 2, 3), h=normal(2, 2, 5))
add("gru_bidirectional", two_grus, run_gru, x=normal(6, 2, 3), h=normal(4, 2, 5))
add("gru_padded", gru, run_gru, LENGTHS, x=normal(6, 3, 3))
add("gru_bidirectional_padded", two_grus, run_gru, LENGTHS, x=normal(6, 3, 3), h=normal(4, 3, 5))
add("lstm", lstm, run_lstm, x=normal(6, 2, 3))
add("lstm_state", lstm, run_lstm, x=normal(6, 2, 3), h=normal(2, 2, 5), c=normal(2, 2, 5))
add("lstm_bidirectional", two_lstms, run_lstm, x=normal(6, 2, 3))
add("lstm_bidirectional_padded", two_lstms, run_lstm, LENGTHS, x=normal(6, 3, 3), h=normal(4, 3, 5), c=normal(4, 3, 5))
