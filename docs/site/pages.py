"""The pages of the site while they are made: what links to what, and what is wrong."""
import html
import os
import re

import text

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
FOLDERS = [("tensor", "Tensors"), ("autograd", "Gradients"), ("nn", "Layers and models"), ("optim", "Training"),
           ("mpi", "Many machines")]


def plain(source):
    """The words of a piece of HTML."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", source))).strip()


def page_of(path):
    """The address of a guide."""
    name = os.path.basename(path)[:-3]
    return "index.html" if name == "README" else f"{name}.html"


class Pages:
    def __init__(self):
        self.faults = []
        self.bodies = {}  # address: (title, HTML, sections as (heading, anchor))
        self.index = []  # of the search: name, kind, address, text
        self.sources = []  # files of the tree that pages link to
        self.pictures = set()
        self.headers = []
        self.guides = []  # their files' names, in the order in which docs/README.md lists them
        self.known = {}  # name: address
        self.fields = set()  # of structs
        self.here = ""  # the address of the page that is made
        self.from_folder = "docs"  # where the links in its source begin

    def fault(self, what):
        self.faults.append(f"{self.here}: {what}")

    def to(self, address):
        """An address of the site as a link from the present page."""
        path, hash_, anchor = address.partition("#")
        if path == self.here and anchor:
            return "#" + anchor
        return os.path.relpath(path, os.path.dirname(self.here) or ".") + hash_ + anchor

    def link(self, name):
        """Where a name of the library is explained, or None."""
        return self.to(self.known[name]) if name in self.known else None

    def check_names(self, words):
        """Names of functions and types must exist, but in pages that are no guides."""
        for name in re.findall(r"\brapt_\w*[a-z0-9]\b(?!_?…)", words) if self.from_folder == "docs" else []:
            if name not in self.known and name not in self.fields:
                self.fault(f"there is no {name}")

    def resolve(self, target):
        """A link of a Markdown file as a link of the site: guides are pages, other files of the tree become some."""
        if re.match(r"https?://", target):
            return target
        path, hash_, anchor = target.partition("#")
        if not path:
            return target
        path = os.path.normpath(os.path.join(self.from_folder, path))
        if path.startswith("docs/") and path.endswith(".md"):
            return self.to(page_of(path) + hash_ + anchor)
        if not os.path.isfile(os.path.join(ROOT, path)):
            self.fault(f"a link to {target}, which is no file")
        elif path not in self.sources:
            self.sources.append(path)
        return self.to(f"source/{path}.html") + hash_ + anchor

    def picture(self, target):
        path = os.path.normpath(os.path.join(self.from_folder, target))
        if not path.startswith("docs/pictures/") or not os.path.isfile(os.path.join(ROOT, path)):
            self.fault(f"there is no picture {target}")
        else:
            self.pictures.add(os.path.basename(path))
        return self.to(f"pictures/{os.path.basename(path)}")

    def words(self, comment):
        """The text of a comment, in which names are links."""
        def name(match):
            target = self.link(match[1])
            return f'<a href="{target}"><code>{match[1]}</code></a>' if target else f"<code>{match[1]}</code>"

        self.check_names(comment)
        return text.NAME.sub(name, html.escape(comment, quote=False).replace("`", ""))

    def comment(self, words):
        """A comment as HTML: paragraphs, lists of lines that begin with "- ", and indented code."""
        makers = {"code": self.comment_code, "item": self.comment_list, "text": self.paragraph}
        out = []
        for paragraph in re.split(r"\n\s*\n", words):
            lines, kind = [], None
            for line in [*paragraph.split("\n"), None]:
                now = self.kind_of_line(line, kind)
                if now != kind and lines:
                    out.append(makers[kind](lines))
                    lines = []
                kind = now
                if line is not None:
                    lines.append(line)
        return "\n".join(out)

    @staticmethod
    def kind_of_line(line, before):
        if line is None:
            return None
        if line.startswith("    "):
            return "code"
        return "item" if line.startswith("- ") or (before == "item" and line.startswith("  ")) else "text"

    def paragraph(self, lines):
        return f"<p>{self.words(chr(10).join(lines))}</p>"

    def comment_code(self, lines):
        return text.show_block("c", "\n".join(line[4:] for line in lines), self)

    def comment_list(self, lines):
        items = re.split(r"(?:^|\n)- ", "\n".join(lines))[1:]
        return "<ul>" + "".join(f"<li>{self.words(item)}</li>" for item in items) + "</ul>"
