"""Pages of the documentation whose commands and programs the tests run."""

from __future__ import annotations

import re
from typing import NamedTuple


class Command(NamedTuple):
    """A command, and what a page shows that it says."""

    command: str
    shown: str


def blocks(page: str, language: str) -> list[str]:
    """Return a page's code blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def commands_in(block: str) -> list[str]:
    """Return the commands of a block of them, without the remarks beside them."""
    lines = (re.split(r"\s{2,}#", line)[0].strip() for line in block.splitlines())
    return [line for line in lines if line]


def files(page: str, language: str) -> dict[str, str]:
    """Return the files that a page shows: blocks whose first line is their name as a comment, by that name."""
    named = ((re.match(r"(?:#|//) ([\w.-]+)", block), block) for block in blocks(page, language))
    return {name[1]: block for name, block in named if name is not None}


def told(page: str) -> list[Command]:
    """Return the commands of a page's terminals (`console`), each with what is shown after it."""
    found: list[Command] = []
    for block in blocks(page, "console"):
        first, *others = re.split(r"^\$ ", block, flags=re.MULTILINE)
        assert first == "", f"a terminal begins with a command, not with: {first}"
        for command, _, shown in (other.partition("\n") for other in others):
            found.append(Command(command, shown.rstrip("\n")))
    return found
