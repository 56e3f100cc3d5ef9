#!/usr/bin/env python3
"""Makes the fixtures of tests/test_parity.c from PyTorch (2.5 or newer, with numpy), beside this script.

    python3 tests/parity/make_fixtures.py           writes them
    python3 tests/parity/make_fixtures.py --check   says how far this PyTorch is from those that are there

A fixture holds, for each case: its inputs and weights (float32), the gradients that backward starts from ("seeds"), and
outputs and gradients as PyTorch gives them in float32 and float64. Names are CASE/inputs/x, CASE/weights/NAME,
CASE/seeds/y, CASE/float64/outputs/y, CASE/float64/gradients/NAME.
"""
import os
import sys

sys.dont_write_bytecode = True
import torch

import all_cases
import tensor_file
from cases import LIMITS, deviation, families

HERE = os.path.dirname(os.path.abspath(__file__))


def path_of(family):
    return os.path.join(HERE, family + ".safetensors")


def check(family, arrays):
    stored = tensor_file.read(path_of(family))
    if stored.keys() != arrays.keys():
        sys.exit(f"{family}: other names: {sorted(stored.keys() ^ arrays.keys())[:5]} ...")
    for dtype, limit in LIMITS.items():
        worst, name = max((deviation(arrays[name], stored[name]), name) for name in stored if f"/{dtype}/" in name)
        print(f"{family}: {dtype} differs by at most {worst:.1e} ({name})")
        if not worst <= limit:
            sys.exit(f"{family}: {name} is off")


torch.set_num_threads(1)
for family, cases in families.items():
    arrays = {name: array for case in cases for name, array in case.arrays().items()}
    if "--check" in sys.argv[1:]:
        check(family, arrays)
    else:
        tensor_file.write(path_of(family), arrays, {"torch": torch.__version__})
        print(f"{path_of(family)}: {len(cases)} cases, {os.path.getsize(path_of(family))} bytes")
