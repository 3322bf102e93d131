"""A run whose event the judge failed on, as it was before that event.

The judge changes a state in place, so a failure in the middle leaves one that is neither old nor new. The old one is
its last record, and what the log has of the run since, folded again. That takes a moment, and failures come in swarms:
after one, a copy of each state is made beforehand for a while.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeAlias

from loopwarden.judge import RunState, judge, thaw
from loopwarden.worker.policies import Policies
from loopwarden.worker.stores import Entry
from loopwarden_schemas.canonical import NotCanonical
from loopwarden_schemas.structs import Event, PolicyApplied, Rejected

ReadAgain: TypeAlias = Callable[[bytes, int, int], Awaitable[list[Any]]]
"""Returns the records with a key from an offset to below another, of the lane's partition of `agent-events`."""

_CAREFUL_RECORDS: Final = 10_000


class Failures:
    """Where the judge failed in one partition, since the last checkpoint."""

    def __init__(self) -> None:
        self._places: set[tuple[int, int]] = set()
        self._careful_until = -1

    def note(self, offset: int, index: int, checkpointed: int) -> None:
        """Note a failure. Those below the checkpoint are not needed any more: no state is made of events there."""
        self._places = {place for place in self._places if place[0] >= checkpointed}
        self._places.add((offset, index))
        self._careful_until = offset + _CAREFUL_RECORDS

    def expected(self, offset: int) -> bool:
        """Whether a copy of a state is worth its while here (30 us)."""
        return offset <= self._careful_until

    def __contains__(self, place: tuple[int, int]) -> bool:
        return place in self._places


def fold_again(
    entry: Entry | None,
    run_id: str,
    records: Iterable[tuple[int, list[Event | Rejected]]],
    policies: Policies,
    failures: Failures,
    before: tuple[int, int],
) -> RunState | None:
    """Return a run's state before an event; None: it had none.

    Args:
        entry: Its last record, None where it has none.
        run_id: The run.
        records: Offset and events of the records with its key since the last checkpoint.
        policies: Those of the partition.
        failures: Events that the judge failed on, which changed nothing.
        before: Offset and index of the event.
    """
    state = None if entry is None else thaw(entry.value)
    for offset, events in records:
        for index, event in enumerate(events):
            place = (offset, index)
            if place >= before:
                return state
            if isinstance(event, (Rejected, PolicyApplied)) or event.run_id != run_id or place in failures:
                continue
            if state is not None and place <= (state.offset, state.index):
                continue
            try:
                state = judge(state, event, policies.in_force(offset, index)).state
            except NotCanonical:
                continue
            state.offset, state.index = place
    return state
