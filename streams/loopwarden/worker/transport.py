"""Faust's transport with four things changed: the batch lane, released offsets, one thread, and an idempotent producer.

Stock Faust makes an event, several tasks and an acknowledgement of every record (340 us); here a poll of a partition is
one event (engine-facts, sections 1 and 3). Stock Faust polls in a thread of its own, so that an agent that computes for
long holds up no heartbeat. A lane never does, and two threads cost each poll four hand-overs of the interpreter: here
the consumer lives in the worker's own event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, cast

from aiokafka.errors import CommitFailedError, IllegalStateError, TopicAuthorizationFailedError
from faust.exceptions import ConsumerNotStarted
from faust.transport.drivers import aiokafka as driver
from faust.types import TP, AppT, ConsumerMessage, Message
from faust.types.transports import ConsumerT, ProducerT, TPorTopicSet
from mode.utils.futures import maybe_async, notify

FAUST_LOG = logging.getLogger("faust.loopwarden")
"""Where Faust's own code says what it does in our classes: beside the rest of its log, not in ours."""

# What Kafka counts beyond a batch's bytes is little, and its default limit is 1 MiB for a batch. A state is 128 KiB at
# the very most. Smaller batches cost more requests, larger ones would not be faster.
MAX_BATCH_BYTES = 256 * 1024

# How long the broker waits for events before it answers that there are none.
_FETCH_MAX_WAIT_MS = 250

# While every partition's queue is full, Faust's fetcher would sleep a second (engine-facts, B7).
_QUEUE_FULL_PAUSE_S = 0.005

# While recovery has not sought yet: a few round trips.
_NOT_SOUGHT_PAUSE_S = 0.005

# What crashed stops at once; until then nothing is polled again.
_AFTER_CRASH_S = 1.0


class Batch(NamedTuple):
    """The records of one poll of one partition."""

    generation: int
    """Of the consumer group, when they were polled."""
    follows: int | None
    """The offset after the last record polled before these, or the one sought; None where nothing was committed."""
    records: list[Any]
    """aiokafka's ConsumerRecords, at least one."""


class End(NamedTuple):
    """Where a partition ends, as the broker said."""

    offset: int
    told_at: float
    """When it said so, in seconds since the epoch."""


class ConsumerThread(driver.AIOKafkaConsumerThread):
    """What polls and heartbeats; a thread by Faust's name for it only.

    Attributes:
        stops: How often the flow was stopped, which is how each assignment anew begins.
    """

    logger = FAUST_LOG
    stops = 0
    _serving: asyncio.Task[None]

    async def start(self) -> None:
        self._thread_started.set()
        self._thread_running = self.parent_loop.create_future()
        self._serving = self.parent_loop.create_task(self._serve())
        self._serving.add_done_callback(self._served)
        try:
            await self._thread_running
        finally:
            self._thread_running = None

    def _served(self, serving: asyncio.Task[None]) -> None:
        # What it failed with, `_serve` has told the app. Whoever waits for its end need not wait.
        if not serving.cancelled() and serving.exception() is not None:
            self.set_shutdown()

    async def _gather_remaining_tasks(self) -> None:
        # Of a loop of its own; here they are everybody's.
        pass

    async def call_thread(self, fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await maybe_async(fun(*args, **kwargs))

    def _create_worker_consumer(self, transport: driver.Transport) -> Any:
        consumer = super()._create_worker_consumer(transport)
        # Faust sets 1.5 s, and takes no other. A question for offsets waits behind a fetch on its connection, so each
        # recovery, and with it each rebalance, would take two seconds longer.
        consumer._fetch_max_wait_ms = _FETCH_MAX_WAIT_MS
        return consumer

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        # Faust looks for the words "already rebalanced", between which aiokafka's text has a line break: it would stop
        # the worker for what only means that the partitions belong to somebody else now.
        try:
            await self._ensure_consumer().commit(
                {driver.ensure_aiokafka_TP(tp): offset for tp, offset in offsets.items() if tp in self.assignment()}
            )
        except (CommitFailedError, IllegalStateError):
            return False
        except Exception as error:
            await self.crash(error)
            return False
        return True

    async def _fetch_records(
        self, consumer: Any, active_partitions: set[TP], timeout: float | None = None, max_records: int | None = None
    ) -> Any:
        stops = self.stops
        records = await super()._fetch_records(consumer, active_partitions, timeout, max_records)
        if stops == self.stops:
            return records
        # A poll goes on waiting while the partitions are assigned anew, and what it finds then is for nobody. Where
        # recovery has sought already, the next poll would begin behind it.
        for tp, polled in records.items():
            if consumer._subscription.is_assigned(tp):
                consumer._fetcher.seek_to(tp, polled[0].offset)
        return {}

    @property
    def generation(self) -> int:
        """Of the group, as the broker last said; below 0 once it does not know this worker any more."""
        return int(self._ensure_consumer()._coordinator.generation)

    async def committed(self, tp: TP) -> int | None:
        """Return the offset that the broker has as committed, or None."""
        found: int | None = await self.call_thread(self._ensure_consumer().committed, driver.ensure_aiokafka_TP(tp))
        return found

    def end(self, tp: TP) -> End | None:
        """Return where the partition ends, as the last fetch said; None where none said it yet."""
        # Between two assignments aiokafka does not know the partition.
        with contextlib.suppress(AssertionError, AttributeError, ConsumerNotStarted, IllegalStateError):
            consumer, at = self._ensure_consumer(), driver.ensure_aiokafka_TP(tp)
            offset, told_ms = consumer.highwater(at), consumer.last_poll_timestamp(at)
            return None if offset is None or told_ms is None else End(offset, told_ms / 1000)
        return None

    async def check_group(self) -> None:
        """Raise what ended aiokafka's part in the group: Faust never looks, and would hang for ever."""

        async def check() -> None:
            self._ensure_consumer()._coordinator.check_errors()

        await self.call_thread(check)

    async def rejoin(self) -> None:
        """Leave the generation for the next one."""

        async def request() -> None:
            self._ensure_consumer()._coordinator.request_rejoin()

        await self.call_thread(request)


class Consumer(driver.Consumer):
    """Yields batches, and commits what was released and nothing else."""

    logger = FAUST_LOG
    _thread: ConsumerThread

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._released: dict[TP, int] = {}
        self._follows: dict[TP, int] = {}
        self._sought = False
        self.polled_at: float | None = None
        """When the last poll came back (`time.monotonic`), with records or without."""

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, thread_loop=self.loop, beacon=self.beacon)

    @property
    def thread(self) -> ConsumerThread:
        """What polls and heartbeats."""
        return self._thread

    def release(self, tp: TP, offset: int) -> None:
        """Allow the committer to commit up to this offset: everything below it is judged and durable."""
        self._released[tp] = offset

    def committed(self, tp: TP) -> int:
        """The committed offset, as far as this worker knows: 0 where it knows of none."""
        return self._committed_offset[tp] or 0

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, Message]]:
        """Yield one message for each partition's batch.

        Records of changelogs go to the table at once; Faust's recovery gets the last of them, to know how far it is.
        """
        records, active = await self._wait_next_records(timeout)
        self.polled_at = time.monotonic()
        if records is None or self.should_stop:
            return
        # aiokafka returns what the assignment of now has; while one is replaced the flow is stopped, and recovery seeks
        # before it lets it go on. (Faust's own seek at this point would meet recovery's in reading the changelog.)
        generation = self.app.consumer_generation_id
        for tp, polled in records.items():
            if not self.flow_active or generation != self.app.consumer_generation_id:
                return
            if not (active is None or tp in active or tp in self._buffered_partitions):
                continue
            if self._is_changelog_tp(tp):
                cast(Any, self.app).runs.read(polled)
                yield tp, self._to_message(tp, polled[-1])
                continue
            last = polled[-1]
            batch = Batch(generation, self._follows.get(tp), polled)
            self._follows[tp] = last.offset + 1
            # Otherwise Faust would take the offsets inside the batch for a gap, and mark them as acknowledged.
            self._read_offset[tp] = last.offset - 1
            yield tp, self._to_batch_message(tp, last, batch)

    async def _wait_next_records(self, timeout: float) -> tuple[Any, set[TP] | None]:
        if self.flow_active and self._buffered_partitions and not self._get_active_partitions():
            await self.sleep(_QUEUE_FULL_PAUSE_S)
            return {}, set()
        return await super()._wait_next_records(timeout)

    def _to_batch_message(self, tp: TP, last: Any, batch: Batch) -> ConsumerMessage:
        message = self._to_message(tp, last)
        message.key, message.value, message.headers = None, cast(bytes, batch), None
        return message

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:
        # Recovery resumes the partitions of events before it seeks. A poll in between goes on where the last one before
        # the assignment stopped, behind what was dropped then: a run's later event would be judged before an earlier
        # one, and that one be skipped as seen.
        # A copy, too: Faust pauses partitions in this very set while the poll waits, and where none is left aiokafka
        # takes that for all, and goes on behind records that nobody gets.
        active = {tp for tp in active_partitions or () if self._sought or self._is_changelog_tp(tp)}
        if not active:
            await self.sleep(_NOT_SOUGHT_PAUSE_S)
            return {}
        try:
            return await super()._getmany(active, timeout)
        except TopicAuthorizationFailedError as error:
            # Faust would log it with a traceback and leave its tasks where they are.
            await self.app.crash(error)
            await self.sleep(_AFTER_CRASH_S)
            return {}

    def stop_flow(self) -> None:
        super().stop_flow()
        self._sought = False
        self._thread.stops += 1

    async def perform_seek(self) -> None:
        await super().perform_seek()
        # aiokafka leaves partitions where they are that have no committed offset yet.
        fresh = [tp for tp in self.assignment() if not self._is_changelog_tp(tp) and not self._read_offset[tp]]
        if fresh:
            await self._thread.seek_to_beginning(*map(driver.ensure_aiokafka_TP, fresh))
        self._follows = {tp: offset for tp, offset in self._read_offset.items() if offset}
        self._sought = True

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        await super().on_partitions_revoked(revoked)
        for tp in revoked:
            self._released.pop(tp, None)
            self._follows.pop(tp, None)

    def verify_event_path(self, now: float, tp: TP) -> None:
        # Faust's search for stalled partitions reads what is not kept here, and is known for false alarms
        # (engine-facts, B10); `ConsumerThread.check_group` and `Batch.follows` find what is really wrong.
        pass

    def ack(self, message: Message) -> bool:
        # Without Faust's lists of acknowledged offsets: they would grow by an entry a batch, and decide nothing here.
        if message.acked:
            return False
        message.acked = True
        self._unacked_messages.discard(message)
        notify(self._waiting_for_ack)
        return True

    def _filter_tps_with_pending_acks(self, topics: TPorTopicSet | None = None) -> Iterator[TP]:
        return iter([tp for tp in self._released if topics is None or tp in topics or tp.topic in topics])

    def _new_offset(self, tp: TP) -> int | None:
        return self._released.get(tp)


class Producer(driver.Producer):
    """aiokafka's producer, idempotent, every record acknowledged by all replicas in sync."""

    logger = FAUST_LOG

    def _settings_extra(self) -> Mapping[str, Any]:
        return {"acks": "all", "enable_idempotence": True}

    @property
    def aiokafka(self) -> Any:
        """The producer itself, for whole batches."""
        return self._ensure_producer()


class Transport(driver.Transport):
    """Faust's aiokafka transport with the two above."""

    Consumer: ClassVar[type[ConsumerT]] = Consumer
    Producer: ClassVar[type[ProducerT]] = Producer


def new_transport(app: AppT, servers: Iterable[Any]) -> Transport:
    """Return the transport for an app's list of brokers."""
    return Transport(list(servers), app)
