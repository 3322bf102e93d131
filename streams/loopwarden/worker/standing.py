"""How the worker stands, written down once a second by its event loop, for threads that must answer without it.

So the HTTP thread touches nothing that the event loop changes, and its answers tell when the loop does not move: the
newest note grows old.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from loopwarden.worker.checkpoint import has_news
from loopwarden.worker.lane import Lane
from loopwarden.worker.transport import End

INTERVAL_S: Final = 1.0

_STALE_S: Final = 5.0
"""A fetch is answered within a quarter of a second. What the broker said longer ago may not be so any more."""


class Phase(Enum):
    """What the worker is at; `judging` is the only one in which it is ready."""

    waiting = "it waits for the broker and its topics"
    joining = "it waits for its part in the consumer group"
    recovering = "it reads its runs back from the changelog"
    judging = "it judges"
    stopping = "it stops"


class LaneStanding(NamedTuple):
    """How one partition stands."""

    partition: int
    lag: int | None
    """Records that wait, as far as the broker told; None before it told anything."""
    behind_since: float | None
    """Since when records wait, or may wait (seconds since the epoch); None where none does. See `Lookout`."""
    runs_held: int


@dataclass(frozen=True)
class Standing:
    """How the worker stood at one moment. Moments are of `time.monotonic`, but for those of `LaneStanding`."""

    at: float = field(default_factory=time.monotonic)
    phase: Phase = Phase.waiting
    phase_since: float = field(default_factory=time.monotonic)
    lanes: tuple[LaneStanding, ...] = ()
    unsaved_since: float | None = None
    """Since when something is judged and not durable; None where all is."""
    polled_at: float | None = None
    """When the poll loop last came round."""
    told_at: float | None = None
    """When the broker last answered a fetch; None before it did, and without partitions."""
    recovery_remaining: int = 0
    rebalances: int = 0
    detectors_on: bool | None = None
    """Whether the loop detectors are on; None while this worker has no partition that tells."""


class Lookout:
    """Finds out how the worker stands; keeps what has to be remembered from one look to the next.

    When did the oldest waiting record arrive? Only the broker knows. What is known: not before the newest record that
    was judged, and not before the last look at which nothing waited. The later of the two is taken: it is right to a
    second for a partition that was idle, and for one that is behind it is the age of what is being judged. Where the
    broker does not answer, records may wait since it last did.
    """

    def __init__(self) -> None:
        self.standing = Standing()
        # By partition: seconds since the epoch, but for `_saved`, which is of `time.monotonic`.
        self._first_look: dict[int, float] = {}
        self._caught_up: dict[int, float] = {}
        self._saved: dict[int, float] = {}

    def checkpoint_completed(self, partitions: Iterable[int], frozen_at: float) -> None:
        """Note that everything judged in these partitions before this moment is durable."""
        self._saved.update(dict.fromkeys(partitions, frozen_at))

    def look(
        self,
        phase: Phase,
        lanes: Iterable[Lane],
        ends: dict[int, End | None],
        *,
        polled_at: float | None,
        recovery_remaining: int,
        rebalances: int,
        detectors_on: bool | None,
    ) -> None:
        """Write down how the worker stands now.

        Args:
            phase: What it is at.
            lanes: Its partitions.
            ends: By partition, where the broker said that its events end; None where it said nothing yet.
            polled_at: When the poll loop last came round.
            recovery_remaining: Records of the changelog that are still to be read.
            rebalances: How often partitions came and went.
            detectors_on: Whether the loop detectors are on.
        """
        now, before = time.monotonic(), self.standing
        lanes = list(lanes)
        for remembered in (self._first_look, self._caught_up, self._saved):
            for gone in remembered.keys() - {lane.partition for lane in lanes}:
                del remembered[gone]
        unsaved = [self._saved.setdefault(lane.partition, now) for lane in lanes if has_news(lane)]
        self._saved.update({lane.partition: now for lane in lanes if not has_news(lane)})
        self.standing = Standing(
            at=now,
            phase=phase,
            phase_since=before.phase_since if phase is before.phase else now,
            lanes=tuple(self._look_at(lane, ends.get(lane.partition)) for lane in lanes),
            unsaved_since=min(unsaved, default=None),
            polled_at=polled_at,
            told_at=max((now - (time.time() - end.told_at) for end in ends.values() if end is not None), default=None),
            recovery_remaining=recovery_remaining,
            rebalances=rebalances,
            detectors_on=detectors_on,
        )

    def _look_at(self, lane: Lane, end: End | None) -> LaneStanding:
        partition, now = lane.partition, time.time()
        first_look = self._first_look.setdefault(partition, now)
        if end is None:
            return LaneStanding(partition, None, None, len(lane.runs))
        lag, stale = max(0, end.offset - lane.next_offset), now - end.told_at > _STALE_S
        if lag == 0:
            self._caught_up[partition] = end.told_at if stale else now
        known = max(lane.newest_append_time / 1000, self._caught_up.get(partition, 0.0))
        behind_since = (known or first_look) if lag or stale else None
        return LaneStanding(partition, lag, behind_since, len(lane.runs))
