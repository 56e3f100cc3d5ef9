"""Cases of the optimizers and of gradient clipping: steps on a small problem, the losses and the weights after them."""
import torch
from torch import nn
from torch.nn import functional as F

from cases import family, normal
from paper_optimizers import Lion, Muon

add = family("optimizers")
STEPS, LONG = 5, 100


def train(make, steps=STEPS):
    """Losses of the steps, and all weights after the last."""
    def forward(module, x, target):
        optimizer, losses = make(module.parameters()), []
        for _ in range(steps):
            loss = F.mse_loss(module(x), target)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            losses.append(loss.detach())
        return {"losses": torch.stack(losses), **{name: value.detach() for name, value in module.named_parameters()}}
    return forward


def problem():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


optim = torch.optim
for name, make in [
    ("sgd", lambda p: optim.SGD(p, lr=0.1, weight_decay=0.01)),
    ("sgd_momentum", lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.2)),
    ("sgd_nesterov", lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True)),
    ("adam", lambda p: optim.Adam(p, lr=0.02)),
    ("adam_decay", lambda p: optim.Adam(p, lr=0.02, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1)),
    ("adamw", lambda p: optim.AdamW(p, lr=0.02)),
    ("rmsprop", lambda p: optim.RMSprop(p, lr=0.01)),
    ("rmsprop_centered", lambda p: optim.RMSprop(p, lr=0.01, alpha=0.9, momentum=0.5, centered=True, weight_decay=0.1)),
    ("adagrad", lambda p: optim.Adagrad(p, lr=0.05)),
    ("adagrad_decay", lambda p: optim.Adagrad(p, lr=0.05, lr_decay=0.1, initial_accumulator_value=0.5,
                                              weight_decay=0.1)),
]:
    add(name, problem(), train(make), constants={"x": normal(6, 3), "target": normal(6, 2)})

for name, make in [
    ("adafactor", lambda p: optim.Adafactor(p, lr=0.02)),
    ("adafactor_decay", lambda p: optim.Adafactor(p, lr=0.005, beta2_decay=-0.5, eps=(1e-3, 0.1), d=2.0,
                                                  weight_decay=0.05)),
    ("lion", lambda p: Lion(p, lr=0.01)),
    ("lion_decay", lambda p: Lion(p, lr=0.005, betas=(0.8, 0.95), weight_decay=0.2)),
    ("muon", lambda p: Muon(p, lr=0.004, adamw_lr=0.01)),
    ("muon_heavy_ball", lambda p: Muon(p, lr=0.03, momentum=0.8, weight_decay=0.01, nesterov=False, match_rms=True)),
]:
    add(name, problem(), train(make, LONG), constants={"x": normal(6, 3), "target": normal(6, 2)})


def clip(limit):
    """The norm before clipping; the clipped gradients stay with the weights. They are g · limit / norm, as in the
    paper: PyTorch clips to a little less, by limit / (norm + 10⁻⁶)."""
    def forward(module, x, target):
        F.mse_loss(module(x), target).backward()
        norm = nn.utils.clip_grad_norm_(module.parameters(), float("inf"))
        for parameter in module.parameters():
            parameter.grad *= limit / max(norm, limit)
        return {"norm": norm.detach()}
    return forward


add("clip", problem(), clip(0.1), constants={"x": normal(6, 3), "target": normal(6, 2)})
add("clip_not_reached", problem(), clip(100), constants={"x": normal(6, 3), "target": normal(6, 2)})
