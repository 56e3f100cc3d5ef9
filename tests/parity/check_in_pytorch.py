#!/usr/bin/env python3
"""Do weights that rapt saved give the same outputs in PyTorch? Reads what the program write_weights.c writes.

    check_in_pytorch.py PROGRAM     status 77 (skipped) without PyTorch

Each file is loaded by load_state_dict(strict=True): no name may be missing, none too many. Outputs may differ by a part
of their tensor's largest value: 10⁻¹² in float64, 10⁻⁵ in float32.
"""
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
except ImportError as error:
    print(f"skipped: {sys.executable} has no PyTorch ({error})")
    sys.exit(77)

sys.dont_write_bytecode = True
import all_cases
import tensor_file
from cases import deviation, families, LIMITS

wrong = 0
torch.set_num_threads(1)
with tempfile.TemporaryDirectory() as directory:
    subprocess.run([sys.argv[1], directory], check=True)
    for family, cases in families.items():
        if family == "optimizers":  # their cases end with other weights than those they began with
            continue
        count, worst = 0, {"float32": 0.0, "float64": 0.0}
        for case in cases:
            for dtype, limit in LIMITS.items():
                path = os.path.join(directory, f"{family}.{case.name}.{dtype}")
                if not case.weights:
                    continue
                outputs, _, _ = case.run(getattr(torch, dtype), tensor_file.read(path + ".weights.safetensors"))
                expected = tensor_file.read(path + ".outputs.safetensors")
                if outputs.keys() != expected.keys():
                    sys.exit(f"{path}: outputs {sorted(expected)}, not {sorted(outputs)}")
                for name, output in outputs.items():
                    off = deviation(expected[name], output)
                    worst[dtype] = max(worst[dtype], off)
                    if not off <= limit:
                        print(f"{family}: {case.name} ({dtype}): {name} is off by {off:.1e}; {limit} allowed")
                        wrong += 1
                count += 1
        if count:
            offs = ", ".join(f"{off:.1e} ({dtype})" for dtype, off in worst.items())
            print(f"{family}: {count} files; off by at most {offs}")
sys.exit(1 if wrong else 0)
