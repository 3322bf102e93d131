"""Which faults come when: drawn from the table, the same for a seed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from random import Random
from typing import Final

from .faults import FAULTS, Fault
from .plan import Plan
from .scene import Scene

_TWO_AT_ONCE: Final = 0.35


def episodes(plan: Plan, scene: Scene, random: Random) -> Iterator[list[str]]:
    """Yield the names of the faults that are injected at the same time: one, or two that go together."""
    possible = {
        name: fault
        for name, fault in FAULTS.items()
        if fault.nodes <= len(scene.cluster.node_ids) and (scene.disk is not None or not fault.needs_disk)
    }
    impossible = [name for name in plan.faults or FAULTS if name not in possible]
    if impossible:
        scene.journal.tell(f"not possible here: {', '.join(impossible)}")
    if plan.in_turn:
        yield from ([name] for name in plan.faults if name in possible)
        return
    drawn = {name: possible[name] for name in plan.faults or possible if name in possible}
    # Each once, in any order; then as they are drawn.
    first = random.sample(list(drawn), len(drawn))
    for name in chain(first, iter(lambda: _draw(drawn, random), None)):
        second = _draw(drawn, random)
        fitting = second != name and not (drawn[second].of_brokers and drawn[name].of_brokers)
        yield [name, second] if fitting and random.random() < _TWO_AT_ONCE else [name]


def _draw(faults: dict[str, Fault], random: Random) -> str:
    return random.choices(list(faults), [fault.weight for fault in faults.values()])[0]
