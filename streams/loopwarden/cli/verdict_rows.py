"""Verdicts for people: a row each, ids last since nothing is cut from them."""

from __future__ import annotations

from typing import Final

from loopwarden.cli.fitting import flowed
from loopwarden.cli.terminal import printable
from loopwarden_schemas.structs import Verdict

_COLUMNS: Final = (("ACTION", 6), ("PHASE", 7), ("COUNT", 5), ("DETECTOR", 25), ("TOOL", 15), ("RUN", 23), ("EVENT", 0))


def header(width: int | None) -> str:
    """Return what stands above the rows. `width` is a terminal's; None: there is none, and no line is broken."""
    return _row([name for name, _ in _COLUMNS], width)


def row(verdict: Verdict, width: int | None) -> str:
    """Return the row of one verdict, below `header`."""
    return _row(
        [
            verdict.action,
            verdict.phase,
            f"{'-' if verdict.count is None else verdict.count:>5}",
            verdict.detector or verdict.reason,
            printable(verdict.tool or "-"),
            printable(verdict.run_id),
            printable(verdict.event_id),
        ],
        width,
    )


def _row(cells: list[str], width: int | None) -> str:
    return flowed([f"{cell:<{room}}" for cell, (_, room) in zip(cells, _COLUMNS, strict=True)], width)
