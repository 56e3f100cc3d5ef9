"""Bugs that can be planted in a C source: each replaces one piece of its text, within a line."""
import collections
import hashlib
import os
import re

TOKEN = re.compile(r"""(?P<skip>/\*.*?\*/|//[^\n]*|\\\n|\s+)|(?P<directive>^\#[ \t]*\w+)
    |(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    |(?P<number>0x[\da-fA-F.]+(?:p[+-]?\d+)?\w*|\d*\.?\d+\.?(?:e[+-]?\d+)?\w*)|(?P<name>\w+)
    |(?P<operator>\#\#|->|\+\+|--|<<=|>>=|<<|>>|[-+*/%&|^<>=!]=|&&|\|\||\.\.\.|.)""", re.X | re.S | re.M)
BETWEEN = {"+": "-", "-": "+", "*": "/", "/": "*", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
           "&&": "||", "||": "&&"}
ASSIGNMENTS = {"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*="}
KIND = {"+": "sign", "-": "sign", "*": "factor", "/": "factor", "&&": "logic", "||": "logic"}
# Which operators and marks end what is dropped with the operator before it, beside brackets.
ENDS_TERM = {"+", "-", "<", ">", "<=", ">=", "==", "!=", "&", "|", "^", "<<", ">>", "&&", "||", "?", ":", ",", ";"}
ENDS_FACTOR = ENDS_TERM | {"*", "/", "%"}
ENDS_CONDITION = {"&&", "||", "?", ":", ",", ";"}
NOT_CALLED = {"if", "for", "while", "switch", "return", "sizeof", "_Alignof", "defined", "RAPT_MIN", "RAPT_MAX",
              "rapt_add", "rapt_mul"}
# What these are given decides about time alone, or about the text of a message.
BESIDE_THE_POINT = re.compile(r"^(rapt_fail\w*|rapt_warn\w*|fail|rapt_grain|__attribute__|_Static_assert|sizeof)$")
# Statements with such a name choose by speed.
SPEED = re.compile(r"cost|prefetch|worth|stream_past|likely")
# Not built on this system, or OpenBLAS's.
LEFT_OUT = re.compile(r"windows|/blas|tensor/system_")
# How many of 300 bugs are planted in which files.
SHARES = {"ops": (100, r"autograd/ops/.*\.[ch]|.*\.def"), "kernels": (50, r"tensor/kernels/.*\.[ch]"),
          "tensor": (30, r"tensor/[^/]*\.c"), "engine": (40, r"autograd/[^/]*\.c"), "nn": (60, r"nn/.*\.c"),
          "optim": (20, r"optim/[^/]*\.c")}

Token = collections.namedtuple("Token", "sort text begin end braces parentheses")
Bug = collections.namedtuple("Bug", "file group kind begin end text line before after")


def tokens_of(source):
    """Those of code: the bodies of functions and macros, the values of tables."""
    found, braces, parentheses, ends_at, in_macro = [], 0, 0, 0, False
    for match in TOKEN.finditer(source):
        begin, sort, text = match.start(), match.lastgroup, match[0]
        if begin < ends_at or sort == "skip":
            continue
        if in_macro and begin >= macro_end:
            in_macro, braces, parentheses = False, 0, 0
        if sort == "directive":
            macro_end = re.compile(r"(?<!\\)\n|\Z").search(source, begin).start()
            if text.endswith("define"):
                head = re.compile(r"\s*\w+(\([^)]*\))?").match(source, match.end())
                ends_at, in_macro, braces, parentheses = head.end(), True, 1, 0
            else:
                ends_at = macro_end
            continue
        if text in (")", "]"):
            parentheses -= 1
        if text == "}":
            braces -= 1
        found.append(Token(sort, text, begin, match.end(), braces, parentheses))
        if text in ("(", "["):
            parentheses += 1
        if text == "{":
            braces += 1
    return found


def closing(tokens, opening):
    """The place in the list of the bracket that closes the one at that place."""
    inside = (tokens[opening].braces, tokens[opening].parentheses)
    for i in range(opening + 1, len(tokens)):
        if tokens[i].text in (")", "]", "}") and (tokens[i].braces, tokens[i].parentheses) == inside:
            return i
    return len(tokens) - 1


def end_of_operand(tokens, operator, ends):
    for i in range(operator + 1, len(tokens)):
        t = tokens[i]
        if t.parentheses < tokens[operator].parentheses or t.braces < tokens[operator].braces:
            return tokens[i - 1].end
        if t.parentheses == tokens[operator].parentheses and t.text in ends and i > operator + 1:
            return tokens[i - 1].end
    return tokens[-1].end


def is_value(token):
    return token.sort in ("name", "number") and token.text != "return" or token.text in (")", "]")


def constants(text):
    """What is written in the place of a number."""
    if not re.fullmatch(r"\d+[uUlL]*", text):
        return [f"({text} + 1)"] if re.search(r"[.p]", text) and not text.startswith(".") else []
    digits = re.match(r"\d+", text)[0]
    suffix = text[len(digits):]
    return {"0": ["1" + suffix], "1": ["0" + suffix, "2" + suffix]}.get(digits, [f"{int(digits) + 1}{suffix}"])


def changes(source, is_table):
    """Bugs of a source: kind, begin, end, text."""
    tokens = tokens_of(source)
    skipped_until, begins = -1, 0
    for i in range(1, len(tokens) - 1):
        t, last, following = tokens[i], tokens[i - 1], tokens[i + 1]
        if last.text in (";", "{", "}"):
            begins = i
        if i <= skipped_until:
            continue
        # Sizes of types are no code.
        if t.text == "{" and any(k.text in ("enum", "struct", "union") for k in tokens[max(i - 2, 0):i]) or \
                t.text == "(" and BESIDE_THE_POINT.match(last.text):
            skipped_until = closing(tokens, i)
        if i <= skipped_until or not (t.braces or is_table):
            continue
        end_of_statement = source.find(";", t.begin)
        if SPEED.search(source[tokens[begins].begin:end_of_statement]):
            continue
        is_between = source[t.begin - 1].isspace() and source[t.end:t.end + 1].isspace() and is_value(last)
        if t.text in BETWEEN and is_between:
            kind = KIND.get(t.text, "comparison")
            yield kind, t.begin, t.end, BETWEEN[t.text]
            ends = ENDS_CONDITION if kind == "logic" else ENDS_TERM if kind == "sign" else ENDS_FACTOR
            if kind in ("logic", "sign", "factor"):
                yield "term", last.end, end_of_operand(tokens, i, ends), ""
        elif t.text in ASSIGNMENTS:
            yield KIND[t.text[0]], t.begin, t.end, ASSIGNMENTS[t.text]
        elif t.text in ("-", "!") and not is_value(last) and following.begin == t.end:
            yield "sign" if t.text == "-" else "logic", t.begin, t.end, ""
        elif t.text == "if" and following.text == "(":
            end = closing(tokens, i + 1)
            yield "logic", following.begin, tokens[end].end, f"(!{source[following.begin:tokens[end].end]})"
        elif t.text == "[" and last.sort == "name" and tokens[i + 2].text == "]" and following.sort == "name":
            declares = tokens[begins + 1].sort == "name" and "=" not in source[tokens[begins].begin:t.begin]
            if not declares and tokens[i - 2].sort != "name":
                yield "index", following.begin, following.end, following.text + " + 1"
        elif t.sort == "number" and not (is_table and last.text == "," and following.text == ","):
            for text in constants(t.text):
                yield "constant", t.begin, t.end, text
        elif t.text == "(" and last.sort == "name" and last.text not in NOT_CALLED:
            end = closing(tokens, i)
            commas = [k for k in range(i + 1, end) if tokens[k].text == "," and tokens[k].braces == t.braces and
                      tokens[k].parentheses == t.parentheses + 1]
            edges = [i] + commas + [end]
            for a, b, c in zip(edges, edges[1:], edges[2:]):
                one = source[tokens[a].end:tokens[b].begin].strip()
                other = source[tokens[b].end:tokens[c].begin].strip()
                if one != other:
                    yield "order", tokens[a + 1].begin, tokens[c - 1].end, f"{other}, {one}"
        if begins == i and t.sort == "name" and following.sort != "name":
            end = end_of_operand(tokens, i, {";"})
            statement = source[t.begin:end]
            if re.match(r"[\w.\[\]>-]+ ([-+*/]?=) ", statement) and source[end:end + 1] == ";":
                yield "statement", t.begin, end + 1, "{}"


def bugs_of(root, file, group):
    with open(os.path.join(root, file), encoding="utf-8") as opened:
        source = opened.read()
    for kind, begin, end, text in changes(source, file.endswith(".def")):
        if "\n" in source[begin:end]:
            continue
        first, last = source.rfind("\n", 0, begin) + 1, (source.find("\n", end) + len(source)) % len(source)
        before, after = source[first:last], source[first:begin] + text + source[end:last]
        yield Bug(file, group, kind, begin, end, text, source.count("\n", 0, begin) + 1, tidy(before), tidy(after))


def tidy(line):
    return re.sub(r"\s+", " ", line.rstrip("\\ ")).strip()


def all_bugs(root, files, seed):
    """For each group all that can be planted there, in the order in which they are: by the seed, kinds taking turns."""
    found = {}
    for group, (_, pattern) in SHARES.items():
        bugs = [bug for file in files if re.fullmatch(pattern, file) and not LEFT_OUT.search(file)
                for bug in bugs_of(root, file, group)]

        def draw(bug):
            return hashlib.sha256(f"{seed} {bug.file} {bug.before} {bug.after}".encode()).hexdigest()

        seen = collections.Counter()
        ranked = []
        for bug in sorted(bugs, key=draw):
            ranked.append((seen[bug.kind], draw(bug), bug))
            seen[bug.kind] += 1
        found[group] = [bug for *_, bug in sorted(ranked)]
    return found
