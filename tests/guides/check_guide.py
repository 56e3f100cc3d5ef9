#!/usr/bin/env python3
"""The programs of a guide run, and print what it shows: check_guide.py [--write] GUIDE.md PROGRAM_0 PROGRAM_1 …

--write puts what they print in the place of what is shown, for you to read before you commit it.
Numbers with a point may differ by one in their last digit: sums are rounded otherwise on another instruction set."""
import difflib
import os
import re
import subprocess
import sys
import tempfile

import programs

NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")


def is_same(line, other):
    if NUMBER.sub("#", line) != NUMBER.sub("#", other):
        return False
    for a, b in zip(NUMBER.findall(line), NUMBER.findall(other)):
        digits = len(a.split("e")[0].split(".")[1])
        unit = 10.0 ** ((int(a.split("e")[1]) if "e" in a else 0) - digits)
        if abs(float(a) - float(b)) > 1.5 * unit:
            return False
    return True


def is_same_text(shown, printed):
    shown, printed = ([line.rstrip() for line in text.strip("\n").split("\n")] for text in (shown, printed))
    return len(shown) == len(printed) and all(map(is_same, shown, printed))


def run(path, number, outputs, executable):
    """What the program printed for each output that the guide shows; None after a complaint."""
    with tempfile.TemporaryDirectory() as folder:  # for the files that it writes
        done = subprocess.run([os.path.abspath(executable)], stdout=subprocess.PIPE, text=True, timeout=240, cwd=folder)
    # What follows the last mark is shown nowhere, and so is the output of a program without a block for it.
    printed = done.stdout.split(programs.MARK)[:len(outputs)] if number == 0 else [done.stdout] * bool(outputs)
    if done.returncode or len(printed) != len(outputs):
        print(f"{path}: program {number} ended with {done.returncode}; {len(printed)} of {len(outputs)} outputs:")
        print(done.stdout)
        return None
    return [text.strip("\n") for text in printed]


def write(path, texts):
    """Puts the texts into the guide's blocks of outputs, one after another."""
    with open(path, encoding="utf-8") as file:
        guide = file.read()
    texts = iter(texts)
    guide = re.sub(r"^```output\n.*?^```$", lambda _: f"```output\n{next(texts)}\n```", guide, flags=re.S | re.M)
    with open(path, "w", encoding="utf-8") as file:
        file.write(guide)


def main(path, *executables, writes=False):
    wanted = programs.split(path)
    if len(wanted) != len(executables):
        sys.exit(f"{path} has {len(wanted)} programs; tests/guides/meson.build says {len(executables)}")
    failed, texts = False, {}
    for number, ((_, outputs), executable) in enumerate(zip(wanted, executables)):
        printed = run(path, number, [text for _, text in outputs], executable)
        if printed is None:
            return True
        for (line, shown), actual in zip(outputs, printed):
            texts[line] = actual
            if not is_same_text(shown, actual):
                failed = True
                print(f"{path}:{line}: program {number} prints otherwise than shown:")
                lines = difflib.unified_diff(shown.split("\n"), actual.split("\n"), "shown", "printed", lineterm="")
                print("\n".join(lines))
    if failed and writes:
        write(path, [texts[line] for line in sorted(texts)])
    return failed


if __name__ == "__main__":
    wants_to_write = sys.argv[1:2] == ["--write"]
    sys.exit(main(*sys.argv[1 + wants_to_write:], writes=wants_to_write))
