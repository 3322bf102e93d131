"""One partition's path through the worker: decode, check the route, skip what was seen, judge, publish.

The lane never waits for the broker's answers: `outbox` counts them, `checkpoint` waits for them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from loopwarden.judge import RunState, freeze, judge, thaw
from loopwarden.worker.dead_letters import dead_letter
from loopwarden.worker.errors import BatchLost
from loopwarden.worker.failures import type_and_place
from loopwarden.worker.mending import Failures, ReadAgain, fold_again
from loopwarden.worker.metrics import Metrics, VerdictKind
from loopwarden.worker.outbox import Outbox
from loopwarden.worker.policies import Policies
from loopwarden.worker.records import Header
from loopwarden.worker.recovery import States
from loopwarden.worker.runs import Held, Runs
from loopwarden.worker.transport import Batch
from loopwarden_schemas.canonical import NotCanonical
from loopwarden_schemas.codec import MESSAGEPACK_HEADER, content_type_of, decode_record, encode_verdict
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.structs import Compaction, Event, EventOfRun, PolicyApplied, Rejected, ToolCallBlocked
from loopwarden_schemas.topics import partition_for

logger = logging.getLogger(__name__)


# A partition is a queue: an event waits for those before it, whichever run they are of. Its verdict waits for no more
# than so many after it, however much one poll brought (a record may hold 100 events): less than a tenth of a second.
_MOST_EVENTS_UNSENT: Final = 2_000


class Lane:
    """One partition of `agent-events` while it is this worker's.

    Attributes:
        next_offset: The offset after the last record judged; before the first, the committed one.
        newest_append_time: Of the records judged (ms): the partition's own clock.
        checkpointed: The offset of the last checkpoint.
        whole: Held while a state is not what its events say: no checkpoint may begin then.
    """

    def __init__(
        self,
        partition: int,
        partitions: int,
        *,
        states: States,
        policies: Policies,
        outbox: Outbox,
        metrics: Metrics,
        on_policy: Callable[[Policies], None],
        read_again: ReadAgain,
    ) -> None:
        """`partitions` is the number of partitions of the topic; `on_policy` is called when a policy was applied."""
        self.partition = partition
        self.states = states
        self.runs = Runs(states)
        self.policies = policies
        self.outbox = outbox
        self.next_offset = outbox.judged
        self.checkpointed = outbox.judged
        self.newest_append_time = 0
        self.whole = asyncio.Lock()
        self._failures = Failures()
        self._read_again = read_again
        self._partitions = partitions
        self._on_policy = on_policy
        self._metrics = metrics
        self._verdicts: Counter[VerdictKind] = Counter()

    async def take(self, batch: Batch) -> int:
        """Judge a batch and send what comes of it; return how many events it had.

        Nothing in a record raises: at worst it is a dead letter.

        Raises:
            BatchLost: records before these were polled and did not arrive.
            UnknownStateVersion: a run's state was written by another version of Loopwarden.
        """
        records = batch.records
        if batch.follows is not None and batch.follows > self.next_offset:
            raise BatchLost(
                f"partition {self.partition}: offsets {self.next_offset} to {batch.follows - 1} were polled but did"
                " not reach the agent; a restart reads them again from the committed offset"
            )
        count, sent, began = 0, 0, time.perf_counter()
        reasons: Counter[str] = Counter()
        policy = self.policies.in_force(records[0].offset)
        for record in records:
            events = self._decode(record)
            count += len(events)
            refused = 0
            for index, event in enumerate(events):
                rejected: Rejected | None
                if isinstance(event, Rejected):
                    rejected = event
                elif isinstance(event, PolicyApplied):
                    if not self.policies.knows(event.number):
                        # A checkpoint may be taken meanwhile: what is judged has to be on its way to be waited for.
                        await self._send(record.offset)
                        await self.policies.read_archive()
                    rejected = self._apply(event, record.offset, index)
                    policy = self.policies.in_force(record.offset, index + 1)
                else:
                    rejected = self._judge(event, record, index, policy)
                    if rejected is not None and rejected.reason == "judge_failed":
                        await self._mend(event.run_id, record, index)
                if rejected is not None:
                    self.outbox.add_dead_letter(*dead_letter(record, rejected, first=refused == 0))
                    refused += 1
                    reasons[rejected.reason] += 1
            if count - sent >= _MOST_EVENTS_UNSENT and record is not records[-1]:
                paused = time.perf_counter()
                await self._send(record.offset + 1)
                await asyncio.sleep(0)
                sent = count
                began += time.perf_counter() - paused
        last = records[-1]
        # Leaders' clocks differ: the newest counts, not the last.
        self.newest_append_time = max(self.newest_append_time, last.timestamp)
        seconds = time.perf_counter() - began
        verdicts, self._verdicts = self._verdicts, Counter()
        self._metrics.judged(self.partition, events=count, seconds=seconds, verdicts=verdicts, rejected=reasons)
        await self._send(last.offset + 1)
        return count

    async def _send(self, judged: int) -> None:
        self.next_offset = max(self.next_offset, judged)
        await self.outbox.send(self.next_offset)

    def _decode(self, record: Any) -> list[Event | Rejected]:
        try:
            return decode_record(record.value, record.timestamp, content_type_of(record.headers))
        except Exception as error:
            # A bug of ours: the record would stop the worker, now and after each restart.
            what = type_and_place(error)
            logger.error(
                "a bug of ours: the codec failed at partition %s offset %s: %s",
                self.partition,
                record.offset,
                what,
                extra={"partition": self.partition, "offset": record.offset},
            )
            return [Rejected(0, "judge_failed", what)]

    def _judge(self, event: EventOfRun, record: Any, index: int, policy: PolicyDocument) -> Rejected | None:
        key, offset = record.key, record.offset
        held = self.runs.get(key)
        if held is None or held.run_id != event.run_id:
            misrouted = self._misrouted(key, event.run_id)
            if misrouted is not None:
                return Rejected(index, "misrouted", misrouted)
            held = self.runs.hold(key, event.run_id)
        if held.frozen is not None:
            held.frozen(held)
        state = held.state
        if state is not None and offset <= state.offset and (offset < state.offset or index <= state.index):
            # Judged before a crash, and its verdicts were acknowledged before this state was.
            return None
        copy = freeze(state) if state is not None and self._failures.expected(offset) else None
        guard_before = _guard(state) if type(event) is Compaction else None
        try:
            state, _, verdicts = judge(state, event, policy)
            # Most events have none, and a comprehension costs as much for none.
            encoded = [encode_verdict(verdict) for verdict in verdicts] if verdicts else []
        except NotCanonical as error:
            return Rejected(index, "invalid_payload", str(error))
        except Exception as error:
            # A bug of ours. The rest of the partition goes on, and so does this run, as if the event were not there.
            what = type_and_place(error)
            logger.error(
                "a bug of ours: the judge failed at partition %s offset %s[%s]: %s",
                self.partition,
                offset,
                index,
                what,
                extra=self._place(event, offset),
            )
            held.damaged = held.state is not None and copy is None
            if copy is not None:
                self._changed(held, thaw(copy), offset, index)
            self._failures.note(offset, index, self.checkpointed)
            return Rejected(index, "judge_failed", what)
        self._changed(held, state, offset, index)
        if encoded or type(event) is ToolCallBlocked or getattr(event, "verdict_id", None) is not None:
            for verdict in verdicts:
                self._verdicts[verdict.action, verdict.phase, verdict.detector] += 1
            held.followed = self._metrics.follow(held.followed, state)
        if encoded:
            headers: list[Header] = [
                MESSAGEPACK_HEADER,
                ("cause-partition", b"%d" % self.partition),
                ("cause-offset", b"%d" % offset),
                ("cause-append-time", b"%d" % record.timestamp),
            ]
            for value in encoded:
                self.outbox.add_verdict(key, value, headers)
        if type(event) is Compaction and _guard(state) != guard_before and state.guard.remaining:
            logger.info(
                "post-compaction guard armed for %d attempts (run %s)",
                state.guard.remaining,
                event.run_id,
                extra=self._place(event, offset),
            )
        return None

    async def _mend(self, run_id: str, record: Any, index: int) -> None:
        """Put a run back to where it was before the event that the judge failed on."""
        key, offset = record.key, record.offset
        held = self.runs.get(key)
        if held is None or not held.damaged:
            return
        async with self.whole:
            records = await self._read_again(key, self.checkpointed, offset + 1)
            # Read now: a checkpoint that had begun before may have brought it up to date.
            state = fold_again(
                self.states.get(key),
                run_id,
                [(each.offset, self._decode(each)) for each in records],
                self.policies,
                self._failures,
                (offset, index),
            )
            # Whoever is not changed may have left memory meanwhile.
            held = self.runs.get(key) or self.runs.hold(key, run_id)
            held.damaged, held.state = False, state
            if state is not None:
                self._changed(held, state, offset, index)

    def _place(self, event: EventOfRun, offset: int) -> dict[str, Any]:
        return {"run": event.run_id, "partition": self.partition, "offset": offset}

    def _changed(self, held: Held, state: RunState, offset: int, index: int) -> None:
        held.state = state
        state.offset, state.index = offset, index
        if not held.changed:
            self.runs.change(held)

    def _misrouted(self, key: bytes | None, run_id: str) -> str | None:
        """Why a run's event may not come under this key in this partition, or None. Once per held run: it is slow."""
        if key is None or key != run_id.encode("utf-8", "surrogatepass"):
            found = "none" if key is None else repr(key.decode("utf-8", "backslashreplace"))
            return f"key: must be the run's id, {run_id!r:.80}, got {found:.80}"
        wanted = partition_for(key, self._partitions)
        if wanted != self.partition:
            return (
                f"partition: run {run_id!r:.80} belongs on {wanted} of {self._partitions}, got {self.partition}: keys"
                " must be partitioned as Kafka's Java client does (librdkafka: partitioner=murmur2_random)"
            )
        return None

    def _apply(self, event: PolicyApplied, offset: int, index: int) -> Rejected | None:
        refusal = self.policies.apply(event, offset, index)
        if refusal is not None:
            return Rejected(index, "unknown_policy", refusal)
        logger.info(
            "policy %d in force in partition %d from offset %d",
            event.number,
            self.partition,
            offset,
            extra={"partition": self.partition, "offset": offset},
        )
        self._on_policy(self.policies)
        return None


def _guard(state: RunState | None) -> tuple[int, object]:
    return (0, None) if state is None else (state.guard.remaining, state.guard.observed)
