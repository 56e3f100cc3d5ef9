"""Cases of the basic and recurrent layers, and of activations."""
import torch
from torch import nn
from torch.nn import functional as F

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

# --- recurrent.safetensors ---
add = family("recurrent")
gru, lstm = nn.GRU(3, 5, num_layers=2), nn.LSTM(3, 5, num_layers=2)


def run_gru(module, x, h=None):
    y, final = module(x, h)
    return {"y": y, "final": final}


def run_lstm(module, x, h=None, c=None):
    y, (final, final_cell) = module(x, None if h is None else (h, c))
    return {"y": y, "final": final, "final_cell": final_cell}


add("gru", gru, run_gru, x=normal(6, 2, 3))
add("gru_state", gru, run_gru, x=normal(6, 2, 3), h=normal(2, 2, 5))
add("lstm", lstm, run_lstm, x=normal(6, 2, 3))
add("lstm_state", lstm, run_lstm, x=normal(6, 2, 3), h=normal(2, 2, 5), c=normal(2, 2, 5))
