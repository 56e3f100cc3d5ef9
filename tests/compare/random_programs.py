#!/usr/bin/env python3
"""Writes random programs, with what PyTorch makes of them, to standard output, for compare.c.

    random_programs.py COUNT [FIRST_SEED]
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "parity"))  # for its formulas
try:
    import numpy
    import torch
    if torch.__version__ < (2, 5):
        raise ImportError(f"PyTorch {torch.__version__} lacks what is used here")
except ImportError as error:
    print(f"{sys.executable}: {error}", file=sys.stderr)
    sys.exit(77)

import random_ops  # its `ops` grow with each of the others
import random_shapes
import random_more_ops
TABLE = tuple(random_ops.ops)  # without layers
import random_attention
import random_layers
import random_transformer
from draw import Draw
from expected import Expected, Root, write
from kinks import Rejected
from program import LAYOUTS, Input, is_float
from random_changes import CHANGING, REFUSALS, Changed, change
from random_training import Training

ops = random_ops.ops
OFTEN = 2 * ("score", "masked_softmax", "attention", "multi_head")  # more often than others
TRIES = 60  # of steps for a program


def build(p, names, changes=0.0, refusals=0.0):
    """Random steps, drawn anew where one is rejected; with these chances followed by a change or a refusal."""
    steps, tries = 1 + int(p.random.exponential(1 if p.large else 4)), 0
    while steps > 0:
        mark, tries = p.mark(), tries + 1
        if tries > TRIES:
            raise Rejected("no step fits")
        try:
            ops[p.one(names)](p)
            steps -= 1
            mark = p.mark()
            if p.chance(changes):
                change(p)
            if p.chance(refusals):
                p.one(REFUSALS)(p)
        except (Rejected, RuntimeError, IndexError):  # such shapes do not fit together
            p.forget(mark)


def roots_of(p):
    """What no step uses, and now and then something that a step does."""
    used = {i for item in p.items if not isinstance(item, Input) for i in item.inputs}
    results = [i for i, value in enumerate(p.values) if is_float(value) and value.requires_grad
               and not isinstance(p.maker(i), Input) and (i not in used or p.chance(0.1))]
    return [Root(p, i, p.one([0, 0, 0, 1, 2, 4]) if p.values[i].dim() else 0) for i in results[-6:]]


def is_own(item):
    """Is its result no other value, nor part of one?"""
    return not isinstance(item, Input) and item.gives == 1 and item.name not in ("dropout", "mask_add_biases",
                                                                                 "masked_none")


def graph(p):
    """Values, gradients, and gradients of gradients of any steps."""
    if p.chance(0.02):
        p.grow()
    build(p, (*ops, *OFTEN), refusals=0.04)
    roots = roots_of(p)
    p.words["twice"] = p.chance(0.2)
    inner = [i for i, value in enumerate(p.values) if value.requires_grad and is_own(p.maker(i)) and p.chance(0.1)]
    leaves = [i for i, value in enumerate(p.values) if value.requires_grad and isinstance(p.maker(i), Input)]
    return Expected(p, roots, inner, {i: p.normal(tuple(p.values[i].shape)) for i in leaves} if roots else {})


def changing(p):
    """Changes in place between what is computed and its gradient."""
    p.layouts = ["dense"]  # or else views of a tensor would not be views of it on both sides
    build(p, CHANGING, changes=0.3)
    return Changed(p, need(roots_of(p)))


def training(p):
    p.layouts = [layout for layout in LAYOUTS if layout != "expanded"]  # one element for many cannot be changed
    build(p, TABLE)
    return Training(p, need(roots_of(p)))


def need(roots):
    if not roots:
        raise Rejected("nothing wants a gradient")
    return roots


def make(seed):
    """The program of a seed, and what must come out."""
    for attempt in range(200):
        p = Draw([seed, attempt])
        p.words["seed"] = seed
        torch.manual_seed(seed)
        kind = graph if p.chance(0.8) else training if p.chance(0.6) else changing
        p.words["kind"] = kind.__name__
        try:
            return p, kind(p)
        except Rejected:
            continue
        except RuntimeError as error:
            if "tensor of 0 elements" not in str(error):  # where some of PyTorch's second derivatives fail
                raise
    sys.exit(f"seed {seed} gives no program")


def main():
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    torch.set_num_threads(1)
    stream = sys.stdout.buffer
    stream.write(f"PyTorch {torch.__version__} ops {' '.join(ops)} \n".encode())
    for seed in range(first, first + count):
        write(stream, *make(seed))


if __name__ == "__main__":
    main()
