#!/usr/bin/env python3
"""PyTorch's side of tests/bench/compare: one row in one phase, timed as often as it is asked.

usage: torch_rows.py ROW PHASE IMPLEMENTATION

IMPLEMENTATION is "eager" or "compile", or one of these with "-plain": attention by its definition, step by step. Prints
the version when all is warm, and then for each number of seconds that it reads the median in milliseconds of runs that
take that long and the process's largest memory in MB; or "failed:" and why. With BENCH_BY_PROCESSOR in the environment
times are those that the process has used, whatever else the machine does.
"""
import ctypes
import gc
import os
import statistics
import sys
import time

IS_AVX2 = os.environ.get("ATEN_CPU_CAPABILITY") == "avx2"
if IS_AVX2:  # what a processor without AVX-512 would take, which OpenBLAS asks for when it is loaded
    os.environ["OPENBLAS_CORETYPE"] = "Haswell"

import torch  # noqa: E402
from torch._inductor import config as inductor  # noqa: E402

import torch_attention  # noqa: E402
import torch_gpt  # noqa: E402
import torch_ops  # noqa: E402
import torch_translators  # noqa: E402

FAMILIES = torch_attention, torch_ops, torch_gpt, torch_translators
WARM_UP = 3
now = time.process_time if "BENCH_BY_PROCESSOR" in os.environ else time.perf_counter


def compiled(function):
    if IS_AVX2:
        inductor.cpp.simdlen = 256
    return torch.compile(function, dynamic=False)


def make(row, phase, implementation):
    row = row.removesuffix("_packed")  # what PyTorch has for sequences of different lengths is padding
    family = next(family for family in FAMILIES if row in family.ROWS)
    how, _, kind = implementation.partition("-")
    torch.manual_seed(0)
    return family.make(row, phase, compiled if how == "compile" else lambda function: function, kind == "plain")


def measure(run, seconds):
    times = []
    start = now()
    while not times or now() - start < seconds:
        before = now()
        run()
        times.append(1e3 * (now() - before))
    return statistics.median(times)


def reset_memory():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    try:
        with open("/proc/self/clear_refs", "w") as reset:
            reset.write("5")
    except OSError:
        pass  # the system does not let us: then it is the largest since the start


def largest_memory():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024e-6 for line in status if line.startswith("VmHWM:"))


def main():
    row, phase, implementation = sys.argv[1:]
    try:
        run = make(row, phase, implementation)
        for _ in range(WARM_UP):
            run()
        reset_memory()
        run()
    except Exception as error:  # torch.compile may be unusable on a machine: compare then says so
        lines = str(error).strip().splitlines()
        print("failed:", lines[-1][:200] if lines else repr(error), flush=True)
        return
    print("PyTorch", torch.__version__, flush=True)
    for line in sys.stdin:
        print(measure(run, float(line)), largest_memory(), flush=True)


if __name__ == "__main__":
    main()
