# SPDX-License-Identifier: BSD-2-Clause
"""Reads expressions of PromQL as far as needed to say which metrics and labels they use. It refuses brackets that do not match."""
import re
from dataclasses import dataclass

TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[A-Za-z_:][\w:]*|[=!]~|[=!<>]=|\[[^][]*\]|\d[\w.]*|[-+*/%^<>=(){},])')
MATCHER = re.compile(r'([a-z_]+)(=|!=|=~|!~)"((?:[^"\\]|\\.)*)"')
BY, PLACE = {"by", "without"}, {"on", "ignoring", "group_left", "group_right"}
WORDS = BY | PLACE | {"and", "or", "unless", "offset", "bool"}
PAIRS = {")": "(", "}": "{"}


@dataclass
class Use:
    """A metric in an expression: by which functions and labels of aggregations it is enclosed, and the labels that it is chosen by."""

    name: str
    functions: list
    groups: list
    matchers: list


def tokens(text):
    at, found = 0, []
    while text[at:].strip():
        m = TOKEN.match(text, at)
        if not m:
            raise ValueError(f"no PromQL from {text[at:at + 20]!r} on: {text}")
        found.append(m.group(1))
        at = m.end()
    return found


def check_brackets(words, text):
    opened = []
    for w in words:
        if w in PAIRS.values():
            opened.append(w)
        elif w in PAIRS and (not opened or opened.pop() != PAIRS[w]):
            raise ValueError(f"{w} too many: {text}")
    if opened:
        raise ValueError(f"{opened[-1]} is not closed: {text}")


def labels_from(words, at):
    """The list in brackets at that place, and the place behind it."""
    end = words.index(")", at)
    return [w for w in words[at + 1:end] if w != ","], end + 1


def matchers_from(words, at):
    if at >= len(words) or words[at] != "{":
        return [], at
    end = words.index("}", at)
    parts = [MATCHER.fullmatch("".join(words[i:i + 3])) for i in range(at + 1, end, 4)]
    if not all(parts) or any(w != "," for w in words[at + 4:end:4]):
        raise ValueError("no matchers: " + "".join(words[at:end + 1]))
    return [p.groups() for p in parts], end + 1


def uses(text):
    """All metrics of an expression."""
    words = tokens(text)
    check_brackets(words, text)
    found, around, function, group, at = [], [], None, None, 0
    while at < len(words):
        w = words[at]
        at += 1
        if w in BY | PLACE and words[at:at + 1] == ["("]:
            names, at = labels_from(words, at)
            if w in BY:
                group = names
        elif w == "(":
            around.append((function, group))
            function = group = None
        elif w == ")":
            around.pop()
        elif re.match("[A-Za-z_:]", w) and w not in WORDS:
            if words[at:at + 1] == ["("] or words[at:at + 1] and words[at] in BY:
                function = w
                continue
            matchers, at = matchers_from(words, at)
            found.append(Use(w, [f for f, _ in around if f], [g for _, g in around if g is not None], matchers))
    return found
