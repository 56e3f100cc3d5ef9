#!/usr/bin/env python3
"""The errors of the library. `errors.py list` prints each place that raises one; `errors.py check` compares them with
docs/errors.md; `errors.py covered FILE` says which of them no test has provoked, given the places that were, a line
"FILE:LINE" each (tests/errors/check writes them)."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
UNREACHED = os.path.join(ROOT, "tests", "errors", "unreached")
PAGE = os.path.join(ROOT, "docs", "errors.md")
FOLDERS = ("tensor", "autograd", "nn", "optim", "mpi")
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
MACRO = re.compile(r'^#define ([A-Z][A-Z_]+) "([^"\n]*)"', re.M)
CONVERSION = re.compile(r"%[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t)?[a-zA-Z]")
# Functions that hand a text on to rapt_fail, and which of their arguments it is.
WRAPPERS = {("tensor/npz_read.c", "fail"): 1, ("tensor/npy_header.c", "fail"): 1,
            ("tensor/safetensors_header.c", "fail"): 2, ("tensor/safetensors_index.c", "fail_index"): 1,
            ("autograd/gradcheck_function.c", "fail"): 2}


class Place:
    """One call of rapt_fail, of rapt_fail_null or of a wrapper; only of the first two it is known whether a test has
    reached them."""

    def __init__(self, file, first, last, messages, is_noted, is_macro):
        self.file, self.first, self.last, self.messages = file, first, last, messages
        self.is_noted = is_noted
        self.is_macro = is_macro  # it is noted by the lines that use the macro

    def __str__(self):
        return f"{self.file}:{self.first} | " + " or ".join(self.messages)


def texts(expression, macros):
    """The string literals of an expression, with "…" for what a conversion puts there, or is put behind it; those of
    `a ? "x" : "y"` are two."""
    found = []
    expression = re.sub(r"\b[A-Z][A-Z_]+\b(?=[^\"]*(?:\"[^\"]*\"[^\"]*)*$)",
                        lambda name: f'"{macros[name[0]]}"' if name[0] in macros else name[0], expression)
    for part in re.split(r"""[?:](?=(?:[^"]*"[^"]*")*[^"]*$)""", re.sub(r'\\"', "'", expression)):
        if '"' not in part:
            continue
        outside = TEXT.sub("", part).strip()
        text = "".join(TEXT.findall(part))
        text = CONVERSION.sub("…", text.replace("%%", "\0")).replace("\0", "%")
        found.append(text.replace(r"\\", "\\") + ("…" if outside or text.endswith(" ") else ""))
    return found or ["…"]


def arguments_of(source, at):
    """The arguments of the call whose parenthesis is at that place, and where the call ends."""
    depth, quote, arguments, begin = 0, None, [], at + 1
    while True:
        c = source[at]
        if quote:
            if c == "\\":
                at += 1
            elif c == quote:
                quote = None
        elif c in "\"'":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth == 0:
                return arguments + [source[begin:at]], at
        elif c == "," and depth == 1:
            arguments.append(source[begin:at])
            begin = at + 1
        at += 1


def sources():
    """All sources and headers, by path."""
    for folder in FOLDERS:
        for path, _, names in sorted(os.walk(os.path.join(ROOT, folder))):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    with open(os.path.join(path, name), encoding="utf-8") as file:
                        yield os.path.relpath(os.path.join(path, name), ROOT), file.read()


def places():
    found, files = [], dict(sources())
    macros = {name: text for source in files.values() for name, text in MACRO.findall(source)}
    for path, source in files.items():
        if path.endswith(".h") or path == "tensor/error.c":
            continue
        wrappers = {name: number for (file, name), number in WRAPPERS.items() if file == path}
        for call in re.finditer(r"\b(" + "|".join(["rapt_fail", "rapt_fail_null", *wrappers]) + r")\s*\(", source):
            name = call.group(1)
            arguments, end = arguments_of(source, call.end() - 1)
            text = arguments[{"rapt_fail": 2, "rapt_fail_null": 1, **wrappers}[name]]
            if name in wrappers and '"' not in text:
                continue  # its own definition
            messages = [m + " is NULL" if name == "rapt_fail_null" else m for m in texts(text, macros)]
            found.append(Place(path, source.count("\n", 0, call.start()) + 1, source.count("\n", 0, end) + 1, messages,
                               name not in wrappers, source[end:source.index("\n", end)].endswith("\\")))
    return found


def page():
    """The messages that the page lists, which begin a row of a table or an item; and the names of the library in it."""
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    return re.findall(r"^[|-] `(.*?)`", text, re.M), set(re.findall(r"\b(?:rapt|RAPT)_\w+", text))


def check():
    raised = {message for place in places() for message in place.messages}
    listed, names = page()
    code = "".join(source for _, source in sources())
    good = True
    for name in sorted(names):
        if not re.search(rf"\b{name}\b", code):
            good = False
            print(f"docs/errors.md names what is not there: {name}")
    for file, message in sorted(excused() - {(p.file, " or ".join(p.messages)) for p in places()}):
        good = False
        print(f"tests/errors/unreached has what nothing raises: {file} | {message}")
    for message in sorted(raised - set(listed)):
        good = False
        print(f"docs/errors.md does not list: {message}")
    for message in sorted(set(listed) - raised):
        good = False
        print(f"docs/errors.md lists what nothing raises: {message}")
    for message in sorted({m for m in listed if listed.count(m) > 1}):
        good = False
        print(f"docs/errors.md lists twice: {message}")
    return good


def excused():
    """Files and messages of places that no test can reach."""
    with open(UNREACHED, encoding="utf-8") as file:
        return {tuple(line.split(" | ")[:2]) for line in file if not line.startswith("#")}


def covered(path):
    reached = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            name, number = line.rstrip("\n").rsplit(":", 1)
            reached.setdefault(name.removeprefix("../"), set()).add(int(number))
    everything = [p for p in places() if p.is_noted]
    missing = [p for p in everything if not p.is_macro and
               not any(p.first <= line <= p.last for line in reached.get(p.file, ()))]
    unknown = [p for p in missing if (p.file, " or ".join(p.messages)) not in excused()]
    print(*unknown, sep="\n")
    print(f"{len(everything)} places raise an error; tests reach {len(everything) - len(missing)}, "
          f"{len(missing) - len(unknown)} cannot be reached, {len(unknown)} are missed")
    return not unknown


if __name__ == "__main__":
    if sys.argv[1:] == ["list"]:
        print(*places(), sep="\n")
    elif sys.argv[1:] == ["check"]:
        sys.exit(not check())
    elif len(sys.argv) == 3 and sys.argv[1] == "covered":
        sys.exit(not covered(sys.argv[2]))
    else:
        sys.exit(__doc__)
