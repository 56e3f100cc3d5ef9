"""Training steps in PyTorch, as tests/bench/training.c has them."""
import torch


def make(phase, function, batch, parameters, optimizer):
    """The phase as a function without arguments: function(*batch) is the loss."""
    parameters = list(parameters)

    def forward():
        with torch.no_grad():
            function(*batch)

    def step():
        optimizer.zero_grad(set_to_none=True)
        function(*batch).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1)
        optimizer.step()
    return {"fwd": forward, "step": step}[phase]
