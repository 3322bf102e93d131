"""Which states of runs that are over can go. (design.md, "How the worker folds".)

The sweep frees space, the judge alone decides what is idle: a state goes only an hour after the judge would not use it.
"""

from __future__ import annotations

from typing import Final

from loopwarden.judge import expires_at
from loopwarden.worker.lane import Lane
from loopwarden.worker.policies import POLICIES_KEY

INTERVAL_S: Final = 15.0

_MARGIN_MS: Final = 60 * 60 * 1000

SCANS: Final = 8
"""How often `over` is asked in one sweep, with a pause between: 500 runs may end in a partition every second."""

PAUSE_S: Final = 0.01

# What events wait for meanwhile: looking at a state takes 2 us in memory and 20 in RocksDB.
_MOST_SCANNED: Final = 1_000


def over(lane: Lane, committed: int) -> dict[bytes, tuple[int, int]]:
    """Return the keys of runs that are over, each with the place of the state that may go.

    Among those whose turn it is: the others' comes with the next calls.

    Args:
        committed: The committed offset of the partition: no event below it is ever judged again.
    """
    return {
        key: entry.place
        for key, entry in lane.states.store.scan(_MOST_SCANNED)
        if key != POLICIES_KEY
        and entry.offset < committed
        and not lane.runs.is_changed(key)
        and lane.newest_append_time > expires_at(entry.value) + _MARGIN_MS
    }
