"""RFC 8785 canonical JSON: one text for one value, so that equal values have equal hashes.

What it takes is what JSON and MessagePack decode to. Two things go beyond the `rfc8785` package: integers beyond 2**53
are taken as the nearest double (as JavaScript reads them), and MessagePack binary is its standard base64 text.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import orjson

MAX_NESTING = 64
"""Arrays and objects inside one another, at most; deeper values are refused (design.md, limits)."""

_SAFE_INTEGER = 2**53
_ASTRAL = re.compile(rb"[\xf0-\xff]")


class NotCanonical(ValueError):
    """The value has no canonical JSON: the message says which part of it and which rule."""


def canonical(value: Any) -> bytes:
    """Return the canonical JSON of a value as UTF-8.

    Raises:
        NotCanonical: a key is not a string, a number is not finite, a string holds a lone surrogate, the value is
            nested deeper than 64, or it holds something that JSON does not have.
    """
    # orjson sorts keys by code point and prints floats its own way: it is exact for values without floats, without
    # integers beyond 2**53 and without characters outside the BMP (byte >= 0xF0), which is nearly all there is.
    try:
        if _is_plain(value, MAX_NESTING):
            text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
            if text.isascii() or not _ASTRAL.search(text):
                return text
        return orjson.dumps(_ordered(value, MAX_NESTING))
    except TypeError as error:
        raise NotCanonical(_why(error)) from None


def _is_plain(value: Any, depth: int) -> bool:
    kind = type(value)
    if kind is dict:
        value = value.values()
    elif kind is not list:
        if kind is int:
            return bool(-_SAFE_INTEGER <= value <= _SAFE_INTEGER)
        return kind is str or kind is bool or value is None
    if depth == 0:
        raise NotCanonical(f"nested deeper than {MAX_NESTING}")
    depth -= 1
    for item in value:
        kind = type(item)
        if kind is str:
            continue
        if kind is int:
            if not -_SAFE_INTEGER <= item <= _SAFE_INTEGER:
                return False
        elif item is not None and kind is not bool and not _is_plain(item, depth):
            return False
    return True


def _ordered(value: Any, depth: int) -> Any:
    """The same value with its numbers spelled out and its keys in UTF-16 order, ready to be printed as it stands."""
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool)):
        return orjson.Fragment(_number(value))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if value is None or isinstance(value, (str, bool)):
        return value
    if not isinstance(value, (Mapping, list)):
        raise NotCanonical(f"not a JSON value: {type(value).__name__}")
    if depth == 0:
        raise NotCanonical(f"nested deeper than {MAX_NESTING}")
    if not isinstance(value, Mapping):
        return [_ordered(item, depth - 1) for item in value]
    for key in value:
        if not isinstance(key, str):
            raise NotCanonical(f"keys must be strings, got {type(key).__name__}")
    by_utf16 = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
    return {key: _ordered(value[key], depth - 1) for key in by_utf16}


def _number(value: float | int) -> str:
    """A number as ECMAScript prints a double (RFC 8785, section 3.2.2.3)."""
    try:
        double = float(value)
    except OverflowError:
        double = math.inf
    if not math.isfinite(double):
        raise NotCanonical(f"numbers must be finite, got {value if isinstance(value, float) else 'a huge integer'}")
    if double == 0:
        return "0"
    sign = "-" if double < 0 else ""
    _, digit_tuple, exponent = Decimal(repr(abs(double))).as_tuple()
    assert isinstance(exponent, int)
    digits = "".join(map(str, digit_tuple)).lstrip("0")
    point = len(digits) + exponent
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return f"{sign}{digits}{'0' * (point - len(digits))}"
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{point - 1:+d}"


def _why(error: TypeError) -> str:
    text = str(error)
    if "key must be str" in text:
        return "keys must be strings"
    if "surrogates" in text or "UTF-8" in text:
        return "strings must not hold lone surrogates"
    return f"not a JSON value: {text}"
