"""The rows of bench_ops and bench_tiny_ops in PyTorch."""
import torch
import torch.nn.functional as F
from torch import nn

LINES, COLUMNS, WORDS, CLASSES = 4096, 1024, 50000, 10000


def product(rows, columns, others):
    weight = torch.randn(columns, others)
    return lambda x: torch.mm(x, weight), torch.randn(rows, columns), [weight]


def affine(rows, columns, others):
    weight = torch.randn(others, columns)
    return lambda x: F.linear(x, weight), torch.randn(rows, columns), [weight]


def function_of(name):
    return lambda: (getattr(torch, name), torch.randn(LINES, COLUMNS), [])


def add():
    other = torch.randn(LINES, COLUMNS)
    return lambda x: x + other, torch.randn(LINES, COLUMNS), []


def gelu():
    return lambda x: F.gelu(x, approximate="tanh"), torch.randn(LINES, COLUMNS), []


def softmax():
    return lambda x: torch.softmax(x, -1), torch.randn(LINES, COLUMNS), []


def masked_softmax():
    """The mask is made before: PyTorch has nothing that takes lengths."""
    hidden = torch.arange(COLUMNS) >= torch.randint(1, COLUMNS + 1, (LINES,))[:, None]
    return lambda x: torch.softmax(x.masked_fill(hidden, -1e6), -1), torch.randn(LINES, COLUMNS), []


def layer_norm():
    weight, bias = torch.ones(COLUMNS), torch.zeros(COLUMNS)
    return lambda x: F.layer_norm(x, (COLUMNS,), weight, bias), torch.randn(LINES, COLUMNS), [weight, bias]


def dropout():
    return lambda x: F.dropout(x, 0.1, True), torch.randn(LINES, COLUMNS), []


def embedding():
    indices = torch.randint(0, WORDS, (LINES,))
    return lambda table: F.embedding(indices, table), torch.randn(WORDS, COLUMNS), []


def cross_entropy():
    targets = torch.randint(0, CLASSES, (LINES,))
    return lambda x: F.cross_entropy(x, targets), torch.randn(LINES, CLASSES), []


def convolution(items, channels, side):
    weight, bias = torch.randn(channels, channels, 3, 3), torch.randn(channels)
    return lambda x: F.conv2d(x, weight, bias, padding=1), torch.randn(items, channels, side, side), [weight, bias]


def chain():
    a, c = torch.randn(16), torch.full((16,), 1.01)

    def function(x):
        for _ in range(334):
            x = torch.tanh((x + a) * c)
        return x
    return function, torch.randn(16), []


# A function of one tensor, that tensor, and what else wants a gradient.
OPS = {"product_1024": lambda: product(1024, 1024, 1024), "product_2048": lambda: product(2048, 2048, 2048),
       "product_1024_768_3072": lambda: affine(1024, 768, 3072), "product_256_768_2304": lambda: affine(256, 768, 2304),
       "add": add, "tanh": function_of("tanh"), "exp": function_of("exp"), "gelu": gelu, "softmax": softmax,
       "masked_softmax": masked_softmax, "layer_norm": layer_norm, "dropout": dropout, "embedding": embedding,
       "cross_entropy": cross_entropy, "convolution_64": lambda: convolution(16, 64, 32),
       "convolution_256": lambda: convolution(16, 256, 8), "chain_1002": chain}
ROWS = OPS.keys() | {"xor_2_8_1"}


def make_loop(compiled):
    """1000 steps of the smallest training loop."""
    x = torch.tensor([[0., 0], [0, 1], [1, 0], [1, 1]])
    target = torch.tensor([[0.], [1], [1], [0]])
    model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = compiled(lambda: F.mse_loss(model(x), target))

    def steps():
        for _ in range(1000):
            optimizer.zero_grad(set_to_none=True)
            loss().backward()
            optimizer.step()
    return steps


def make(row, phase, compiled, is_plain):
    if row == "xor_2_8_1":
        return make_loop(compiled)
    function, x, others = OPS[row]()
    function = compiled(function)
    leaves = [leaf.requires_grad_() for leaf in [x] + others]
    y = function(x)
    gradient = torch.randn_like(y) if y.dim() > 0 else None  # a loss's is 1, as in training

    def forward():
        with torch.no_grad():
            function(x)

    def record():
        function(x)

    def forward_and_backward():
        for leaf in leaves:
            leaf.grad = None
        function(x).backward(gradient)
    return {"fwd": forward, "record": record, "fwd_bwd": forward_and_backward}[phase]
