"""A point in time on the command line."""

from __future__ import annotations

import re
import time
from datetime import datetime
from typing import Final

from loopwarden.cli.mistakes import Mistake

_AGO: Final = re.compile(r"(\d{1,9})\s*([smhd])")
_UNIT_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def milliseconds(option: str, text: str) -> int:
    """Return the milliseconds since the epoch of `2h` (ago; s, m, h, d), ISO 8601 (local without a zone) or a number.

    Raises:
        Mistake: it is none of them.
    """
    ago = _AGO.fullmatch(text.strip())
    if ago is not None:
        return time.time_ns() // 1_000_000 - int(ago[1]) * _UNIT_MS[ago[2]]
    if text.strip().isdecimal() and len(text.strip()) == 13:
        return int(text)
    try:
        # Python 3.10 does not know the Z.
        return int(datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text.strip())).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise Mistake(
            f"{option}: must be a time as 2026-11-30T16:00 (local, or with a zone), as 90m, 24h or 7d (ago), or"
            f" milliseconds since the epoch, got {text!r:.60}"
        ) from None


def span(since: str | None, until: str | None) -> tuple[int | None, int | None]:
    """Return the milliseconds of --since and --until, where they are given.

    Raises:
        Mistake: one of them is no time, or nothing lies between them.
    """
    begin = None if since is None else milliseconds("--since", since)
    end = None if until is None else milliseconds("--until", until)
    if begin is not None and end is not None and begin >= end:
        raise Mistake(f"--until: must be after --since, but {until} is not after {since}: nothing lies between them")
    return begin, end


def duration_ms(option: str, text: str) -> int:
    """Return the milliseconds of `90s`, `15m`, `24h` or `7d`.

    Raises:
        Mistake: it is none of them.
    """
    found = _AGO.fullmatch(text.strip())
    if found is None:
        raise Mistake(f"{option}: must be a length of time as 90s, 15m, 24h or 7d, got {text!r:.60}")
    return int(found[1]) * _UNIT_MS[found[2]]


def clock(at: int) -> str:
    """Return milliseconds since the epoch as local time."""
    seconds, rest = divmod(at, 1000)
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(seconds))}.{rest:03d}"
