#!/usr/bin/env python3
"""The Python of a guide runs, and prints what it shows: check_python.py [--write] LIBRARY GUIDE.md

All blocks of Python are one program, in the order of the guide; a block that is fenced as `output` is what it has
printed since the last such block. A LIBRARY that begins with `skip` says why nothing can be run.
--write puts what it prints in the place of what is shown, for you to read before you commit it."""
import contextlib
import difflib
import importlib.util
import io
import os
import sys
import tempfile
import traceback

import check_guide
import programs

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run(path):
    """(line, what is shown, what was printed) of each output; the last without a line, where more was printed."""
    printed, outputs, names = io.StringIO(), [], {"__name__": "__main__"}
    for language, line, _, code in programs.read_blocks(path):
        if language == "output":
            outputs.append((line, code, printed.getvalue().strip("\n")))
            printed.seek(0)
            printed.truncate()
        elif language == "python":
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * (line - 1) + code, path, "exec"), names)
    return outputs + [(None, "", printed.getvalue())] * bool(printed.getvalue())


def main(library, path, writes=False):
    if library.startswith("skip"):
        print(f"skipped: {library[5:]}")
        sys.exit(77)
    if not importlib.util.find_spec("numpy"):
        print(f"skipped: {sys.executable} has no NumPy (python3-numpy)")
        sys.exit(77)
    path = os.path.abspath(path)
    os.environ["RAPT_LIBRARY"] = os.path.abspath(library)
    sys.path.insert(0, os.path.join(ROOT, "python"))
    with tempfile.TemporaryDirectory() as folder:  # for the files that it writes
        os.chdir(folder)
        try:
            outputs = run(path)
        except Exception:
            traceback.print_exc()
            return True
        finally:
            os.chdir(ROOT)
    failed = not outputs
    if failed:
        print(f"{path}: no output is shown")
    for line, shown, actual in outputs:
        if line is None or not check_guide.is_same_text(shown, actual):
            failed = True
            print(f"{path}:{line or 'the end'}: the program prints otherwise than shown:")
            lines = difflib.unified_diff(shown.split("\n"), actual.split("\n"), "shown", "printed", lineterm="")
            print("\n".join(lines))
    if failed and writes:
        check_guide.write(path, [actual for line, _, actual in outputs if line])
    return failed


if __name__ == "__main__":
    wants_to_write = sys.argv[1:2] == ["--write"]
    sys.exit(main(*sys.argv[1 + wants_to_write:], writes=wants_to_write))
