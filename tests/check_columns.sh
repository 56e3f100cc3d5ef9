#!/bin/sh
# No line of a C, C++, Python, HTML or meson file is longer than 120 characters; clang-format leaves comments as they are.
set -eu
cd "$(dirname "$0")/.."
git ls-files -z '*.c' '*.h' '*.cpp' '*.def' '*.py' '*.html' '*meson.build' | python3 -c '
import sys

longer = 0
for path in filter(None, sys.stdin.read().split("\0")):
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if len(line.rstrip("\n")) > 120:
                print(f"{path}:{number}: {len(line) - 1} characters")
                longer += 1
sys.exit(longer > 0)
'
