"""Optimizers that PyTorch 2.6 does not have, by the formulas of their papers."""
import math

import torch


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, program 1."""
    def __init__(self, parameters, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(parameters, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            rate, (beta1, beta2) = group["lr"], group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                m = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                old, new = beta1 * m, (beta1 - 1) * p.grad
                update = torch.gt(old, new).to(p.dtype) - torch.lt(old, new).to(p.dtype)  # the sign of old - new
                p.copy_(p - rate * (update + group["weight_decay"] * p))
                m.copy_(beta2 * m + (1 - beta2) * p.grad)


def orthogonal(g, iterations, epsilon):
    """Newton and Schulz's iteration with Jordan's coefficients."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g / max(g.norm().item(), epsilon)
    for _ in range(iterations):
        if g.shape[0] <= g.shape[1]:
            x = a * x + (b * x @ x.T + c * x @ x.T @ x @ x.T) @ x
        else:
            x = a * x + x @ (b * x.T @ x + c * x.T @ x @ x.T @ x)
    return x


class Muon(torch.optim.Optimizer):
    """Jordan et al. 2024, with PyTorch 2.9's options; what is no matrix goes to AdamW."""
    def __init__(self, parameters, lr=1e-3, momentum=0.95, epsilon=1e-7, weight_decay=0.1, nesterov=True,
                 match_rms=False, adamw_lr=1e-3, adamw_decay=0.01):
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay})
        self.first = lr
        self.momentum, self.epsilon, self.nesterov, self.match_rms = momentum, epsilon, nesterov, match_rms
        self.adamw = {}
        self.adamw_lr, self.adamw_decay = adamw_lr, adamw_decay

    def step_adamw(self, p, group, is_own):
        if p not in self.adamw:
            self.adamw[p] = torch.optim.AdamW([p])
        settings = self.adamw[p].param_groups[0]
        settings["lr"] = group["lr"] if is_own else self.adamw_lr * group["lr"] / self.first
        settings["weight_decay"] = group["weight_decay"] if is_own else self.adamw_decay
        self.adamw[p].step()

    @torch.no_grad()
    def step(self):
        for number, group in enumerate(self.param_groups):
            for p in group["params"]:
                if p.grad is None or p.numel() == 0:
                    continue
                if p.dim() != 2:
                    self.step_adamw(p, group, number > 0)
                    continue
                v = self.state[p].setdefault("momentum_buffer", torch.zeros_like(p))
                v.copy_(self.momentum * v + (1 - self.momentum) * p.grad)
                ahead = self.momentum * v + (1 - self.momentum) * p.grad if self.nesterov else v
                rows, columns = p.shape
                scale = 0.2 * math.sqrt(max(rows, columns)) if self.match_rms else math.sqrt(max(1, rows / columns))
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.sub_(group["lr"] * scale * orthogonal(ahead, 5, self.epsilon))
