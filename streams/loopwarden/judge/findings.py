"""What a detector answers."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct


class Finding(Struct, frozen=True, gc=False):
    """A rule that holds for the call at hand."""

    detector: str
    action: Literal["warn", "block"]
    count: int
    threshold: int
    scope: Literal["call", "tool"] = "call"


class Ending(Struct, frozen=True, gc=False):
    """A rule that ends the run."""

    detector: str
    count: int
    threshold: int
    evidence: list[str]


EVIDENCE: Final = 10
"""How many event ids a verdict carries as evidence, at most. (design.md, "Verdicts".)"""
