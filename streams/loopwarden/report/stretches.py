"""Calls next to each other that follow one pattern: what a long run comes down to for a reader."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

MAX_PERIOD: Final = 8
"""Calls that take turns in one pattern, at most: more than that nobody sees as one."""


_FEWEST: Final = {1: 2}


class Repetition(NamedTuple):
    """Items from `start` to below `end`, of which each is the one `period` before it."""

    start: int
    end: int
    period: int


def repetitions(items: Sequence[Hashable], boundaries: Sequence[int] = ()) -> list[Repetition]:
    """Return the items, whole and in order, cut into repetitions; what repeats nothing is one of its own.

    From each place on, the pattern is taken that goes furthest; of two the shorter one. One call has to come twice,
    several in turn three times: less than that is chance.

    Args:
        items: What is compared.
        boundaries: Places that no repetition goes over.
    """
    edges = sorted({0, len(items), *(edge for edge in boundaries if 0 < edge < len(items))})
    return [found for start, end in pairwise(edges) for found in _cut(items, start, end)]


def _cut(items: Sequence[Hashable], start: int, end: int) -> list[Repetition]:
    found = []
    while start < end:
        best = Repetition(start, start + 1, 1)
        for period in range(1, MAX_PERIOD + 1):
            reached = start + period
            while reached < end and items[reached] == items[reached - period]:
                reached += 1
            if reached >= start + _FEWEST.get(period, 3) * period and reached > best.end:
                best = Repetition(start, reached, period)
        found.append(best)
        start = best.end
    return found
