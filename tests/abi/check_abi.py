#!/usr/bin/env python3
"""Programs that were built with the last release go on working: check_abi.py [--record] COMPILER...

Compares what the headers declare with last_release.txt. What was added needs a newer version than that release's; what
was changed or removed needs another series (the first number of the version; 0.N while that is 0), because the shared
library is named after it. --record writes last_release.txt anew, which is a part of making a release.
"""
import glob
import os
import re
import shutil
import sys

from description import describe

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
RECORD = os.path.join(HERE, "last_release.txt")


def include_folders(root):
    """Of the library itself: librapt-mpi has had no release yet."""
    folders = sorted(glob.glob(os.path.join(root, "*", "include")))
    return [os.path.join(root, "include")] + [folder for folder in folders if not folder.endswith("/mpi/include")]


def version_of(root):
    """The version, which must be the same wherever it stands."""
    found = {}
    header = "tensor/include/rapt/base.h"
    for name, pattern in [(header, r'define RAPT_VERSION "(.*)"'),
                          ("meson.build", r"project\(.* version: '([^']*)'"),
                          ("python/pyproject.toml", r'\nversion = "(.*)"')]:
        with open(os.path.join(root, name), encoding="utf-8") as text:
            found[name] = re.search(pattern, text.read())[1]
    if len(set(found.values())) > 1:
        sys.exit(f"several versions: {found}")
    with open(os.path.join(root, header), encoding="utf-8") as text:
        number = int(re.search(r"define RAPT_VERSION_NUMBER (\d+)", text.read())[1])
    major, minor, patch = numbers(found[header])
    if number != 1_000_000 * major + 1_000 * minor + patch:
        sys.exit(f"RAPT_VERSION_NUMBER is {number}, of version {found[header]}")
    return found["meson.build"]


def numbers(version):
    return [int(number) for number in version.split(".")]


def series(version):
    first, second = numbers(version)[:2]
    return str(first) if first else f"0.{second}"


def write(path, version, interface):
    with open(path, "w", encoding="utf-8") as record:
        print(f"rapt {version}", file=record)
        for title, lines in interface.items():
            print(title, *lines, sep="\n  ", file=record)


def read(path):
    with open(path, encoding="utf-8") as record:
        version, interface = record.readline().split()[1], {}
        for line in record.read().splitlines():
            if line.startswith("  "):
                interface[title].append(line[2:])
            else:
                title = line
                interface[title] = []
    return version, interface


def difference(before, after):
    """What was broken and what was added, a line each. An enumeration may grow."""
    broken = [f"{title}: removed" for title in before if title not in after]
    added = [f"{title}: new" for title in after if title not in before]
    for title in before:
        if title not in after or before[title] == after[title]:
            continue
        gone = [line for line in before[title] if line not in after[title]]
        come = [line for line in after[title] if line not in before[title]]
        kept = not gone and title.startswith("enumeration ")
        (added if kept else broken).append(f"{title}: " + "; ".join(["was " + line for line in gone]
                                                                    + ["is " + line for line in come]))
    return broken, added


def judge(released, before, version, after):
    """The lines to print, and whether all is well."""
    broken, added = difference(before, after)
    lines = [f"against rapt {released}: {len(broken)} changed or removed, {len(added)} new, in version {version}"]
    if broken and series(version) == series(released):
        return lines + broken + [f"Programs built with rapt {released} would break: undo this, or begin a new series "
                                 "(CONTRIBUTING.md, Releases)"], False
    if added and numbers(version) <= numbers(released):
        return lines + added + [f"A newer version than {released} is needed (CONTRIBUTING.md, Releases)"], False
    return lines, True


def main(arguments):
    record = arguments[:1] == ["--record"]
    compiler = arguments[record:] or ["cc"]
    if not shutil.which("readelf"):
        print("skipped: readelf, which reads what the compiler says of types, is not here")
        return 77
    version, interface = version_of(ROOT), describe(include_folders(ROOT), compiler)
    if record:
        write(RECORD, version, interface)
        return 0
    lines, good = judge(*read(RECORD), version, interface)
    print(*lines, sep="\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
