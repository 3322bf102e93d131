"""Verdicts for people: a row each, ids last since nothing is cut from them."""

from __future__ import annotations

from typing import Final

from loopwarden.cli.terminal import printable
from loopwarden_schemas.structs import Verdict

HEADER: Final = f"{'ACTION':<7} {'PHASE':<8} {'COUNT':>5}  {'DETECTOR':<25} {'TOOL':<16} {'RUN':<24} EVENT"


def row(verdict: Verdict) -> str:
    """Return the row of one verdict, below `HEADER`."""
    count = "-" if verdict.count is None else str(verdict.count)
    return (
        f"{verdict.action:<7} {verdict.phase:<8} {count:>5}  {verdict.detector or verdict.reason:<25} "
        f"{printable(verdict.tool or '-'):<16} {printable(verdict.run_id):<24} {printable(verdict.event_id)}"
    )
