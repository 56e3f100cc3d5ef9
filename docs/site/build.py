#!/usr/bin/env python3
"""Builds the site of guides and reference: build.py FOLDER [--names FILE]

The folder is made, or replaced if it holds a site. Whatever is wrong (a declaration without a comment, a name that does
not exist, a dead link) is printed, and the status is 1. --names: a file with the names that the library exports, one a
line, which must be those of the reference. Needs Python-Markdown and Pygments."""
import html
import json
import os
import re
import shutil
import sys

import guides
import reference
from pages import FOLDERS, ROOT, Pages, page_of, plain

HERE = os.path.dirname(os.path.realpath(__file__))
MARK = "site.txt"  # a file by which a folder is known as one that may be replaced


def entry(pages, address, title):
    """A line of the contents; that of the present page has its sections."""
    if address != pages.here:
        return f'<li><a href="{pages.to(address)}">{html.escape(title)}</a></li>'
    sections = [f'<li><a href="#{anchor}">{html.escape(heading)}</a></li>'
                for heading, anchor in pages.bodies[address][2]]
    inner = f"<ul>{''.join(sections)}</ul>" if sections else ""
    return f'<li class="here"><a href="#top">{html.escape(title)}</a>{inner}</li>'


def contents(pages):
    out = ["<h2>Guides</h2><ul>"]
    out += [entry(pages, page_of(name), pages.bodies[page_of(name)][0]) for name in pages.guides]
    out.append(f'</ul><h2><a href="{pages.to("reference/index.html")}">Reference</a></h2>')
    for folder, title in FOLDERS:
        out.append(f"<h3>{title}</h3><ul>")
        out += [entry(pages, header.address, header.name) for header in pages.headers if header.folder == folder]
        out.append("</ul>")
    return "\n".join(out)


def neighbours(pages):
    """Links to the guides before and after."""
    order = [page_of(name) for name in pages.guides]
    if pages.here not in order:
        return ""
    place, out = order.index(pages.here), []
    if place > 0:
        out.append(f'<a rel="prev" href="{order[place - 1]}">← {pages.bodies[order[place - 1]][0]}</a>')
    if place + 1 < len(order):
        out.append(f'<a rel="next" href="{order[place + 1]}">{pages.bodies[order[place + 1]][0]} →</a>')
    return f'<nav class="neighbours">{"".join(out)}</nav>'


def write_file(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def write(pages, out):
    with open(f"{HERE}/page.html", encoding="utf-8") as file:
        frame = file.read()
    for address, (title, body, _) in pages.bodies.items():
        pages.here = address
        values = {"title": html.escape(plain(title)), "body": body + neighbours(pages), "contents": contents(pages),
                  "root": os.path.relpath(".", os.path.dirname(address) or ".") + "/"}
        write_file(f"{out}/{address}", re.sub(r"\{(\w+)\}", lambda match: values[match[1]], frame))
    index = json.dumps(pages.index, ensure_ascii=False, separators=(",", ":"))
    write_file(f"{out}/search_index.js", f"const searchIndex = {index};\n")
    for name in ["style.css", "search.js"]:
        shutil.copy(f"{HERE}/{name}", out)
    os.makedirs(f"{out}/pictures")
    for name in sorted(pages.pictures):
        shutil.copy(f"{ROOT}/docs/pictures/{name}", f"{out}/pictures")


def check_links(pages, out):
    """Every link of every page, and of the search, leads to a file and an anchor that are there."""
    anchors, links = {}, [("index.html", link) for _, _, link, _ in pages.index]
    for address in pages.bodies:
        with open(f"{out}/{address}", encoding="utf-8") as file:
            text = file.read()
        pages.here = address
        anchors[address] = re.findall(r'\bid="([^"]*)"', text)
        for twice in sorted({name for name in anchors[address] if anchors[address].count(name) > 1}):
            pages.fault(f"the anchor {twice} is there twice")
        links += [(address, html.unescape(link)) for link in re.findall(r'<[^>]*\b(?:href|src)="([^"]*)"', text)]
    for address, link in links:
        if re.match(r"https?://", link):
            continue
        path, _, anchor = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(address), path)) if path else address
        pages.here = address
        if not os.path.isfile(f"{out}/{target}"):
            pages.fault(f"a dead link to {link}")
        elif anchor and anchor not in anchors.get(target, ()):
            pages.fault(f"a link to {link}, but there is no such section")


def check_names(pages, path):
    """The functions of the reference are those that the library exports; librapt-mpi's are another's."""
    with open(path, encoding="utf-8") as file:
        exported = set(file.read().split())
    described = {name for name, kind, address, _ in pages.index
                 if kind == "function" and not address.startswith("reference/mpi.html")}
    pages.here = "reference"
    for name in sorted(exported ^ described):
        pages.fault(f"{name} is {'exported, not described' if name in exported else 'described, not exported'}")


def empty(out):
    """Makes the folder, or empties one that holds a site: who works in it, or comes by a link, still has it."""
    os.makedirs(out, exist_ok=True)
    if os.listdir(out) and not os.path.isfile(f"{out}/{MARK}"):
        sys.exit(f"build.py: {out} holds something else than a site: name a new folder")
    write_file(f"{out}/{MARK}", "Made by docs/site/build.py, which replaces this folder.\n")
    for old in list(os.scandir(out)):
        if old.is_dir(follow_symlinks=False):
            shutil.rmtree(old.path)
        elif old.name != MARK:
            os.remove(old.path)


def main(out, names=None):
    out = os.path.realpath(out)
    try:
        empty(out)
    except OSError as error:
        sys.exit(f"build.py: there can be no site in {out}: {error.strerror}")
    pages = Pages()
    reference.read(pages)
    guides.make(pages)
    reference.make(pages)
    guides.make_sources(pages)
    try:
        write(pages, out)
    except OSError as error:
        sys.exit(f"build.py: the site in {out} is not whole: {error.strerror or error}")
    check_links(pages, out)
    if names:
        check_names(pages, names)
    for fault in pages.faults:
        print(f"docs: {fault}", file=sys.stderr)
    functions = sum(kind == "function" for _, kind, _, _ in pages.index)
    print(f"docs: {len(pages.guides)} guides, {len(pages.headers)} header files, {functions} functions, "
          f"{len(pages.faults)} faults: {out}/index.html")
    return bool(pages.faults)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 4) or sys.argv[1].startswith("-") or sys.argv[2:3] not in ([], ["--names"]):
        sys.exit("usage: build.py FOLDER [--names FILE]")
    sys.exit(main(sys.argv[1], *sys.argv[3:]))
