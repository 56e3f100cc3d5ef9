"""Markdown to HTML, as much of it as the guides use; a line that means nothing here is an error, not text.

Headings, paragraphs, lists of one level, tables, fenced code, pictures that stand alone, and in the text `code`,
**strong**, *emphasis* and [links](target)."""
import html
import re

KEYWORDS = set("""auto bool break case char const continue default do double else enum extern false float for if int
int32_t int64_t long NULL return short signed sizeof size_t static struct switch true typedef uint8_t uint64_t union
unsigned void while""".split())
TOKEN = re.compile(r"""(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|<[\w/]+\.h>)
    |(?P<directive>^\#\s*\w+)|(?P<word>[A-Za-z_]\w*)|(?P<number>\b\d[\w.]*)""", re.X | re.S | re.M)


class Error(Exception):
    pass


def highlight(code, link):
    """C as HTML; link(name) is where a name is explained, or None."""
    def colour(match):
        kind, text = match.lastgroup, html.escape(match.group(), quote=False)
        if kind == "word":
            target = link(match.group())
            if target:
                return f'<a href="{target}">{text}</a>'
            return f'<b class="keyword">{text}</b>' if match.group() in KEYWORDS else text
        return f'<span class="{kind}">{text}</span>'

    parts, place = [], 0
    for match in TOKEN.finditer(code):
        parts += [html.escape(code[place:match.start()], quote=False), colour(match)]
        place = match.end()
    return "".join(parts) + html.escape(code[place:], quote=False)


def slug(heading):
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", heading).lower()).replace(" ", "-")


def inline(text, site):
    """The text of a paragraph. site.resolve(target) gives links, site.code(text) the HTML of code."""
    # Code stands aside while the rest is looked at, so that its stars and brackets stay what they are.
    codes = re.findall(r"`([^`]+)`", text)
    text = html.escape(re.sub(r"`[^`]+`", "\0", text), quote=False)
    text = re.sub(r"\*\*(\S.*?)\*\*", r"<strong>\1</strong>", text)
    text = re.sub(r"(?<![\w*])\*(\S[^*]*?)\*(?!\w)", r"<em>\1</em>", text)
    text = re.sub(r"\[([^]]*)\]\(([^)]*)\)", lambda m: f'<a href="{html.escape(site.resolve(m[2]))}">{m[1]}</a>', text)
    parts, in_link = [], False
    for piece in re.split(r"(<a |</a>|\0)", text):
        in_link = piece == "<a " or (in_link and piece != "</a>")
        if piece == "\0":
            code = codes.pop(0)
            piece = f"<code>{html.escape(code, quote=False) if in_link else site.code(code)}</code>"
        parts.append(piece)
    return "".join(parts)


def split_row(line):
    cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [cell.strip().replace("\\|", "|") for cell in cells]


def table(lines, site):
    head, marks, *rows = [split_row(line) for line in lines]
    styles = [' class="number"' if mark.endswith(":") else "" for mark in marks]
    if any(len(row) != len(head) for row in [marks, *rows]):
        raise Error(f"a table with rows of different lengths: {lines[0]}")

    def row(cells, tag):
        shown = [f"<{tag}{style}>{inline(cell, site)}</{tag}>" for cell, style in zip(cells, styles)]
        return f"<tr>{''.join(shown)}</tr>"

    return ('<div class="wide"><table><thead>' + row(head, "th") + "</thead><tbody>"
            + "\n".join(row(cells, "td") for cells in rows) + "</tbody></table></div>")


def render(text, site):
    """HTML of a document, and its headings as (level, text, anchor)."""
    lines, out, headings, place = text.split("\n"), [], [], 0

    def take_while(condition):
        nonlocal place
        start = place
        while place < len(lines) and condition(lines[place]):
            place += 1
        return lines[start:place]

    while place < len(lines):
        line = lines[place]
        if not line.strip():
            place += 1
        elif match := re.match(r"```(\w*)(.*)$", line):
            place += 1
            code = "\n".join(take_while(lambda l: l.rstrip() != "```"))
            if place == len(lines):
                raise Error("a code block does not end")
            place += 1
            body = highlight(code, site.link) if match[1] == "c" else html.escape(code, quote=False)
            out.append(f'<pre class="{match[1] or "plain"}"><code>{body}</code></pre>')
        elif match := re.match(r"(#{1,4}) (.*)$", line):
            place += 1
            level, anchor = len(match[1]), slug(match[2])
            headings.append((level, match[2], anchor))
            mark = f' <a class="mark" href="#{anchor}" aria-label="Link to this section">#</a>' if level > 1 else ""
            out.append(f'<h{level} id="{anchor}">{inline(match[2], site)}{mark}</h{level}>')
        elif line.startswith("|"):
            out.append(table(take_while(lambda l: l.startswith("|")), site))
        elif match := re.match(r"(- |\d+\. )", line):
            tag, items = ("ul" if match[1] == "- " else "ol"), []
            for item in take_while(lambda l: re.match(r"- |\d+\. |  +\S", l)):
                if begin := re.match(r"(?:- |\d+\. )(.*)", item):
                    items.append(begin[1])
                else:
                    items[-1] += "\n" + item.strip()
            out.append(f"<{tag}>" + "\n".join(f"<li>{inline(item, site)}</li>" for item in items) + f"</{tag}>")
        elif match := re.match(r"!\[(.*)\]\((.*)\)$", line):
            place += 1
            out.append(f'<figure><img src="{site.picture(match[2])}" alt="{html.escape(match[1])}" loading="lazy">'
                       f"<figcaption>{inline(match[1], site)}</figcaption></figure>")
        elif re.match(r"[<>=+~]|    |\t", line):
            raise Error(f"this is no Markdown that the site knows: {line}")
        else:
            paragraph = take_while(lambda l: l.strip() and not re.match(r"```|#{1,4} |\||- |!\[", l))
            out.append(f"<p>{inline(chr(10).join(paragraph), site)}</p>")
    return "\n".join(out), headings
