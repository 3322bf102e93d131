"""The table of run states, by partition and key, and how it is read back from its changelog.

A state never goes backwards: of a run's records in the changelog the one with the highest input offset counts, not the
last one. A paused worker that woke up after its partitions were taken over may have written the last one. (design.md.)
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, cast

import faust
from faust.types import TP, EventT

from loopwarden.worker.errors import StateRefused
from loopwarden.worker.stores import Entry, InMemory, Mark, MemoryStore, Store, Stores
from loopwarden.worker.transport import FAUST_LOG
from loopwarden_schemas.state import UnknownStateVersion

logger = logging.getLogger(__name__)

_MAX_RUN_ID_SHOWN = 64


class States:
    """The states of one partition.

    Attributes:
        rewrite: Keys whose newest state is not surely the last one in the changelog: compaction could drop it.
        changelog_end: The offset that the next own record in the changelog gets, if nobody else writes.
    """

    __slots__ = ("_judged", "_whole", "changelog_end", "get", "rewrite", "store")

    def __init__(self, store: Store | None = None) -> None:
        self.store: Store = MemoryStore() if store is None else store
        self.get = self.store.get
        """Return the entry of a key, or None: only what the changelog has acknowledged, or what was read from it."""
        self.rewrite: set[bytes] = set()
        self.changelog_end: int | None = None
        # Whether everything in the changelog below its end went through here since it was last read.
        self._whole = False
        mark = self.store.mark
        self._judged = -1 if mark is None else mark.judged

    @property
    def last_offset(self) -> int:
        """The highest input offset that a state has seen; -1 without any."""
        return self._judged

    def recover(self, key: bytes, value: bytes | None, tombstone_of: tuple[int, int] | None) -> None:
        """Take one record of the changelog.

        Args:
            key: The run's id.
            value: Its state; None: a tombstone.
            tombstone_of: Offset and index of the state that a tombstone removed, where it says so.

        Raises:
            UnknownStateVersion: this version of Loopwarden cannot read the state.
        """
        held = self.get(key)
        if value is None:
            if held is None:
                return
            if tombstone_of is not None and held.place > tombstone_of:
                self.rewrite.add(key)
                return
            self.store.put(key, None)
            self.rewrite.discard(key)
            return
        entry = Entry.of(value)
        if held is not None and held.place > entry.place:
            self.rewrite.add(key)
            return
        self.store.put(key, entry)
        self.rewrite.discard(key)
        self._judged = max(self._judged, entry.offset)

    def recovered(self, changelog_end: int) -> None:
        """Note that the changelog was read to its end."""
        self.changelog_end = changelog_end
        self._whole = True
        self.store.write({}, self._mark())

    def keep(self, changes: Mapping[bytes, Entry | None]) -> None:
        """Take states, or with None their removal, that the changelog has acknowledged."""
        self._judged = max(self._judged, *(entry.offset for entry in changes.values() if entry is not None), -1)
        self.store.write(changes, self._mark())

    def _mark(self) -> Mark | None:
        # Whoever reads on from a mark does not learn what was written before it. So it stays where it is while a state
        # has to be written again, and behind records of somebody else's that were never read.
        if not self._whole or self.rewrite or self.changelog_end is None:
            return None
        return Mark(self.changelog_end, self._judged)

    def expect_end(self, base: int, count: int) -> bool:
        """Note an acknowledgement of own records; return whether somebody else wrote since the last one.

        Then every state has to be written again. A `base` below 0 is an acknowledgement without an offset.
        """
        foreign = self.changelog_end is not None and base != self.changelog_end
        self.changelog_end = base + count if base >= 0 else None
        if foreign:
            self._whole = False
            self.rewrite.update(self.store.keys())
        return foreign


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
        self._stores: Stores = InMemory()
        self._ends: Callable[[set[int]], Awaitable[dict[int, int]]] | None = None
        self._read: Counter[int] = Counter()
        self._failed: Exception | None = None
        self._on_recovered: Callable[[set[int]], Awaitable[None]] | None = None

    def keep_in(self, stores: Stores, ends: Callable[[set[int]], Awaitable[dict[int, int]]]) -> None:
        """Keep states in stores that outlive the process; to be said before partitions are assigned.

        Args:
            stores: Where.
            ends: Asks the broker where these partitions of the changelog end.
        """
        self._stores = stores
        self._ends = ends

    def states(self, partition: int) -> States:
        """Return the states of a partition of this worker's.

        Raises:
            StoreFailed: they cannot be read.
        """
        states = self._states.get(partition)
        if states is None:
            states = self._states[partition] = States(self._stores.open(partition))
        return states

    def close(self) -> None:
        """Let go the stores."""
        self._forget(set(self._states))
        self._stores.close()

    def _forget(self, partitions: set[int]) -> None:
        for partition in partitions & self._states.keys():
            self._states.pop(partition).store.close()

    def on_recovered(self, callback: Callable[[set[int]], Awaitable[None]]) -> None:
        """Have this called when the states of these partitions are read back, before their events come."""
        self._on_recovered = callback

    async def on_rebalance(
        self, assigned: set[TP], revoked: set[TP], newly_assigned: set[TP], generation_id: int = 0
    ) -> None:
        await super().on_rebalance(assigned, revoked, newly_assigned, generation_id)
        # What stays assigned keeps its states, as its changelog is read on from their mark.
        ours = {tp.partition for tp in newly_assigned if tp.topic == self.changelog_topic_name}
        self._forget(ours | {tp.partition for tp in revoked if tp.topic == self.changelog_topic_name})
        if self._ends is not None:
            await self._discard_others(ours)

    async def _discard_others(self, partitions: set[int]) -> None:
        """Discard the stores that know more of the changelog than there is: they are copies of another one."""
        assert self._ends is not None
        marks = {partition: self.states(partition).store.mark for partition in partitions}
        ends = await self._ends(partitions) if any(marks.values()) else {}
        for partition, mark in marks.items():
            if mark is not None and mark.changelog > ends[partition]:
                logger.warning(
                    "partition %d: the states kept on this machine reach to offset %d of %s, which ends at %d: it was"
                    " deleted and created again, for instance. It is read from its beginning",
                    partition,
                    mark.changelog,
                    self.changelog_topic_name,
                    ends[partition],
                    extra={"topic": self.changelog_topic_name, "partition": partition, "offset": mark.changelog},
                )
                self._forget({partition})
                self._stores.discard(partition)

    def persisted_offset(self, tp: TP) -> int | None:
        """The last offset of a changelog that need not be read again, None: all of it has to."""
        mark = self.states(tp.partition).store.mark
        return None if mark is None or mark.changelog == 0 else mark.changelog - 1

    def read(self, records: list[Any]) -> None:
        """Take records of one partition of the changelog, in their order: what a poll gave.

        One call for a poll: through Faust's queue and event each would cost 300 us, and 100,000 runs half a minute.
        """
        try:
            states = self.states(records[0].partition)
            self._read[records[0].partition] += len(records)
            for record in records:
                states.recover(record.key or b"", record.value, _tombstone_of(record.headers))
        except UnknownStateVersion as error:
            run = (record.key or b"").decode("utf-8", "replace")[:_MAX_RUN_ID_SHOWN]
            place = f"{record.topic} partition {record.partition} offset {record.offset}"
            self._fail(StateRefused(f"{place}, run {run!r}: {error}"))
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        # Said when recovery is complete: until then Faust only logs what is raised.
        if self._failed is None:
            self._failed = error

    def apply_changelog_batch(self, batch: Iterable[EventT[Any]]) -> None:
        # `read` did. Faust gets the last record of each poll, to count how far it is.
        pass

    async def on_recovery_completed(self, active_tps: set[TP], standby_tps: set[TP]) -> None:
        # Faust forgets what is raised in here.
        try:
            if self._failed is not None:
                raise self._failed
            await super().on_recovery_completed(active_tps, standby_tps)
            highwaters = cast(Any, self.app.tables).recovery.active_highwaters
            for tp in active_tps:
                self.states(tp.partition).recovered(highwaters[tp] + 1)
                count = self._read.pop(tp.partition, 0)
                logger.info(
                    "partition %d: %d records of its changelog were read",
                    tp.partition,
                    count,
                    extra={"topic": tp.topic, "partition": tp.partition},
                )
            if self._on_recovered is not None:
                await self._on_recovered({tp.partition for tp in active_tps})
        except asyncio.CancelledError:
            raise
        except Exception as error:
            await self.app.crash(error)
