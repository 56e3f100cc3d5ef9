"""Reads the public headers: every declaration with the comment that documents it. (Doxygen takes a comment for the
first declaration behind it alone: every fifth of our functions, which share one, would have none.)

A comment stands above what it documents, or behind it on its line. One above several declarations without an empty
line between them documents all of them up to the next comment. `--- words ---` begins a section; a comment
followed by an empty line or by another comment is prose of its own."""
import dataclasses
import re


@dataclasses.dataclass
class Item:
    kind: str  # "section", "prose" or "declarations"
    text: str = ""  # the comment
    declarations: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Declaration:
    name: str
    kind: str  # "function", "macro", "struct", "enum" or "type"
    code: str  # as the header has it, without RAPT_API
    also: list = dataclasses.field(default_factory=list)  # constants of an enum
    fields: list = dataclasses.field(default_factory=list)  # of a struct
    behind: str = ""  # the comment behind it


@dataclasses.dataclass
class Header:
    name: str  # "ops.h"
    text: str  # its first comment
    includes: list
    items: list


def read_comment(raw):
    """The text between the marks, without the stars that begin its lines."""
    body = raw.strip()[2:-2]
    return "\n".join(re.sub(r"^\s*\*? ?", "", line, count=1) if number else line.strip()
                     for number, line in enumerate(body.splitlines())).strip()


def drop_cplusplus(text):
    """What a C compiler sees of `#ifdef __cplusplus` and `#ifndef __cplusplus`."""
    kept, depth, hidden = [], 0, None
    for line in text.splitlines():
        if re.match(r"#\s*if", line):
            depth += 1
            if "__cplusplus" in line:
                hidden = [depth, "ifndef" not in line]
                continue
        elif hidden and depth == hidden[0] and re.match(r"#\s*else", line):
            hidden[1] = not hidden[1]
            continue
        elif re.match(r"#\s*endif", line):
            depth -= 1
            if hidden and depth < hidden[0]:
                hidden = None
                continue
        if not (hidden and hidden[1]):
            kept.append(line)
    return "\n".join(kept) + "\n"


COMMENT = re.compile(r"/\*.*?\*/", re.S)
DIRECTIVE = re.compile(r"#(?:[^\n\\]|\\.|\\\n)*", re.S)


def split_chunks(text):
    """(kind, text) of comments, directives and declarations, and of the empty lines between them."""
    place = 0
    while place < len(text):
        if text[place] == "\n":
            if text.startswith("\n\n", place):
                yield "empty", ""
            place += 1
        elif text[place].isspace():
            place += 1
        elif match := COMMENT.match(text, place):
            yield "comment", match.group()
            place = match.end()
        elif match := DIRECTIVE.match(text, place):
            yield "directive", match.group()
            place = match.end()
        elif match := re.compile(r"(RAPT_BEGIN_DECLS|RAPT_END_DECLS)\n").match(text, place):
            place = match.end() - 1
        else:
            end, depth = place, 0
            while text[end] != ";" or depth:
                if match := COMMENT.match(text, end):
                    end = match.end()
                    continue
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
            end += 1
            yield "declaration", text[place:end]
            place = end
            if match := re.compile(r" +(/\*.*?\*/)", re.S).match(text, place):
                yield "behind", match.group(1)
                place = match.end()


def name_fields(body):
    """The members' names in the body of a struct."""
    bare = COMMENT.sub("", body)
    names = re.findall(r"\(\*(\w+)\)\(", bare)
    for member in re.sub(r"\([^;]*\)", "", bare).split(";"):
        member = re.sub(r"\[[^]]*\]|.*[{}]", "", member).strip()
        if " " in member:
            first, *others = member.split(",")
            names += [re.split(r"[\s*]+", part.strip())[-1] for part in [first, *others]]
    return [name for name in names if name]


def read_declaration(code):
    code = re.sub(r"^RAPT_API ", "", code)
    code = re.sub(r"\s*__attribute__\(\(.*\)\);$", ";", code, flags=re.S)
    # Lines after the first hang behind the name, which has moved.
    bare = COMMENT.sub("", code)
    if match := re.match(r"typedef enum (\w+) \{|enum (\w+) \{", bare):
        constants = re.findall(r"\b(RAPT_\w+)\b", bare[bare.index("{"):bare.rindex("}")])
        return Declaration(match[1] or match[2], "enum", code, also=constants)
    if match := re.match(r"(?:typedef )?struct (\w+) \{", bare):
        return Declaration(match[1], "struct", code, fields=name_fields(code[code.index("{") + 1:code.rindex("}")]))
    if match := re.match(r"typedef struct (\w+) \w+;$|struct (\w+);$", bare):
        return Declaration(match[1] or match[2], "struct", code)
    if match := re.match(r"typedef [^(]*?(\w+)(?:\(|;$)", bare):
        return Declaration(match[1], "type", code)
    if match := re.match(r"[^(]*?\b(\w+)\(", bare):
        return Declaration(match[1], "function", unhang(code))
    raise ValueError(f"what is declared here? {code}")


def unhang(code):
    """The parameters' lines, indented by where they stood behind RAPT_API, moved to where they belong now."""
    lines = code.splitlines()
    return "\n".join([lines[0]] + [" " * (lines[0].index("(") + 1) + line.strip() for line in lines[1:]])


def read_header(name, text):
    guard = f"RAPT_{re.sub(r'[^A-Z0-9]', '_', name.upper())}"
    header = Header(name, "", re.findall(r"#include <(rapt/\w+\.h)>", text), [])
    chunks = list(split_chunks(drop_cplusplus(text)))
    pending, current = None, None  # a comment that waits for what it documents, and the item that takes declarations

    def let_go():
        nonlocal pending
        if pending is None:
            return
        if not header.text and not header.items:
            header.text = pending
        elif match := re.match(r"--- (.*?) ---\s*(.*)$", pending, re.S):
            header.items.append(Item("section", match[1].replace("\n", " ") + ("\n" + match[2] if match[2] else "")))
        else:
            header.items.append(Item("prose", pending))
        pending = None

    for kind, code in chunks:
        if kind == "comment":
            let_go()
            pending, current = read_comment(code), None
        elif kind == "behind":
            current.declarations[-1].behind = read_comment(code)
        elif kind == "empty":
            let_go()
            current = None
        else:
            if kind == "directive":
                match = re.match(r"#define (\w+)(\([^)]*\))?", code)
                if not match or match[1] == guard or match[1].endswith("_"):
                    # a macro that differs by compiler has its comment above the #if
                    if not header.text or not re.match(r"#\s*(if|define)", code):
                        let_go()
                    continue
                tail = code[match.end():].strip()
                shown = match.group() + (f" {tail}" if tail and "\n" not in tail and len(tail) < 60 else "")
                declaration = Declaration(match[1], "macro", shown)
            else:
                declaration = read_declaration(code)
            if pending is not None and (pending.startswith("---") or not header.text):
                let_go()
            if pending is not None or current is None:
                current = Item("declarations", pending or "")
                header.items.append(current)
                pending = None
            current.declarations.append(declaration)
    let_go()
    return header
