"""What a run of the chaos does."""

from __future__ import annotations

from typing import NamedTuple


class Plan(NamedTuple):
    """What to run.

    Attributes:
        seconds: How long faults are injected; starting and the last check come on top.
        seed: Decides the load, the order of the faults and their length. Moments still vary.
        nodes: Brokers, 1 or 3.
        workers: Workers, when nothing happens to their number.
        partitions: Of the topics.
        rate: Records a second.
        session_seconds: After so long without a heartbeat a worker's partitions go to the others.
        faults: Names of the faults to draw from; empty: all that are possible.
        in_turn: Each of `faults` once, in this order, instead of drawing for so many seconds.
        settings: Further settings of the workers, such as `STORE=rocksdb`.
    """

    seconds: float = 600
    seed: int = 0
    nodes: int = 3
    workers: int = 2
    partitions: int = 4
    rate: float = 400
    session_seconds: float = 6
    faults: tuple[str, ...] = ()
    in_turn: bool = False
    settings: tuple[str, ...] = ()
