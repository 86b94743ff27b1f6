"""csource - C source as text: what check-sizes and measure count in it.  No preprocessor and no parser: braces, words and strings are enough.

SPDX-License-Identifier: Apache-2.0
"""
import re

# Everything whose braces do not count; blanked out with its line ends kept, so that line numbers stay.
COMMENT = r"/\*.*?\*/|//[^\n]*"
TEXT = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
NOISE = re.compile(rf"{COMMENT}|{TEXT}|^[ \t]*#(?:\\\n|[^\n])*", re.S | re.M)
TOKEN = re.compile(rf"(?P<comment>{COMMENT})|{TEXT}|[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.])*"
                   r"|\.\.\.|<<=|>>=|->|\+\+|--|&&|\|\||##|[-+*/%&|^=!<>]=|<<|>>|[^\s\w]", re.S)


def bare(text):
    """`text` without comments, strings and directives, of the same length."""
    return NOISE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def tokens(text):
    """Every token of `text`, those of directives included, comments left out."""
    return [m[0] for m in TOKEN.finditer(text) if not m["comment"]]


class Definition:
    """One definition or declaration at the outermost level: its head up to the body, what follows the body, the offsets it spans."""

    def __init__(self, head, tail, begin, end, is_function):
        self.head, self.tail, self.begin, self.end, self.is_function = head, tail, begin, end, is_function

    @property
    def words(self):
        return set(re.findall(r"\w+", self.head))

    @property
    def is_static(self):
        return "static" in self.words

    @property
    def names(self):
        """The function's name or the variables'; nothing for types and declarations."""
        if self.words & {"typedef", "extern", "_Static_assert", "static_assert"}:
            return []
        head = re.sub(r"__attribute__\s*\(\(.*?\)\)", " ", self.head, flags=re.S)
        if re.match(r"\s*(?:(?:static|const)\s+)*(?:struct|union|enum)(?:\s+\w+)?\s*$", head):
            head = self.tail
        elif self.is_function or "(" in head.split("=")[0]:
            return re.findall(r"(\w+)\s*\(", re.sub(r"\bKL_\w+\s*\([^()]*\)", " ", head) if "KL_" in head else head)[:1]
        found = [re.search(r"([A-Za-z_]\w*)\s*(?:\[.*\]\s*)?$", part.split("=")[0], re.S) for part in split(head)]
        return [m[1] for m in found if m]


def split(text):
    """The parts of `text` between commas outside of brackets."""
    depth, parts = 0, [""]
    for c in text:
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def definitions(text):
    """Each definition and declaration at the outermost level of a file."""
    source = bare(text)
    depth, closed, begin, head, is_function, c_linkage = 0, 0, None, None, False, 0
    for found in re.finditer(r"[{};]|[^\s{};]+", source):
        at, piece = found.start(), found[0]
        if piece == "{":
            if depth == 0 and begin is not None and re.fullmatch(r"extern\s*", source[begin:at]):
                begin, c_linkage = None, c_linkage + 1  # extern "C" {: the string is blank
                continue
            if depth == 0 and head is None:
                head = source[begin:at] if begin is not None else ""
                is_function = head.rstrip().endswith(")")
            depth += 1
        elif piece == "}":
            if depth == 0 and c_linkage:
                c_linkage -= 1
                begin = None
                continue
            depth -= 1
            closed = closed if closed or depth else at + 1
            if depth == 0 and is_function:
                yield Definition(head, "", begin, at + 1, True)
                begin, head, closed, is_function = None, None, 0, False
        elif piece == ";":
            if depth == 0 and begin is not None:
                tail = source[closed:at] if head is not None else ""
                yield Definition(head if head is not None else source[begin:at], tail, begin, at + 1, False)
                begin, head, closed = None, None, 0
        elif depth == 0 and begin is None:
            begin = at


def functions(text):
    """(first line, last line, name, tokens) of each function, signature and braces included."""
    for d in definitions(text):
        if d.is_function:
            yield (text.count("\n", 0, d.begin) + 1, text.count("\n", 0, d.end) + 1, d.names[0] if d.names else "?",
                   len(tokens(text[d.begin:d.end])))
