"""The binary interface as text: what the compiler's debugging information says of the public headers."""
import os
import re
import subprocess
import tempfile


def _entries(object_file):
    """The debugging information as a dict: offset to (tag, attributes, offsets of children)."""
    text = subprocess.run(["readelf", "--debug-dump=info", object_file], check=True, capture_output=True, text=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout
    entries, path, now = {}, [], None
    for line in text.splitlines():
        if start := re.match(r" *<(\w+)><(\w+)>: Abbrev Number: \w+ \(DW_TAG_(\w+)\)", line):
            depth, offset = int(start[1], 16), int(start[2], 16)
            now = entries[offset] = (start[3], {}, [])
            path[depth:] = [offset]
            if depth:
                entries[path[depth - 1]][2].append(offset)
        elif now and (attribute := re.match(r" *<\w+> +DW_AT_(\w+) *: (?:\([^)]*\):? *)?(.*)", line)):
            now[1][attribute[1]] = attribute[2].strip()
    return entries


class _Types:
    """Types by their names in C, without the word struct, and the members of those that have some."""

    def __init__(self, entries):
        self.entries = entries

    def target(self, offset):
        reference = self.entries[offset][1].get("type")
        return int(reference.strip("<>"), 16) if reference else None

    def name(self, offset):
        if offset is None:
            return "void"
        tag, attributes, children = self.entries[offset]
        if tag == "pointer_type":
            inner = self.target(offset)
            if inner and self.entries[inner][0] == "subroutine_type":
                return self.function(inner, "(*)")
            name = self.name(inner)
            return name + ("*" if name[-1] == "*" else " *")
        if tag in ("const_type", "volatile_type", "restrict_type"):
            name, word = self.name(self.target(offset)), tag[:-5]
            return name + word if name[-1] == "*" else f"{word} {name}"
        if tag == "array_type":
            bounds = [self.entries[child][1] for child in children]
            sizes = [int(bound["count"] if "count" in bound else bound["upper_bound"], 0) + ("count" not in bound)
                     for bound in bounds]
            return self.name(self.target(offset)) + "".join(f"[{size}]" for size in sizes)
        if tag == "subroutine_type":
            return self.function(offset, "")
        if "name" in attributes:
            return attributes["name"]
        return tag.split("_")[0] + " { " + "; ".join(self.contents(offset)) + " }"

    def function(self, offset, middle):
        parameters = ["..." if self.entries[child][0] == "unspecified_parameters" else self.name(self.target(child))
                      for child in self.entries[offset][2]]
        return f"{self.name(self.target(offset))} {middle}({', '.join(parameters) or 'void'})"

    def contents(self, offset, start=0):
        """Members with their places, or values of an enumeration with their numbers."""
        lines = []
        for child in self.entries[offset][2]:
            tag, attributes, _ = self.entries[child]
            if tag == "enumerator":
                lines.append(f"{attributes['name']} = {int(attributes['const_value'], 0)}")
            elif tag == "member":
                place, target = start + int(attributes.get("data_member_location", "0"), 0), self.target(child)
                if "name" in attributes:
                    lines.append(f"{place}: {self.name(target)} {attributes['name']}")
                else:
                    lines += self.contents(target, place)
        return lines


def describe(include, compiler):
    """What the headers in the folders `include` declare: a dict of titles to lists of lines."""
    names = set()
    for folder in include:
        for header in os.scandir(os.path.join(folder, "rapt")) if os.path.isdir(os.path.join(folder, "rapt")) else []:
            with open(header, encoding="utf-8") as text:
                names.update(re.findall(r"^RAPT_API [^(]*[ *](rapt_\w+)\(", text.read(), re.M))
    with tempfile.TemporaryDirectory() as work:
        # A pointer to each function brings its type into the debugging information.
        lines = ["#include <rapt.h>"] + [f"__typeof__(&{name}) of_{name} = &{name};" for name in sorted(names)]
        with open(os.path.join(work, "all.c"), "w", encoding="utf-8") as text:
            text.write("\n".join(lines) + "\n")
        subprocess.run(compiler + ["-g", "-fno-eliminate-unused-debug-types", "-c", "all.c", "-o", "all.o"]
                       + ["-I" + os.path.abspath(folder) for folder in include], check=True, cwd=work)
        entries = _entries(os.path.join(work, "all.o"))

    types, found = _Types(entries), {}
    for offset, (tag, attributes, _) in entries.items():
        name = attributes.get("name", "")
        if tag == "variable" and name.startswith("of_rapt_"):
            found["function " + name[3:]] = [types.function(types.target(types.target(offset)), "")]
        if not name.startswith("rapt_"):
            continue
        kind, inner = tag, offset
        if tag == "typedef" and types.target(offset):
            kind, inner = entries[types.target(offset)][0], types.target(offset)
        if kind in ("structure_type", "union_type", "enumeration_type"):
            if "declaration" not in entries[inner][1]:
                size = int(entries[inner][1]["byte_size"], 0)
                found[f"{kind.split('_')[0]} {name}"] = [f"{size} bytes"] + types.contents(inner)
        elif tag == "typedef":
            found["type " + name] = [types.name(inner)]
    return dict(sorted(found.items()))
