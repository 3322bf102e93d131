"""Words that the report's pages share."""

from __future__ import annotations

import time
from typing import Final

OUTCOMES: Final = {
    "result": "result",
    "error": "error",
    "void": "nothing returned",
    "pending": "no outcome",
    "blocked": "refused",
}

ACTIONS: Final = {"warn": "warning", "block": "block", "abort": "abort", "clear": "clear"}

SEVERITIES: Final = {
    "abort": "aborted by Loopwarden",
    "block": "calls blocked",
    "warn": "warned",
    "quiet": "nothing found",
}


def plural(count: int, noun: str) -> str:
    """Return `1 call`, `2 calls`, `12,000 calls`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def letter(number: int) -> str:
    """Return A for 0, B for 1, ... Z, AA, AB, ..."""
    letters = ""
    number += 1
    while number:
        number, last = divmod(number - 1, 26)
        letters = chr(ord("A") + last) + letters
    return letters


def calls_in_words(first: int, last: int) -> str:
    """Return `call 7` or `calls 7-9`."""
    return f"call {first:,}" if first == last else f"calls {first:,}-{last:,}"


def clock(milliseconds: int) -> str:
    """Return a moment in UTC, to the second."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(milliseconds / 1000))


def clock_iso(milliseconds: int) -> str:
    """Return a moment as RFC 3339 writes it."""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(milliseconds // 1000))}.{milliseconds % 1000:03d}Z"


def duration(seconds: float) -> str:
    """Return `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`, `3 days 4 h`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for name, size, smaller, part in (("days", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {name}{f' {rest} {smaller}' if rest else ''}"
    return f"{whole} s"
