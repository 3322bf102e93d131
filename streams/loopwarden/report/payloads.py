"""What events carried, as text that can be shown: readable, free of characters that act, and cut."""

from __future__ import annotations

import json
from typing import Any, Final

from msgspec import UNSET

from loopwarden.report.model import Payload

SHOWN_CHARACTERS: Final = 2_000
"""Of each arguments, result or error, unless told otherwise: a screen full."""


def payload(value: Any, shown: int) -> Payload | None:
    """Return at most `shown` characters of a value; None where there is none, or none are wanted."""
    if value is UNSET or not shown:
        return None
    text = _text(value)
    return Payload(text=legible(text[:shown]), left_out=max(0, len(text) - shown))


def legible(text: str) -> str:
    """Return text with all that does not print spelled out, but line breaks and tabs.

    Control characters have no place in HTML, half a surrogate pair none in UTF-8, and marks of direction could make
    text read otherwise than it is.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in "\n\t" else one.encode("unicode_escape").decode() for one in text)


def one_line(text: str, longest: int = 80) -> str:
    """Return text on one line, cut at so many characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= longest else f"{flat[: longest - 1]}…"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    plain = _plain_text(value)
    return json.dumps(value, indent=2, ensure_ascii=False, default=repr) if plain is None else plain


def _plain_text(value: Any) -> str | None:
    """The text of what holds nothing else: a tool's answer as the common agents write it."""
    content = value.get("content") if isinstance(value, dict) and set(value) <= {"content", "isError"} else None
    if not isinstance(content, list) or len(content) != 1 or not isinstance(content[0], dict):
        return None
    text = content[0].get("text")
    return text if isinstance(text, str) and set(content[0]) == {"type", "text"} else None
