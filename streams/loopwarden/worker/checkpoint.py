"""When changed states become durable and input offsets are released. (design.md, "How the worker folds".)

`Checkpoint.take` is the guarantee: a verdict is acknowledged before the state that remembers it is, the state before
the input offset is released.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from itertools import islice
from typing import Any, TypeAlias

from loopwarden.judge import freeze
from loopwarden.worker.errors import ProduceFailed
from loopwarden.worker.failures import type_and_place
from loopwarden.worker.lane import Lane
from loopwarden.worker.policies import POLICIES_KEY
from loopwarden.worker.records import Records
from loopwarden.worker.recovery import tombstone_header
from loopwarden.worker.runs import Held
from loopwarden.worker.stores import Entry
from loopwarden_schemas.state import MAX_STATE_BYTES

logger = logging.getLogger(__name__)

# Of a partition that somebody else wrote to, so many states are written again with one checkpoint.
_MOST_REWRITTEN = 2_000

# States are encoded for so long, then events come first for a moment.
_SLICE_S = 0.001
_PAUSE_S = 0.002


Over: TypeAlias = Mapping[int, Mapping[bytes, tuple[int, int]]]
"""Runs that are over: by partition and key, offset and index of the state that may go."""


class Frozen:
    """One partition as it was at one moment: what it wants to make durable.

    Encoding a state takes 30 us, and a thousand of them would hold up a verdict: they are encoded bit by bit. A run
    whose next event comes before its turn is encoded first (`Held.frozen`), so all are of the moment of the freeze.

    Attributes:
        offset: Every event below it is judged.
        entries: New or rewritten states by key; complete once `encode` returned.
        tombstones: States that go, by key.
        rewritten: Keys that need not be written again once this is written.
    """

    def __init__(self, lane: Lane, over: Mapping[bytes, tuple[int, int]]) -> None:
        """Freeze a lane, and take from it the runs in `over` whose states are still of that place."""
        self.lane = lane
        self.offset = lane.next_offset
        self.entries: dict[bytes, Entry] = {}
        self.tombstones: dict[bytes, Entry] = {}
        self._changed = lane.runs.take_changed()
        for held in self._changed:
            held.frozen = self._encode_run
        policies = lane.policies.freeze() if lane.policies.changed else None
        if policies is not None:
            self.entries[POLICIES_KEY] = Entry(*policies)
            lane.policies.changed = False
        states = lane.states
        changed = {held.key for held in self._changed}
        for key, place in over.items():
            entry = states.get(key)
            # It may have begun again since it was looked at, and a checkpoint been taken.
            if entry is not None and entry.place == place and key not in changed:
                self.tombstones[key] = entry
                lane.runs.drop(key)
        self.rewritten = list(islice(states.rewrite, _MOST_REWRITTEN))
        for key in self.rewritten:
            entry = states.get(key)
            if entry is not None and key not in self.tombstones and key not in changed:
                self.entries.setdefault(key, entry)

    async def encode(self) -> None:
        """Encode the frozen states, and let events be judged in between."""
        until = time.perf_counter() + _SLICE_S
        for held in self._changed:
            if held.frozen is not None:
                held.frozen(held)
                if time.perf_counter() > until:
                    await asyncio.sleep(_PAUSE_S)
                    until = time.perf_counter() + _SLICE_S

    def _encode_run(self, held: Held) -> None:
        held.frozen = None
        state, lane = held.state, self.lane
        if state is None:
            return
        try:
            value = freeze(state)
            if len(value) > MAX_STATE_BYTES:
                raise ValueError(f"a state must be at most {MAX_STATE_BYTES} bytes, got {len(value)}")
        except Exception as error:
            # A bug of ours. Written as it is, the broker would refuse it, now and after each restart: engine-facts, B4.
            logger.error(
                "a bug of ours: run %s, partition %d: its state is lost, it begins anew: %s",
                held.run_id,
                lane.partition,
                type_and_place(error),
                extra={"run": held.run_id, "partition": lane.partition, "offset": state.offset},
            )
            held.state = None
            entry = lane.states.get(held.key)
            if entry is not None:
                self.tombstones[held.key] = entry
            return
        self.entries[held.key] = Entry(state.offset, state.index, value)

    def keep(self) -> None:
        """The changelog has it: so has the table."""
        self.lane.states.keep({**self.entries, **dict.fromkeys(self.tombstones)})
        self.lane.checkpointed = self.offset


class Checkpoint:
    """Makes durable what the lanes have judged. One at a time."""

    def __init__(
        self,
        producer: Any,
        changelog: str,
        *,
        may_write: Callable[[], bool],
        release: Callable[[int, int], None],
        committed: Callable[[int], int],
    ) -> None:
        """Set up checkpoints.

        Args:
            producer: The `AIOKafkaProducer`.
            changelog: Name of the changelog of the table of runs.
            may_write: Whether the partitions are still this worker's; asked before states are written, and after.
            release: Called with a partition and the offset up to which it may be committed.
            committed: The committed offset of a partition.
        """
        self._producer = producer
        self._changelog = changelog
        self._may_write = may_write
        self._release = release
        self._committed = committed
        self._lock = asyncio.Lock()

    async def take(self, lanes: list[Lane], over: Over | None = None) -> bool:
        """Take a checkpoint of these partitions; return whether it was completed.

        Args:
            lanes: The partitions.
            over: Runs that are over: their states go.

        Raises:
            ProduceFailed: the broker did not take a state; nothing was released.
        """
        async with self._lock:
            # (1) Freeze the offsets and the encoded states, of one moment.
            frozen = []
            for lane in lanes:
                async with lane.whole:
                    if not self._may_write():
                        return False  # Their states may be closed already.
                    frozen.append(Frozen(lane, (over or {}).get(lane.partition, {})))
            for each in frozen:
                await each.encode()
            # (2) Wait until all verdicts and dead letters up to them are acknowledged.
            for each in frozen:
                await each.lane.outbox.acknowledged(each.offset)
            # (3) Write the states and wait for their acknowledgement.
            if not self._may_write():
                return False
            await asyncio.gather(*[self._write(each) for each in frozen])
            if not self._may_write():
                return False
            for each in frozen:
                each.keep()
            # (4) Release the input offsets for commit.
            for each in frozen:
                self._release(each.lane.partition, each.offset)
                each.lane.policies.forget_before(self._committed(each.lane.partition))
            return True

    async def find_foreign_writes(self, lanes: list[Lane], ends: Callable[[], Awaitable[dict[int, int]]]) -> None:
        """Compare where the changelog ends with where the own records end, for partitions that write nothing now.

        `ends` asks the broker for the ends, by partition.
        """
        async with self._lock:
            changelog_ends = await ends()
            if not self._may_write():
                return
            for partition, end in changelog_ends.items():
                for lane in lanes:
                    if lane.partition == partition:
                        _expect_end(lane, end, 0, self._changelog)

    async def _write(self, frozen: Frozen) -> None:
        frozen.lane.states.rewrite.difference_update(frozen.rewritten)
        if not frozen.entries and not frozen.tombstones:
            return
        records = Records(self._producer, self._changelog, frozen.lane.partition)
        for key, entry in frozen.entries.items():
            records.append(key, entry.value, [])
        for key, entry in frozen.tombstones.items():
            records.append(key, None, [tombstone_header(entry.offset, entry.index)])
        try:
            sent = await records.send()
            results = await asyncio.gather(*[future for _, future in sent])
        except Exception as error:
            raise ProduceFailed(f"the broker did not take states into {self._changelog}: {error!r}") from error
        for (count, _), result in zip(sent, results, strict=True):
            _expect_end(frozen.lane, result.offset, count, self._changelog)


def _expect_end(lane: Lane, base: int, count: int, changelog: str) -> None:
    if lane.states.expect_end(base, count):
        logger.warning(
            "somebody else wrote to partition %d of %s, a worker that was away for instance: its states are written"
            " again",
            lane.partition,
            changelog,
            extra={"topic": changelog, "partition": lane.partition},
        )


def has_news(lane: Lane) -> bool:
    """Whether a checkpoint of the lane would make anything durable."""
    return lane.next_offset != lane.checkpointed or bool(lane.states.rewrite)
