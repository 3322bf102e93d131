"""Which states of runs that are over can go. (design.md, "How the worker folds".)

The sweep frees space, the judge alone decides what is idle: a state goes only an hour after the judge would not use it.
"""

from __future__ import annotations

import logging
from typing import Final

from loopwarden.judge import thaw
from loopwarden.worker.lane import Lane
from loopwarden.worker.policies import POLICIES_KEY

logger = logging.getLogger(__name__)

INTERVAL_S: Final = 60.0

_MARGIN_MS: Final = 60 * 60 * 1000

# What one sweep may cost a partition: reading a state takes 20 us, a tombstone about 2.
_MOST_READ: Final = 1_000
_MOST_SWEPT: Final = 10_000


def over(lane: Lane, committed: int) -> list[bytes]:
    """Return the keys of runs that are over: a bounded number, the rest comes with the next sweeps.

    Args:
        committed: The committed offset of the partition: no event below it is ever judged again.
    """
    read = 0
    keys = []
    for key, entry in lane.states.entries.items():
        if key == POLICIES_KEY or entry.offset >= committed or lane.runs.is_changed(key):
            continue
        if entry.expires_at is None:
            if read == _MOST_READ:
                continue
            # Read back from the changelog, and not used since.
            entry.expires_at = thaw(entry.value).expires_at
            read += 1
        if lane.newest_append_time > entry.expires_at + _MARGIN_MS:
            keys.append(key)
            if len(keys) == _MOST_SWEPT:
                break
    return keys
