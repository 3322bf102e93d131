"""The table of run states, by partition and key, and how it is read back from its changelog.

A state never goes backwards: of a run's records in the changelog the one with the highest input offset counts, not the
last one. A paused worker that woke up after its partitions were taken over may have written the last one. (design.md.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, cast

import faust
from faust.types import TP, EventT

from loopwarden.worker.errors import StateRefused, WorkerError
from loopwarden.worker.transport import FAUST_LOG
from loopwarden_schemas.state import UnknownStateVersion, state_position

_MAX_RUN_ID_SHOWN = 64


class Entry:
    """What the changelog holds for one key.

    Attributes:
        offset, index: Place in `agent-events` of the last event that the state has seen.
        value: The state record.
        expires_at: Append time (ms) after which the judge finds a fresh run; None while nobody had to know.
    """

    __slots__ = ("expires_at", "index", "offset", "value")

    def __init__(self, offset: int, index: int, value: bytes, expires_at: int | None = None) -> None:
        self.offset = offset
        self.index = index
        self.value = value
        self.expires_at = expires_at


class States:
    """The states of one partition.

    Attributes:
        entries: By key; only what the changelog has acknowledged, or what was read from it.
        rewrite: Keys whose newest state is not surely the last one in the changelog: compaction could drop it.
        changelog_end: The offset that the next own record in the changelog gets, if nobody else writes.
    """

    __slots__ = ("changelog_end", "entries", "rewrite")

    def __init__(self) -> None:
        self.entries: dict[bytes, Entry] = {}
        self.rewrite: set[bytes] = set()
        self.changelog_end: int | None = None

    def recover(self, key: bytes, value: bytes | None, tombstone_of: tuple[int, int] | None) -> None:
        """Take one record of the changelog.

        Args:
            key: The run's id.
            value: Its state; None: a tombstone.
            tombstone_of: Offset and index of the state that a tombstone removed, where it says so.

        Raises:
            UnknownStateVersion: this version of Loopwarden cannot read the state.
        """
        held = self.entries.get(key)
        if value is None:
            if held is None:
                return
            if tombstone_of is not None and (held.offset, held.index) > tombstone_of:
                self.rewrite.add(key)
                return
            del self.entries[key]
            self.rewrite.discard(key)
            return
        offset, index = state_position(value)
        if held is not None and (held.offset, held.index) > (offset, index):
            self.rewrite.add(key)
            return
        self.entries[key] = Entry(offset, index, value)
        self.rewrite.discard(key)

    def expect_end(self, base: int, count: int) -> bool:
        """Note an acknowledgement of own records; return whether somebody else wrote since the last one.

        Then every state has to be written again. A `base` below 0 is an acknowledgement without an offset.
        """
        foreign = self.changelog_end is not None and base != self.changelog_end
        self.changelog_end = base + count if base >= 0 else None
        if foreign:
            self.rewrite.update(self.entries)
        return foreign

    def last_offset(self) -> int:
        """The highest input offset that a state has seen; -1 without any."""
        return max((entry.offset for entry in self.entries.values()), default=-1)


TOMBSTONE_OF = "state-position"
"""Header of a tombstone: offset and index of the state that it removes, so that a late one removes no newer state."""


def tombstone_header(offset: int, index: int) -> tuple[str, bytes]:
    """Return the header of a tombstone for a state at this place."""
    return TOMBSTONE_OF, b"%d %d" % (offset, index)


def _tombstone_of(headers: Any) -> tuple[int, int] | None:
    for name, text in headers or ():
        if name == TOMBSTONE_OF:
            offset, _, index = text.partition(b" ")
            return int(offset), int(index)
    return None


class RunsTable(faust.Table[bytes, bytes]):
    """Faust's table of runs. Faust restores it; `checkpoint` alone writes it, and its changelog."""

    logger = FAUST_LOG

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._states: dict[int, States] = {}
        self._refused: WorkerError | None = None
        self._on_recovered: Callable[[set[int]], Awaitable[None]] | None = None

    def states(self, partition: int) -> States:
        """Return the states of a partition of this worker's."""
        return self._states.setdefault(partition, States())

    def on_recovered(self, callback: Callable[[set[int]], Awaitable[None]]) -> None:
        """Have this called when the states of these partitions are read back, before their events come."""
        self._on_recovered = callback

    async def on_rebalance(
        self, assigned: set[TP], revoked: set[TP], newly_assigned: set[TP], generation_id: int = 0
    ) -> None:
        await super().on_rebalance(assigned, revoked, newly_assigned, generation_id)
        # What stays assigned keeps its entries, as Faust reads on from where it stopped; the rest it reads anew.
        for tp in revoked | newly_assigned:
            if tp.topic == self.changelog_topic_name:
                self._states.pop(tp.partition, None)

    def apply_changelog_batch(self, batch: Iterable[EventT[Any]]) -> None:
        for event in batch:
            message = event.message
            try:
                self.states(message.partition).recover(
                    message.key or b"", message.value, _tombstone_of(message.headers)
                )
            except UnknownStateVersion as error:
                # Faust would log what is raised in here and go on without the record; see `on_recovery_completed`.
                if self._refused is None:
                    run = (message.key or b"").decode("utf-8", "replace")[:_MAX_RUN_ID_SHOWN]
                    place = f"{message.topic} partition {message.partition} offset {message.offset}"
                    self._refused = StateRefused(f"{place}, run {run!r}: {error}")

    async def on_recovery_completed(self, active_tps: set[TP], standby_tps: set[TP]) -> None:
        # Faust forgets what is raised in here.
        try:
            if self._refused is not None:
                raise self._refused
            await super().on_recovery_completed(active_tps, standby_tps)
            highwaters = cast(Any, self.app.tables).recovery.active_highwaters
            for tp in active_tps:
                self.states(tp.partition).changelog_end = highwaters[tp] + 1
            if self._on_recovered is not None:
                await self._on_recovered({tp.partition for tp in active_tps})
        except asyncio.CancelledError:
            raise
        except Exception as error:
            await self.app.crash(error)
