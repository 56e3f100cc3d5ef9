#!/usr/bin/env python3
"""Builds the site of guides and reference: build.py FOLDER [--names FILE]

The folder is made, or replaced if it holds a site. Whatever is wrong (a declaration without a comment, a name that does not
exist, a dead link, Markdown that means nothing) is printed, and the status is 1. --names: the names that the library exports,
one a line, which must be those of the reference."""
import glob
import html
import json
import os
import re
import shutil
import sys

import headers
import markdown

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
HERE = os.path.dirname(os.path.realpath(__file__))
FOLDERS = [("tensor", "Tensors"), ("autograd", "Gradients"), ("nn", "Layers and models"), ("optim", "Training")]
MARK = "site.txt"  # a file by which a folder is known as one that may be replaced


def first_sentence(text):
    match = re.match(r"(.*?[.:;])(?:\s|$)", text.replace("\n", " "))
    return (match[1].rstrip(".:;") if match else text.replace("\n", " "))


def plain(source):
    """The words of a piece of HTML."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", source))).strip()


class Site:
    def __init__(self, out):
        self.out = out
        self.faults = []
        self.pages = {}  # address: (title, body, headings)
        self.sources = []  # files of the tree that guides link to
        self.pictures = set()
        self.index = []  # of the search: name, kind, address, text
        self.known = {}  # name: address
        self.fields = set()
        self.here = ""  # the address of the page that is made
        self.from_folder = "docs"  # where links of its source begin
        self.headers = []
        self.guides = []

    def fault(self, what):
        self.faults.append(f"{self.here}: {what}")

    def to(self, address):
        """An address of the site as a link from the present page."""
        path, hash_, anchor = address.partition("#")
        if path == self.here and anchor:
            return "#" + anchor
        return os.path.relpath(path, os.path.dirname(self.here) or ".") + hash_ + anchor

    # What the Markdown asks for.
    def link(self, name):
        return self.to(self.known[name]) if name in self.known else None

    def code(self, text):
        for name in re.findall(r"\brapt_\w+", text) if self.from_folder == "docs" else []:
            if name not in self.known and name not in self.fields and not name.endswith("_"):
                self.fault(f"there is no {name}")
        return markdown.highlight(text, self.link) if re.search(r"\b(rapt|RAPT)_", text) else html.escape(text, quote=False)

    def resolve(self, target):
        if re.match(r"https?://", target):
            return target
        path, hash_, anchor = target.partition("#")
        if not path:
            return target
        path = os.path.normpath(os.path.join(self.from_folder, path))
        if path.startswith("docs/") and path.endswith(".md"):
            return self.to(self.page_of(path) + hash_ + anchor)
        if not os.path.isfile(os.path.join(ROOT, path)):
            self.fault(f"a link to {target}, which is no file")
        if path not in self.sources:
            self.sources.append(path)
        return self.to(f"source/{path}.html")

    def picture(self, target):
        path = os.path.normpath(os.path.join(self.from_folder, target))
        if not path.startswith("docs/pictures/") or not os.path.isfile(os.path.join(ROOT, path)):
            self.fault(f"there is no picture {target}")
        self.pictures.add(os.path.basename(path))
        return self.to(f"pictures/{os.path.basename(path)}")

    @staticmethod
    def page_of(path):
        name = os.path.basename(path)[:-3]
        return "index.html" if name == "README" else f"{name}.html"

    # Reference
    def read_headers(self):
        for folder, _ in FOLDERS:
            for path in sorted(glob.glob(f"{ROOT}/{folder}/include/rapt/*.h")):
                name = os.path.basename(path)
                with open(path, encoding="utf-8") as file:
                    header = headers.read_header(name, file.read())
                header.folder = folder
                self.headers.append(header)
                for item in header.items:
                    for declaration in item.declarations:
                        address = f"reference/{name[:-2]}.html#{declaration.name}"
                        for known in [declaration.name, *declaration.also]:
                            self.known[known] = address
                        self.fields.update(declaration.fields)

    def comment(self, text):
        """A comment as HTML: paragraphs, lists of lines that begin with "- ", and indented code."""
        out = []
        for paragraph in re.split(r"\n\s*\n", text):
            lines, kind = [], None
            for line in [*paragraph.split("\n"), None]:
                now = None if line is None else "code" if line.startswith("    ") else \
                    "item" if line.startswith("- ") else "item" if kind == "item" and line.startswith("  ") else "text"
                if now != kind and lines:
                    out.append({"code": lambda: f"<pre class='c'><code>{markdown.highlight(chr(10).join(l[4:] for l in lines), self.link)}</code></pre>",
                                "item": lambda: "<ul>" + "".join(f"<li>{self.words(item)}</li>" for item in
                                                                 re.split(r"(?:^|\n)- ", "\n".join(lines))[1:]) + "</ul>",
                                "text": lambda: f"<p>{self.words(chr(10).join(lines))}</p>"}[kind]())
                    lines = []
                kind = now
                if line is not None:
                    lines.append(line)
        return "\n".join(out)

    def words(self, text):
        """Text of a comment, in which names are links."""
        def name(match):
            if match[1] in self.known:
                return f'<a href="{self.to(self.known[match[1]])}"><code>{match[1]}</code></a>'
            if match[1].startswith("rapt_") and match[1] not in self.fields:
                self.fault(f"there is no {match[1]}")
            return f"<code>{match[1]}</code>"
        return re.sub(r"\b((?:rapt|RAPT)_\w*\w)\b(?!_?…)", name, html.escape(text, quote=False).replace("`", ""))

    def declaration(self, declaration, shown):
        address = self.known[declaration.name]
        anchor = ""
        if address not in shown:  # of a struct that is announced first, the announcement
            shown.add(address)
            anchor = f' id="{declaration.name}"'
        own = lambda name: None if name == declaration.name else self.link(name)
        behind = f"<p class='behind'>{self.words(declaration.behind)}</p>" if declaration.behind else ""
        return f"<pre class='c declaration'{anchor}><code>{markdown.highlight(declaration.code, own)}</code></pre>{behind}"

    def reference(self, header):
        self.here = f"reference/{header.name[:-2]}.html"
        body, headings, shown, names = [], [], set(), []
        for item in header.items:
            if item.kind == "section":
                title, _, more = item.text.partition("\n")
                first, _, rest = title.partition("; ")
                anchor = markdown.slug(first)
                headings.append((2, first, anchor))
                body.append(f'<h2 id="{anchor}">{html.escape(first)}</h2>')
                body += [self.comment(part[:1].upper() + part[1:]) for part in (rest, more) if part]
            elif item.kind == "prose":
                body.append(self.comment(item.text))
            else:
                body.append("<section>" + "\n".join(self.declaration(d, shown) for d in item.declarations)
                            + (self.comment(item.text) if item.text else "") + "</section>")
                for d in item.declarations:
                    if not item.text and not d.behind:
                        self.fault(f"{d.name} has no comment")
                    if d.name not in names:
                        names.append(d.name)
                    words = " ".join([d.behind, item.text, " ".join(d.also), " ".join(d.fields)])
                    if self.known[d.name].startswith(self.here):
                        self.index.append([d.name, d.kind, self.known[d.name], re.sub(r"\s+", " ", words).strip()])
        links = " ".join(f'<a href="#{name}">{name}</a>' for name in names)
        overview = f'<details><summary>{len(names)} names</summary><p class="names">{links}</p></details>' if names else ""
        if not header.text:
            self.fault("the header has no comment")
        title = f"rapt/{header.name}"
        self.pages[self.here] = (title, f"<h1>{title}</h1>\n{self.comment(header.text)}\n{overview}\n" + "\n".join(body),
                                 headings)
        self.index.append([title, "header", self.here, header.text.replace("\n", " ")])

    def reference_index(self):
        self.here = "reference/index.html"
        body = ["<h1>Reference</h1>", "<p>Every public declaration, from the comments of the header files. A program "
                "includes <code>rapt.h</code>, which includes them all. What holds everywhere: a function that fails gives "
                "<code>NULL</code> or <code>false</code> and keeps the first error "
                f'(<a href="{self.to("reference/error.html")}">rapt/error.h</a>), and <code>NULL</code> goes in and comes '
                f'out; a tensor belongs to the innermost scope (<a href="{self.to("scopes.html")}">Thinking in scopes</a>).'
                "</p>"]
        headings = []
        for folder, title in FOLDERS:
            headings.append((2, title, folder))
            body.append(f'<h2 id="{folder}">{title}</h2><div class="wide"><table><tbody>')
            for header in self.headers:
                if header.folder == folder:
                    body.append(f'<tr><td><a href="{header.name[:-2]}.html">{header.name}</a></td>'
                                f"<td>{self.words(header.text.split(chr(10) + chr(10))[0].replace(chr(10), ' '))}</td></tr>")
            body.append("</tbody></table></div>")
        others = [("include/rapt.hpp", "C++: handles, operators and exceptions"), ("fortran/rapt.f90", "Fortran: a module"),
                  ("python/rapt/__init__.py", "Python: a package by ctypes")]
        headings.append((2, "Other languages", "languages"))
        body.append('<h2 id="languages">Other languages</h2><ul>')
        self.from_folder = "."
        body += [f'<li><a href="{self.resolve(path)}">{path}</a>: {words}</li>' for path, words in others]
        self.from_folder = "docs"
        body.append("</ul>")
        self.pages[self.here] = ("Reference", "\n".join(body), headings)

    # Guides
    def guide(self, path):
        self.here = self.page_of(path)
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            text = file.read()
        try:
            body, headings = markdown.render(text, self)
        except markdown.Error as error:
            self.fault(error)
            return
        title = headings[0][1]
        self.pages[self.here] = (title, body, headings[1:])
        if path != "docs/README.md":
            parts = re.split(r"(?=<h[12] id=)", body)
            for part in filter(None, parts):
                level, anchor = re.match(r'<h([12]) id="([^"]*)"', part).groups()
                heading = plain(re.search(r"<h\d[^>]*>(.*?)</h\d>", part, re.S)[1]).removesuffix(" #")
                self.index.append([heading if level == "1" else f"{title}: {heading}", "guide",
                                   self.here + ("" if level == "1" else f"#{anchor}"), plain(part)])

    def read_guides(self):
        with open(f"{ROOT}/docs/README.md", encoding="utf-8") as file:
            self.guides = re.findall(r"\]\(([\w-]+\.md)\)", file.read())
        written = {os.path.basename(path) for path in glob.glob(f"{ROOT}/docs/*.md")} - {"README.md"}
        for name in sorted(written ^ set(self.guides)):
            self.here = "docs/README.md"
            self.fault(f"{name} is not both written and listed")
        self.guides = [name for name in self.guides if name in written]
        self.guide("docs/README.md")
        for name in self.guides:
            self.guide(f"docs/{name}")

    def source(self, path):
        self.here = f"source/{path}.html"
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            text = file.read()
        if path.endswith(".md"):
            self.from_folder = os.path.dirname(path) or "."
            try:
                body, headings = markdown.render(text, self)
            except markdown.Error as error:
                self.fault(error)
                return
            self.from_folder = "docs"
            self.pages[self.here] = (headings[0][1], body, headings[1:])
            return
        shown = markdown.highlight(text, self.link) if re.search(r"\.(c|h|hpp)$", path) else html.escape(text, quote=False)
        self.pages[self.here] = (path, f"<h1>{path}</h1><pre class='c'><code>{shown}</code></pre>", [])

    # The whole
    def navigation(self):
        def entry(address, title):
            if address != self.here:
                return f'<li><a href="{self.to(address)}">{html.escape(title)}</a></li>'
            inner = "".join(f'<li><a href="#{anchor}">{html.escape(re.sub("[`*]", "", text))}</a></li>'
                            for level, text, anchor in self.pages[address][2] if level == 2)
            return f'<li class="here"><a href="#top">{html.escape(title)}</a>' + (f"<ul>{inner}</ul>" if inner else "") + "</li>"

        out = ["<h2>Guides</h2><ul>"]
        out += [entry(self.page_of(name), self.pages[self.page_of(name)][0]) for name in self.guides
                if self.page_of(name) in self.pages]
        out.append(f'</ul><h2><a href="{self.to("reference/index.html")}">Reference</a></h2>')
        for folder, title in FOLDERS:
            out.append(f"<h3>{title}</h3><ul>")
            out += [entry(f"reference/{h.name[:-2]}.html", h.name) for h in self.headers if h.folder == folder]
            out.append("</ul>")
        return "\n".join(out)

    def neighbours(self):
        """Links to the guides before and after."""
        order = [self.page_of(name) for name in self.guides]
        if self.here not in order:
            return ""
        place, out = order.index(self.here), []
        if place > 0:
            out.append(f'<a rel="prev" href="{order[place - 1]}">← {self.pages[order[place - 1]][0]}</a>')
        if place + 1 < len(order):
            out.append(f'<a rel="next" href="{order[place + 1]}">{self.pages[order[place + 1]][0]} →</a>')
        return '<nav class="neighbours">' + "".join(out) + "</nav>"

    def write(self):
        with open(f"{HERE}/page.html", encoding="utf-8") as file:
            frame = file.read()
        os.makedirs(self.out)
        self.put(MARK, "Made by docs/site/build.py; it replaces this folder.\n")
        for address, (title, body, _) in self.pages.items():
            self.here = address
            values = {"title": html.escape(plain(title)), "body": body + self.neighbours(), "navigation": self.navigation(),
                      "root": os.path.relpath(".", os.path.dirname(address) or ".") + "/"}
            self.put(address, re.sub(r"\{(\w+)\}", lambda m: values.get(m[1], m[0]), frame))
        for name in ["style.css", "search.js"]:
            shutil.copy(f"{HERE}/{name}", self.out)
        with open(f"{self.out}/search_index.js", "w", encoding="utf-8") as file:
            file.write("const searchIndex = " + json.dumps(self.index, ensure_ascii=False, separators=(",", ":")) + ";\n")
        for name in sorted(self.pictures):
            os.makedirs(f"{self.out}/pictures", exist_ok=True)
            if os.path.isfile(f"{ROOT}/docs/pictures/{name}"):
                shutil.copy(f"{ROOT}/docs/pictures/{name}", f"{self.out}/pictures")

    def put(self, address, text):
        path = os.path.join(self.out, address)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def check_links(self):
        """Every link of every page leads to a file and an anchor that are there."""
        anchors, links = {}, []
        for address in self.pages:
            with open(os.path.join(self.out, address), encoding="utf-8") as file:
                text = file.read()
            ids = re.findall(r'\bid="([^"]*)"', text)
            anchors[address] = set(ids)
            for twice in sorted({name for name in ids if ids.count(name) > 1}):
                self.here = address
                self.fault(f"the anchor {twice} is there twice")
            links += [(address, html.unescape(link)) for link in re.findall(r'\b(?:href|src)="([^"]*)"', text)]
        links += [("index.html", entry[2]) for entry in self.index]
        for address, link in links:
            if re.match(r"https?://", link):
                continue
            path, _, anchor = link.partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(address), path)) if path else address
            self.here = address
            if not os.path.isfile(os.path.join(self.out, target)):
                self.fault(f"a dead link to {link}")
            elif anchor and anchor not in anchors.get(target, ()):
                self.fault(f"a link to {link}, but there is no such section")

    def check_names(self, path):
        """The functions of the reference are those that the library exports."""
        with open(path, encoding="utf-8") as file:
            exported = {line.strip() for line in file if line.strip()}
        described = {name for name, kind, _, _ in self.index if kind == "function"}
        self.here = "reference"
        for name in sorted(exported ^ described):
            self.fault(f"{name} is {'exported, but not described' if name in exported else 'described, but not exported'}")


def main(arguments):
    names = arguments[arguments.index("--names") + 1] if "--names" in arguments else None
    if not arguments or arguments[0].startswith("-"):
        sys.exit("usage: build.py FOLDER [--names FILE]")
    out = os.path.abspath(arguments[0])
    if os.path.isdir(out) and os.listdir(out) and not os.path.isfile(f"{out}/{MARK}"):
        sys.exit(f"build.py: {out} holds something else than a site: name a new folder")
    shutil.rmtree(out, ignore_errors=True)
    site = Site(out)
    site.read_headers()
    site.read_guides()
    for header in site.headers:
        site.reference(header)
    site.reference_index()
    for path in site.sources:  # grows while it is walked
        site.source(path)
    site.write()
    site.check_links()
    if names:
        site.check_names(names)
    for fault in site.faults:
        print(f"docs: {fault}", file=sys.stderr)
    functions = sum(kind == "function" for _, kind, _, _ in site.index)
    print(f"docs: {len(site.guides)} guides, {len(site.headers)} header files, {functions} functions, "
          f"{len(site.faults)} faults: {out}/index.html")
    return bool(site.faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
