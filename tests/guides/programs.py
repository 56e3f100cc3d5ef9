#!/usr/bin/env python3
"""The C or C++ of a guide as programs: programs.py GUIDE.md NUMBER prints the program of that number.

A fenced block that has a main is a program of its own: 1, 2, … All others are one program, 0: what begins with static,
typedef, class or # stands before its main, the rest in it, in the order of the guide; in C what belongs to one section
(##) shares a scope. A guide with blocks of C++ has no C. A block that is fenced as `output` is what its program has
printed since the last such block."""
import re
import sys

MARK = chr(30)  # stands in what program 0 prints where the guide shows an output


def read_blocks(path):
    """(language, line of the first line of code, number of the section, code) of each fenced block."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    blocks, section, place = [], 0, 0
    while place < len(lines):
        if match := re.match(r"```(\w*)$", lines[place]):
            end = lines.index("```", place + 1)
            blocks.append((match[1], place + 2, section, "\n".join(lines[place + 1:end])))
            place = end
        elif lines[place].startswith("```"):
            raise ValueError(f"{path}:{place + 1}: a fence with more than a language")
        elif lines[place].startswith("## "):
            section += 1
        place += 1
    return blocks


def has_main(code):
    return re.search(r"^int main\(", code, re.M)


def split(path):
    """Programs as (source, list of (line, text) of the outputs that the guide shows), number 0 first."""
    before, inside, shown, whole, section, last_whole = [], [], [], [], None, False
    blocks = read_blocks(path)
    source, header = ("cpp", "rapt.hpp") if any(block[0] == "cpp" for block in blocks) else ("c", "rapt.h")
    for language, line, number, code in blocks:
        if language == "output":
            if last_whole:
                whole[-1][1].append((line, code))
            else:
                shown.append((line, code))
                inside.append(f"putchar({ord(MARK)});")
            continue
        if language != source:
            continue
        text = f'#line {line} "{path}"\n{code}\n'
        last_whole = bool(has_main(code))
        if last_whole:
            whole.append((text, []))
        elif re.match(r"static|typedef|class|#", re.sub(r"^(/\*.*?\*/\s*|//.*?\n)+", "", code, flags=re.S)):
            before.append(text)
        else:
            if number != section and source == "c":
                inside += ["    }"] if section is not None else []
                inside.append("    {")
                section = number
            inside.append(text)
    inside += ["    }"] if section is not None else []
    start = [f"#include <math.h>\n#include <stdio.h>\n#include <string.h>\n\n#include <{header}>\n"]
    main = "int main()\n{" if source == "cpp" else "int main(void)\n{"
    first = "\n".join(start + before + [main] + inside + ["    return 0;\n}\n"])
    return [(first, shown)] + whole


if __name__ == "__main__":
    sys.stdout.write(split(sys.argv[1])[int(sys.argv[2])][0])
