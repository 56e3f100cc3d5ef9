"""The guides as pages, and the files of the tree that they link to."""
import glob
import os
import re

import text
from pages import ROOT, page_of, plain


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def make_page(pages, path, address):
    pages.here = address
    pages.bodies[address] = text.render(read(path), pages)


def add_to_index(pages, address):
    """Each section by itself."""
    title, body, _ = pages.bodies[address]
    for part in filter(None, re.split(r"(?=<h[12] id=)", body)):
        level, anchor = re.match(r'<h([12]) id="([^"]*)"', part).groups()
        heading = plain(re.search(r"<h\d[^>]*>(.*?)<a class", part, re.S)[1])
        name, place = (title, address) if level == "1" else (f"{title}: {heading}", f"{address}#{anchor}")
        pages.index.append([name, "guide", place, plain(part)])


def make(pages):
    pages.here = "docs/README.md"
    listed = re.findall(r"\]\(([\w-]+\.md)\)", read("docs/README.md"))
    written = {os.path.basename(path) for path in glob.glob(f"{ROOT}/docs/*.md")} - {"README.md"}
    for name in sorted(written ^ set(listed)):
        pages.fault(f"{name} is not both written and listed")
    make_page(pages, "docs/README.md", "index.html")
    for name in listed:
        if name in written:
            make_page(pages, f"docs/{name}", page_of(name))
            pages.guides.append(name)
            add_to_index(pages, page_of(name))


def make_sources(pages):
    """Files that pages link to; these may link to more."""
    for path in pages.sources:
        address = f"source/{path}.html"
        pages.from_folder = os.path.dirname(path) or "."
        if path.endswith(".md"):
            make_page(pages, path, address)
            continue
        pages.here = address
        ending = path.split(".")[-1]
        language = {"h": "c", "hpp": "cpp", "f90": "fortran", "py": "python"}.get(ending, ending)
        pages.bodies[address] = (path, f"<h1>{path}</h1>{text.show_block(language, read(path), pages)}", [])
