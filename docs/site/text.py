"""Code and Markdown as HTML, by Pygments and Python-Markdown, with the names and links of the site in them."""
import html
import re
import xml.etree.ElementTree as etree

import markdown
import markdown.extensions.toc
import markdown.treeprocessors
import pygments
import pygments.formatters
import pygments.lexers
import pygments.util

SPAN = re.compile(r'<span class="\w+">((?:rapt|RAPT)_\w+)</span>')
BLOCK = re.compile(r'<pre><code(?: class="language-(\w+)")?>(.*?)</code></pre>', re.S)
NAME = re.compile(r"\b((?:rapt|RAPT)_\w+)\b")
slug = markdown.extensions.toc.slugify


def highlight(code, language, link):
    """Code as HTML; link(name) is where a name of the library is explained, or None."""
    try:
        lexer = pygments.lexers.get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except pygments.util.ClassNotFound:
        return html.escape(code, quote=False)
    shown = pygments.highlight(code, lexer, pygments.formatters.HtmlFormatter(nowrap=True)).removesuffix("\n")
    return SPAN.sub(lambda span: f'<a href="{link(span[1])}">{span[1]}</a>' if link(span[1]) else span[1], shown)


class SiteLinks(markdown.treeprocessors.Treeprocessor):
    """Links lead to pages of the site, names in code to the reference; a paragraph that is a picture is a figure."""

    def __init__(self, md, pages):
        super().__init__(md)
        self.pages = pages

    def run(self, root):
        for link in root.iter("a"):
            link.set("href", self.pages.resolve(link.get("href")))
        in_links = {code for link in root.iter("a") for code in link.iter("code")}
        for code in [code for code in root.iter("code") if code not in in_links]:
            self.link_names(code)
        for paragraph in root.iter("p"):
            if len(paragraph) == 1 and paragraph[0].tag == "img" and not (paragraph.text or "").strip():
                self.make_figure(paragraph)
        for number, element in enumerate(list(root)):
            if element.tag == "table":  # which may be wider than a telephone
                root[number] = etree.Element("div", {"class": "wide"})
                root[number].append(element)

    def link_names(self, code):
        self.pages.check_names(code.text)
        before, *rest = NAME.split(html.unescape(code.text))
        code.text = markdown.util.AtomicString(before)
        for name, text in zip(rest[::2], rest[1::2]):
            target = self.pages.link(name)
            part = etree.SubElement(code, "a" if target else "span", {"href": target} if target else {})
            part.text, part.tail = markdown.util.AtomicString(name), markdown.util.AtomicString(text)

    def make_figure(self, paragraph):
        picture = paragraph[0]
        picture.set("src", self.pages.picture(picture.get("src")))
        paragraph.tag, paragraph.text = "figure", None
        etree.SubElement(paragraph, "figcaption").text = picture.get("alt")


def render(text, pages):
    """A document as its title, its HTML and its sections, (heading, anchor)."""
    md = markdown.Markdown(extensions=["fenced_code", "tables", "sane_lists", "toc"],
                           extension_configs={"toc": {"permalink": "#", "permalink_class": "mark",
                                                      "permalink_title": "Link to this section"}})
    md.treeprocessors.register(SiteLinks(md, pages), "site", 8)  # after inline text, and before toc adds its links
    body = BLOCK.sub(lambda block: show_block(block[1] or "text", html.unescape(block[2]), pages), md.convert(text))
    title = md.toc_tokens[0]
    return html.unescape(title["name"]), body, [(html.unescape(s["name"]), s["id"]) for s in title["children"]]


def show_block(language, code, pages):
    return f'<pre class="{language}"><code>{highlight(code, language, pages.link)}</code></pre>'
