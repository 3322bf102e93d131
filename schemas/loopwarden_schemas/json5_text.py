"""A JSON5 text as a JSON value, with the line of every key and element, and all of it that no JSON value can hold.

The grammar is the `json-five` package's; here its model becomes a plain value, and its words become ours.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field

from json5.loader import ModelLoader, loads
from json5.model import (
    BooleanLiteral,
    Identifier,
    JSONArray,
    JSONObject,
    JSONText,
    Key,
    Node,
    Number,
    String,
    UnaryOp,
)
from json5.utils import JSON5DecodeError

from loopwarden_schemas.canonical import MAX_NESTING

Place = tuple[str | int, ...]

_TOKENS = {
    "COLON": "':'",
    "COMMA": "','",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "LBRACKET": "'['",
    "RBRACKET": "']'",
    "key": "a key",
    "value": "a value",
}
_OPAQUE = re.compile(
    r"""
    "[^"\\]*(?:\\.[^"\\]*)*"?  | '[^'\\]*(?:\\.[^'\\]*)*'?  # texts, to the end where they are not closed
    | //[^\n]*  | /\*.*?\*/  | (?P<unclosed>/\*)
    """,
    re.VERBOSE | re.DOTALL,
)
"""What a `/*` may stand in without beginning a comment, comments, and comments without an end."""


class Json5Error(ValueError):
    """The text is no JSON5.

    Attributes:
        rule: What must stand there.
        found: What stands there, or None at the end of the text.
        line: The line, from 1.
    """

    def __init__(self, rule: str, found: str | None, line: int) -> None:
        super().__init__(f"{rule} (line {line})")
        self.rule = rule
        self.found = found
        self.line = line


@dataclass
class Json5Text:
    """What a JSON5 text holds.

    Attributes:
        value: The JSON value. Of a key given twice the last one counts, as in JavaScript.
        lines: The line (from 1) of the key or element at each place.
        repeated: Places of keys given twice, with the lines of the earlier and the later one.
        impossible: Places of what JSON cannot say, with the rule and the text found.
    """

    value: object = None
    lines: dict[Place, int] = field(default_factory=dict)
    repeated: list[tuple[Place, int, int]] = field(default_factory=list)
    impossible: list[tuple[Place, str, str | None]] = field(default_factory=list)


def read_json5(text: str) -> Json5Text:
    """Read a text.

    Raises:
        Json5Error: it is not JSON5.
    """
    # To find no end of a comment takes json-five's tokenizer time exponential in the number of lines that follow.
    for token in _OPAQUE.finditer(text):
        if token.lastgroup == "unclosed":
            line = text.count("\n", 0, token.start()) + 1
            raise Json5Error("not valid JSON5: a comment that begins with /* must end with */", None, line)
    # json-five looks for \x and \u escapes without skipping escaped backslashes, so that "C:\\xampp" is an error to it
    # and "\\u0041" an A. An escaped backslash that is spelled as \u005c is read right.
    try:
        model = loads(text.replace("\\\\", "\\u005c"), loader=ModelLoader())
    except JSON5DecodeError as error:
        raise _in_our_words(error, text) from None
    except ValueError:
        # Python's own limit on the digits of an integer.
        raise Json5Error("numbers must have at most 4300 digits", None, 1) from None
    assert isinstance(model, JSONText)
    read = Json5Text()
    read.lines[()] = 1
    read.value = _value(model.value, (), read)
    return read


def _value(node: Node, place: Place, read: Json5Text) -> object:
    if isinstance(node, (JSONObject, JSONArray)):
        if len(place) >= MAX_NESTING:
            read.impossible.append((place, f"must not be nested deeper than {MAX_NESTING}", None))
            return None
        return _object(node, place, read) if isinstance(node, JSONObject) else _array(node, place, read)
    if isinstance(node, String):
        return _string(node.characters, place, read)
    if isinstance(node, (Number, UnaryOp)):
        return _number(node, place, read)
    return node.value if isinstance(node, BooleanLiteral) else None


def _object(node: JSONObject, place: Place, read: Json5Text) -> dict[str, object]:
    found: dict[str, object] = {}
    for key_node, value_node in node.key_value_pairs:
        key = _string(_characters(key_node), place, read)
        here = (*place, key)
        line = key_node.lineno or 1
        if key in found:
            read.repeated.append((here, read.lines[here], line))
        read.lines[here] = line
        found[key] = _value(value_node, here, read)
    return found


def _array(node: JSONArray, place: Place, read: Json5Text) -> list[object]:
    found = []
    for index, item in enumerate(node.values):
        here = (*place, index)
        read.lines[here] = item.lineno or 1
        found.append(_value(item, here, read))
    return found


def _characters(key: Key) -> str:
    if isinstance(key, Identifier):
        return key.name
    assert isinstance(key, String)
    return key.characters


def _string(characters: str, place: Place, read: Json5Text) -> str:
    try:
        # json-five leaves the two halves of an escaped surrogate pair as they are.
        return characters.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        shown = characters.encode("ascii", "backslashreplace").decode()
        read.impossible.append((place, "must not hold lone surrogates", f'"{shown}"'))
        return ""


def _number(node: Number | UnaryOp, place: Place, read: Json5Text) -> int | float | None:
    operand = node.value if isinstance(node, UnaryOp) else node
    value: int | float = operand.value  # type: ignore[attr-defined]
    try:
        finite = math.isfinite(float(value))
    except OverflowError:
        finite = False
    if not finite:
        shown = json.dumps(value) if isinstance(value, float) else None
        read.impossible.append((place, "must be a finite number", shown))
        return None
    return -value if isinstance(node, UnaryOp) and node.op == "-" else value


def _in_our_words(error: JSON5DecodeError, text: str) -> Json5Error:
    """The first mistake of the parser's report; it knows where by a token, by an index, or at the end of the text."""
    last_line = text.rstrip().count("\n") + 1
    message = next((line.strip() for line in str(error).splitlines() if line.startswith("\t")), str(error))
    if illegal := re.match(r"Illegal character (.*) at index (\d+)", message):
        # The index counts in the rewritten text, where an escaped backslash is three characters longer.
        before = text.replace("\\\\", "\\u005c")[: int(illegal[2])]
        return Json5Error("not valid JSON5: no such character may stand here", illegal[1], before.count("\n") + 1)
    expecting = re.search(r"Was expecting (.+?)(?: in or near|$)", message)
    wanted = ""
    if expecting:
        wanted = " or ".join(_TOKENS.get(name, name) for name in expecting[1].split(" or "))
    if not text.strip():
        return Json5Error("must not be empty", None, 1)
    if error.token is None:
        rule = f"not valid JSON5: the text ends too early{f', {wanted} must follow' if wanted else ''}"
        return Json5Error(rule, None, last_line)
    found = str(error.token.value).splitlines()[0][:40]
    line = error.token.lineno
    if str(error.token.type).startswith("UNTERMINATED"):
        return Json5Error("not valid JSON5: a text must end with the quote it begins with", found, line)
    if message.startswith("Illegal line terminator"):
        return Json5Error("not valid JSON5: a text must not run over the end of its line", found, line)
    if wanted:
        return Json5Error(f"not valid JSON5: {wanted} must stand here", found, line)
    if message.startswith("Syntax Error in or near"):
        return Json5Error("not valid JSON5: nothing may follow the value", found, line)
    reason = message.split(" in or near", 1)[0].removeprefix("Syntax Error: ")
    return Json5Error(f"not valid JSON5: {reason[0].lower()}{reason[1:]}", found, line)
