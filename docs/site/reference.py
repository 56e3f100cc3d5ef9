"""The reference: a page for each public header, made of its declarations and their comments."""
import glob
import html
import os
import re

import headers
import text
from pages import FOLDERS, ROOT

BEGINNING = """<h1>Reference</h1>
<p>Every public declaration, with the comment that its header file has. A program includes <code>rapt.h</code>, which
includes them all but <code>rapt/mpi.h</code>, that of a library of its own. What holds everywhere: a function that
fails gives <code>NULL</code> or <code>false</code> and keeps the first error (<a href="error.html">error.h</a>), and
<code>NULL</code> goes in and comes out; a tensor belongs to the innermost scope (<a href="../scopes.html">Thinking in
scopes</a>).</p>"""
OTHER_LANGUAGES = [("include/rapt.hpp", "C++: layers and optimizers"),
                   ("include/rapt/tensor.hpp", "C++: tensors and operators"),
                   ("include/rapt/handles.hpp", "C++: handles and exceptions"),
                   ("fortran/rapt.f90", "Fortran: a module"),
                   ("python/rapt/__init__.py", "Python: a package by ctypes")]


def read(pages):
    """All headers, and where each name will be explained."""
    for folder, _ in FOLDERS:
        for path in sorted(glob.glob(f"{ROOT}/{folder}/include/rapt/*.h")):
            name = os.path.basename(path)
            with open(path, encoding="utf-8") as file:
                header = headers.read_header(name, file.read())
            header.folder = folder
            header.address = f"reference/{name[:-2]}.html"
            pages.headers.append(header)
            for declaration in [d for item in header.items for d in item.declarations]:
                for known in [declaration.name, *declaration.also]:
                    pages.known[known] = f"{header.address}#{declaration.name}"
                pages.fields.update(declaration.fields)


def show_declaration(pages, declaration, is_first):
    """One that is announced and then defined has its anchor at the first of both."""
    anchor = f' id="{declaration.name}"' if is_first else ""
    code = text.highlight(declaration.code, "c", lambda name: pages.link(name) if name != declaration.name else None)
    behind = f'<p class="behind">{pages.words(declaration.behind)}</p>' if declaration.behind else ""
    return f'<pre class="c declaration"{anchor}><code>{code}</code></pre>{behind}'


def add_to_index(pages, header, item, declaration):
    if not item.text and not declaration.behind:
        pages.fault(f"{declaration.name} has no comment")
    if pages.known[declaration.name].startswith(header.address):
        words = " ".join([declaration.behind, item.text, *declaration.also, *declaration.fields])
        pages.index.append([declaration.name, declaration.kind, pages.known[declaration.name], " ".join(words.split())])


def show_section(pages, words, sections):
    """`title: more` or `title; more`, and what follows it in the comment."""
    title, _, rest = words.partition("\n")
    title, more, *_ = [*re.split("[;:] ", title[0].upper() + title[1:], maxsplit=1), ""]
    sections.append((title, text.slug(title, "-")))
    texts = "".join(pages.comment(part[0].upper() + part[1:]) for part in (more, rest) if part)
    return f'<h2 id="{sections[-1][1]}">{html.escape(title)}</h2>{texts}'


def make_page(pages, header):
    pages.here = header.address
    if not header.text:
        pages.fault("the header has no comment")
    body, sections, names = [], [], []
    for item in header.items:
        if item.kind == "section":
            body.append(show_section(pages, item.text, sections))
            continue
        shown = []
        for declaration in item.declarations:
            shown.append(show_declaration(pages, declaration, declaration.name not in names))
            if declaration.name not in names:
                names.append(declaration.name)
                add_to_index(pages, header, item, declaration)
        words = pages.comment(item.text) if item.text else ""
        parts = [words, *shown] if len(shown) > 1 else [*shown, words]  # what all of them share comes first
        body.append(f"<section>{''.join(parts)}</section>" if shown else words)
    links = " ".join(f'<a href="#{name}">{name}</a>' for name in names)
    overview = f'<details><summary>{len(names)} names</summary><p class="names">{links}</p></details>' if names else ""
    title = f"rapt/{header.name}"
    beginning = [f"<h1>{title}</h1>", pages.comment(header.text), overview]
    pages.bodies[header.address] = (title, "\n".join(beginning + body), sections)
    pages.index.append([title, "header", header.address, " ".join(header.text.split())])


def make_index(pages):
    pages.here = "reference/index.html"
    body, sections = [BEGINNING], []
    for folder, title in FOLDERS:
        sections.append((title, folder))
        body.append(f'<h2 id="{folder}">{title}</h2><div class="wide"><table><tbody>')
        for header in [header for header in pages.headers if header.folder == folder]:
            words = pages.words(header.text.split("\n\n")[0].replace("\n", " "))
            body.append(f'<tr><td><a href="{pages.to(header.address)}">{header.name}</a></td><td>{words}</td></tr>')
        body.append("</tbody></table></div>")
    sections.append(("Other languages", "other-languages"))
    body.append('<h2 id="other-languages">Other languages</h2><ul>')
    body += [f'<li><a href="{pages.resolve("../" + path)}">{path}</a>: {words}</li>' for path, words in OTHER_LANGUAGES]
    body.append("</ul>")
    pages.bodies[pages.here] = ("Reference", "\n".join(body), sections)


def make(pages):
    for header in pages.headers:
        make_page(pages, header)
    make_index(pages)
