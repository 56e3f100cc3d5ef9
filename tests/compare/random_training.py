"""Training of a program's inputs by PyTorch's optimizers."""
import torch

from expected import Expected
from kinks import Kinks, Rejected
from paper_optimizers import Lion, Muon
from program import Disturb, line

optim = torch.optim


def draw_optimizer(p):
    """What the line "train" says, and how PyTorch makes it."""
    zero_or = lambda low, high, chance=0.5: p.real(low, high) if p.chance(chance) else 0.0
    kind = p.one(["sgd", "adam", "adamw", "rmsprop", "adagrad", "adafactor", "lion", "muon"])
    rate, decay = p.real(0.001, 0.05), zero_or(0.01, 0.2)
    words = {"kind": kind, "rate": rate, "decay": decay}
    if kind == "sgd":
        nesterov = p.chance(0.3)
        momentum = p.real(0.5, 0.95) if nesterov else zero_or(0.5, 0.95)
        dampening = 0.0 if nesterov or not momentum else zero_or(0.1, 0.5)
        words.update(momentum=momentum, dampening=dampening, nesterov=nesterov)
        return words, lambda groups: optim.SGD(groups, rate, momentum, dampening, decay, nesterov)
    if kind == "adafactor":
        clip, exponent, least = p.real(1, 3), p.real(0.3, 0.9), (p.one([1e-6, 1e-3]), p.one([1e-3, 0.1]))
        words.update(clip=clip, beta2_decay=exponent, epsilon1=least[0], epsilon2=least[1])
        return words, lambda groups: optim.Adafactor(groups, rate, -exponent, least, clip, decay)
    if kind == "lion":
        words["beta1"], words["beta2"] = betas = p.real(0.5, 0.95), p.real(0.9, 0.999)
        return words, lambda groups: Lion(groups, rate, betas, decay)
    if kind == "muon":
        momentum, adamw_rate = p.real(0.5, 0.95), p.real(0.001, 0.05)
        heavy_ball, match_rms = p.chance(0.3), p.chance(0.3)
        words.update(momentum=momentum, heavy_ball=heavy_ball, match_rms=match_rms, adamw_rate=adamw_rate,
                     epsilon=1e-3, adamw_decay=decay)
        return words, lambda groups: Muon(groups, rate, momentum, 1e-3, decay, not heavy_ball, match_rms, adamw_rate,
                                          decay)
    words["epsilon"] = epsilon = p.one([1e-8, 1e-3])
    if kind in ("adam", "adamw"):
        words["beta1"], words["beta2"] = betas = p.real(0.5, 0.95), p.real(0.9, 0.999)
        make = optim.Adam if kind == "adam" else optim.AdamW
        return words, lambda groups: make(groups, rate, betas, epsilon, decay)
    if kind == "rmsprop":
        alpha, momentum, centered = p.real(0.8, 0.99), zero_or(0.3, 0.9), p.chance(0.4)
        words.update(alpha=alpha, momentum=momentum, centered=centered)
        return words, lambda groups: optim.RMSprop(groups, rate, alpha, epsilon, decay, momentum, centered)
    rate_decay, initial = zero_or(0.01, 0.3), zero_or(0.1, 1)
    words.update(rate_decay=rate_decay, initial=initial)
    return words, lambda groups: optim.Adagrad(groups, rate, rate_decay, decay, initial, epsilon)


def disturb_update(size, leaves, before):
    """A new number may be a small difference of what it was and of an update as large."""
    with torch.no_grad():
        for i, leaf in leaves.items():
            leaf.copy_(Disturb(size).add(leaf, torch.maximum(leaf.abs(), before[i].abs())))


class Training(Expected):
    """The inputs after some steps."""
    def __init__(self, program, roots):
        p = self.program = program
        self.words, self.make = draw_optimizer(p)
        values, self.first = p.run()
        if self.words["kind"] == "adafactor" and any(leaf.numel() == 0 for leaf in self.first.values()):
            raise Rejected("PyTorch 2.6 divides by the number of elements")
        self.words["parameters"] = list(self.first)
        self.words["steps"] = p.between(1, 5)
        if len(self.first) > 1 and p.chance(0.3):
            self.words.update(group=p.one(list(self.first)), group_rate=p.real(0.001, 0.05),
                              group_decay=p.real(0.0, 0.1) if p.chance(0.5) else 0.0)
        if p.chance(0.3):
            self.words["later_rate"] = p.real(0.001, 0.05)
        if p.chance(0.4):
            self.words[p.one(["clip_norm", "clip_value"])] = p.real(0.1, 3)
        super().__init__(program, roots, [], {})

    def run(self, size):
        words, leaves = self.words, {i: leaf.detach().clone().requires_grad_() for i, leaf in self.first.items()}
        group = {"params": [leaves[i] for i in leaves if i == words.get("group")], "lr": words.get("group_rate"),
                 "weight_decay": words.get("group_decay")}
        rest = {"params": [leaves[i] for i in leaves if i != words.get("group")]}
        optimizer = self.make([rest, group] if "group" in words else [rest])
        for step in range(words["steps"]):
            if step == words["steps"] // 2 and "later_rate" in words:
                for each in optimizer.param_groups:
                    each["lr"] *= words["later_rate"] / words["rate"]
            self.differentiate(size, leaves)
            self.clip(leaves)
            before = {i: leaf.detach().clone() for i, leaf in leaves.items()}
            with Kinks() if size == 0 else torch.enable_grad():
                optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            if size:
                disturb_update(size, leaves, before)
        return {("value", i): leaf.detach() for i, leaf in leaves.items()}

    def differentiate(self, size, leaves):
        """The steps of the program once more, on what the inputs are now."""
        with Kinks() if size == 0 else torch.enable_grad():
            values, _ = self.program.run(size, leaves)
        roots = [self.enter(values[root.value], size) for root in self.roots]
        seeds = [torch.tensor(root.numbers) for root in self.roots]  # copies: one may become a leaf's gradient
        torch.autograd.backward(roots, seeds)

    def clip(self, leaves):
        """By the norm as in the paper: PyTorch's limit is a little lower."""
        gradients = [leaf.grad for leaf in leaves.values() if leaf.grad is not None]
        if "clip_norm" in self.words:
            norm, limit = torch.cat([g.flatten() for g in gradients]).norm().item(), self.words["clip_norm"]
            if abs(norm - limit) < 1e-3 * limit:
                raise Rejected("near the limit")
            for g in gradients:
                g *= limit / max(norm, limit)
        if "clip_value" in self.words:
            for g in gradients:
                g.clamp_(-self.words["clip_value"], self.words["clip_value"])

    def write(self, stream):
        stream.write((line("train", **self.words) + "\n").encode())
        super().write(stream)

    def entered(self, name):
        """A parameter was made from no value."""
        return 0.0

    def op_of(self, kind, i):
        return self.words["kind"]
