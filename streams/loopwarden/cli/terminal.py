"""Text for people, on whatever their output is."""

from __future__ import annotations

import os
import sys


def printable(text: str, keep: str = "") -> str:
    """Return text that comes from somebody else with its control characters spelled out: they could move the cursor."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in keep else one.encode("unicode_escape").decode() for one in text)


def say(text: str) -> None:
    """Tell the user something beside the output: on standard error."""
    print(printable(text, keep="\n"), file=sys.stderr)


def colored(text: str, color: str | None) -> str:
    """Return text in a colour, or as it is where the user wants none (NO_COLOR of the environment)."""
    import typer

    return text if os.environ.get("NO_COLOR") else typer.style(text, fg=color)


def plural(count: int, noun: str) -> str:
    """Return `1 run`, `2 runs`, `12,000 runs`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
