"""The Faust app: `faust -A loopwarden.worker.app worker`, or `loopwarden worker`.

Faust brings the consumer group, recovery and the agent; it is subclassed where engine-facts says that it must be, and
never patched. The parts that judge are in `lane`, those that make durable in `checkpoint`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from functools import partial
from typing import Any, cast

import faust
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError, TopicAuthorizationFailedError
from aiokafka.protocol.metadata import MetadataRequest
from faust.app.base import BootStrategy
from faust.exceptions import ConsumerNotStarted
from faust.types import TP, StreamT
from faust.types.transports import ConsumerT, TransportT
from mode.utils.objects import cached_property
from mode.utils.queues import FlowControlEvent

from loopwarden.client.errors import Missing, NotAuthorized
from loopwarden.worker import endpoint, sweep
from loopwarden.worker.announce import Detectors
from loopwarden.worker.checkpoint import Checkpoint, Over, has_news
from loopwarden.worker.credentials import credentials
from loopwarden.worker.errors import (
    BatchLost,
    GroupFailed,
    NotAdmitted,
    ProduceFailed,
    SettingsError,
    TopicsRefused,
    WorkerError,
)
from loopwarden.worker.gauges import Gauges
from loopwarden.worker.lane import Lane
from loopwarden.worker.log import faust_logging
from loopwarden.worker.metrics import Metrics
from loopwarden.worker.outbox import Outbox
from loopwarden.worker.policies import POLICIES_KEY, Policies, PolicyArchive
from loopwarden.worker.preflight import check_log, wait_for_topics
from loopwarden.worker.presence import Presence
from loopwarden.worker.progress import Progress
from loopwarden.worker.records import Records
from loopwarden.worker.recovery import RunsTable, States
from loopwarden.worker.reread import read_again
from loopwarden.worker.settings import ROCKSDB, Settings
from loopwarden.worker.standing import INTERVAL_S as LOOK_INTERVAL_S
from loopwarden.worker.standing import Lookout, Phase
from loopwarden.worker.transport import FAUST_LOG, MAX_BATCH_BYTES, Batch, Consumer, Producer, new_transport
from loopwarden_schemas.topics import RUNS_TABLE, declared_topics

logger = logging.getLogger(__name__)

# Records of one poll of a partition, and batches that wait for the agent: what bounds the memory for unjudged events.
# Measured: fewer records a poll cost speed (engine-facts, section 3), more batches only memory.
_MAX_POLL_RECORDS = 10_000
_MAX_WAITING_BATCHES = 16

# Away for so long, it says so.
_SHORTLY_AWAY_S = 2.0

# How often the group's health is looked at.
_WATCH_S = 0.5

# A broker that does not answer a produce request for so long is gone: then the worker ends instead of waiting.
_PRODUCE_TIMEOUT_S = 120.0

# One broker of several may be away; the next question goes to any of them.
_ASK_AGAIN_S = 0.2


class SafeFlowControl(FlowControlEvent):
    """Resuming what is not suspended does nothing.

    Faust's own clears the queues then, and after each recovery events are lost for good (engine-facts, B1).
    """

    def resume(self) -> None:
        if not self.is_active():
            super().resume()


class NoWeb(BootStrategy):
    """No web port, whatever the command line says: Faust's serves the table to anybody."""

    enable_web = False


class WorkerApp(faust.App):
    """One worker of the installation that its settings name."""

    BootStrategy = NoWeb
    logger = FAUST_LOG

    def __init__(self, settings: Settings) -> None:
        self.worker_settings = settings
        self.declared = declared_topics(settings.topic_prefix)
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        super().__init__(
            self.declared.app_id,
            broker=f"kafka://{settings.bootstrap_servers.replace(',', ';')}",
            broker_credentials=credentials(settings.security),
            datadir=settings.data_dir,
            # Its own stores stay empty: `RunsTable` has others.
            store="memory://",
            Table=RunsTable,
            # Effectively once by deterministic ids; exactly_once in Faust loses and invents (engine-facts, section 2).
            processing_guarantee="at_least_once",
            consumer_auto_offset_reset="earliest",
            consumer_group_instance_id=settings.group_instance_id,
            logging_config=faust_logging(settings.log_format),
            # A copy in memory would be thrown away when it is needed (engine-facts, section 1).
            table_standby_replicas=0,
            topic_allow_declare=False,
            topic_disable_leader=True,
            reply_create_topic=False,
            autodiscover=False,
            web_enabled=False,
            stream_buffer_maxsize=_MAX_WAITING_BATCHES,
            stream_wait_empty=True,
            broker_max_poll_records=_MAX_POLL_RECORDS,
            broker_session_timeout=settings.session_seconds,
            broker_heartbeat_interval=min(3.0, settings.session_seconds / 4),
            broker_request_timeout=max(60.0, settings.session_seconds + 10),
            broker_commit_interval=settings.checkpoint_seconds,
            producer_max_batch_size=MAX_BATCH_BYTES,
            producer_request_timeout=_PRODUCE_TIMEOUT_S,
            producer_linger=0,
        )
        self.partitions: int | None = None
        """Of `agent-events`; None until the topics are checked."""
        self._lanes: dict[int, Lane] = {}
        self._reader: AIOKafkaConsumer | None = None
        self._tenure = 0
        """Counts how often lanes were forgotten: nothing that was begun before may be written after."""
        self._events = 0
        self._presence = Presence(settings.session_seconds)
        self._asked_to_rejoin: int | None = None
        self._detectors = Detectors()
        self.runs = cast(RunsTable, self.Table(RUNS_TABLE, key_type=bytes, value_type=bytes))
        self._metrics = Metrics()
        self._lookout = Lookout()
        self._metrics.registry.register(Gauges(lambda: self._lookout.standing))
        self._judging = False
        """Whether recovery is done and the lanes are there."""
        self.runs.on_recovered(self._begin_lanes)
        events = self.topic(
            self.declared.events.name, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw"
        )

        async def judge(batches: StreamT[Any]) -> None:
            async for batch in batches:
                try:
                    await self._judge(batch)
                except Exception as error:
                    # What escapes an agent only restarts it, and its batch counts as done (engine-facts, B5).
                    await self.crash(error)

        self.agent(events, name="judge")(judge)
        for task in (self._write_progress, self._take_checkpoints, self._sweep):
            self.task(task)

    # -- what Faust is told to build ----------------------------------------------------------------------------------

    def _new_transport(self) -> TransportT:
        return new_transport(self, self.conf.broker_consumer)

    def _new_producer_transport(self) -> TransportT:
        return new_transport(self, self.conf.broker_producer)

    @cached_property
    def flow_control(self) -> FlowControlEvent:
        return SafeFlowControl(loop=self.loop)

    @property
    def _group(self) -> Consumer:
        consumer = self.consumer
        assert isinstance(consumer, Consumer)
        return consumer

    @property
    def _aiokafka_producer(self) -> Any:
        producer = self.producer
        assert isinstance(producer, Producer)
        return producer.aiokafka

    # -- start and end ------------------------------------------------------------------------------------------------

    async def on_first_start(self) -> None:
        # From the first moment: what waits for a broker is alive, and not ready.
        self.add_future(self._look_out())
        try:
            self._serve()
            self.partitions = await wait_for_topics(self.worker_settings.connection)
        except (NotAdmitted, SettingsError, TopicsRefused) as error:
            await self.crash(error)
            return
        await super().on_first_start()

    async def on_start(self) -> None:
        await super().on_start()
        self._reader = self._new_reader()
        await self._reader.start()
        try:
            await self._open_stores()
        except WorkerError as error:
            await self.crash(error)
            return
        self._archive = PolicyArchive(self._reader, self.declared.policies.name)
        self._progress = Progress(self.declared.progress.name)
        self._checkpoint_due = asyncio.Event()
        # Not with the app's tasks, which begin after recovery: a group that refuses this worker lets it wait there.
        self.add_future(self._watch())

    def _serve(self) -> None:
        settings = self.worker_settings
        if settings.metrics_port is not None:
            endpoint.serve(
                settings.metrics_address, settings.metrics_port, self._metrics.registry, lambda: self._lookout.standing
            )

    def _new_reader(self) -> AIOKafkaConsumer:
        """A consumer beside the group."""
        servers = self.worker_settings.bootstrap_servers.split(",")
        security = self.worker_settings.security.for_aiokafka()
        return AIOKafkaConsumer(bootstrap_servers=servers, enable_auto_commit=False, **security)

    async def _open_stores(self) -> None:
        if self.worker_settings.store != ROCKSDB:
            return
        # Not at the top: it is an extra of its own.
        from loopwarden.worker.rocksdb_store import RocksDBStores

        cluster_id = await self._cluster_id()
        stores = RocksDBStores(self.worker_settings.data_dir, self.declared.app_id, cluster_id)
        changelog = self.declared.changelog.name
        self.runs.keep_in(stores, ends=lambda partitions: self._ends(changelog, partitions))

    async def _cluster_id(self) -> str:
        assert self._reader is not None, "it is asked by it"
        client = self._reader._client
        while True:
            try:
                response = await client.send(client.get_random_node(), MetadataRequest([]))
                return str(response.cluster_id)
            except KafkaError as error:
                logger.warning("a broker does not say which cluster it is of (%s): another one is asked", error)
            await asyncio.sleep(_ASK_AGAIN_S)

    async def on_stop(self) -> None:
        # Not ready from here, and not from the next look.
        self._look()
        await super().on_stop()

    async def on_shutdown(self) -> None:
        if self._reader is not None:
            await self._reader.stop()
        await super().on_shutdown()
        self.runs.close()

    async def crash(self, reason: BaseException) -> None:
        reason = self._right_missing(reason) or reason
        if not isinstance(reason, WorkerError):
            await super().crash(reason)
            return
        if not self.crashed:
            logger.error("the worker stops: %s", reason)
        # Said above; Faust would say it again, with a traceback. (There is no await in between.)
        FAUST_LOG.disabled = True
        try:
            await super().crash(reason)
        finally:
            FAUST_LOG.disabled = False

    def _right_missing(self, reason: BaseException) -> NotAdmitted | None:
        """What to tell where a right was taken away from this worker while it ran."""
        cause = reason.__cause__ if isinstance(reason, ProduceFailed) else reason
        if not isinstance(cause, TopicAuthorizationFailedError):
            return None
        right = "Read" if cause is reason else "Write"
        connection = self.worker_settings.connection
        missing = Missing("topic", str(cause.args[0]), right)
        return NotAdmitted(str(NotAuthorized(connection.security.principal, connection.bootstrap_servers, missing)))

    def _crash_soon(self, reason: BaseException) -> None:
        self.add_future(self.crash(reason))

    # -- partitions come and go ---------------------------------------------------------------------------------------

    async def _begin_lanes(self, partitions: set[int]) -> None:
        """Recovery has the states of these partitions; their events come next."""
        self._forget_lanes()
        tenure, generation = self._tenure, self.consumer_generation_id
        await self._archive.read_to_end()
        events_end = await self._ends(self.declared.events.name, partitions)
        verdicts_end = await self._ends(self.declared.verdicts.name, partitions)
        committed = {
            partition: await self._group.thread.committed(self._events_tp(partition)) or 0 for partition in partitions
        }
        if tenure != self._tenure or generation != self.consumer_generation_id:
            return  # Meanwhile they were assigned anew, and this is done anew.
        self._presence.begin()
        self._asked_to_rejoin = None
        self._checkpoint = Checkpoint(
            self._aiokafka_producer,
            self.declared.changelog.name,
            may_write=lambda: self._is_owner(tenure, generation),
            release=lambda partition, offset: self._group.release(self._events_tp(partition), offset),
            committed=lambda partition: self._group.committed(self._events_tp(partition)),
        )
        for partition in sorted(partitions):
            states = self.runs.states(partition)
            judged = max(committed[partition], states.last_offset + 1)
            check_log(self.declared, partition, judged=judged, end=events_end[partition])
            lane = self._new_lane(partition, states, committed[partition], verdicts_end[partition])
            self._lanes[partition] = lane
            # Whoever judged up to here may have died before it could tell.
            self._progress.moved(partition, lane.outbox)
        numbers = ", ".join(map(str, sorted(partitions))) or "none (the others are enough)"
        logger.info("ready, judging partitions of %s: %s", self.declared.events.name, numbers)
        self._detectors.say_newest([lane.policies for lane in self._lanes.values()])
        self._judging = True

    def _new_lane(self, partition: int, states: States, committed: int, verdicts_end: int) -> Lane:
        producer = self._aiokafka_producer
        outbox = Outbox(
            Records(producer, self.declared.verdicts.name, partition),
            Records(producer, self.declared.dead.name, partition),
            judged=committed,
            verdicts_end=verdicts_end,
            on_progress=lambda: self._progress.moved(partition, outbox),
            on_failure=self._crash_soon,
        )
        entry = states.get(POLICIES_KEY)
        policies = Policies.thaw(self._archive, None if entry is None else entry.value, partition)
        assert self.partitions is not None, "the topics are checked before anything starts"
        return Lane(
            partition,
            self.partitions,
            states=states,
            policies=policies,
            outbox=outbox,
            metrics=self._metrics,
            on_policy=self._detectors.say,
            read_again=partial(read_again, self._new_reader, self.declared.events.name, partition),
        )

    async def _ends(self, topic: str, partitions: set[int]) -> dict[int, int]:
        assert self._reader is not None, "there are lanes only once the app has started"
        ends = await self._reader.end_offsets([TopicPartition(topic, partition) for partition in partitions])
        return {tp.partition: end for tp, end in ends.items()}

    async def _changelog_ends(self) -> dict[int, int]:
        return await self._ends(self.declared.changelog.name, set(self._lanes))

    def _events_tp(self, partition: int) -> TP:
        return TP(self.declared.events.name, partition)

    async def _consumer_wait_empty(self, consumer: ConsumerT, logger: Any) -> None:
        # Before partitions go, and before the worker ends: what is judged is made durable, so nobody judges it again.
        await super()._consumer_wait_empty(consumer, logger)
        if not self.crashed:
            await self._take_checkpoint([lane for lane in self._lanes.values() if has_news(lane)])
            await consumer.commit()

    async def _on_partitions_revoked(self, revoked: set[TP]) -> None:
        await super()._on_partitions_revoked(revoked)
        self._forget_lanes()

    def _forget_lanes(self) -> None:
        """Discard decoded states and what was not sent: only the changelog counts from here."""
        for lane in self._lanes.values():
            lane.outbox.close()
        self._lanes.clear()
        self._progress.forget()
        self._tenure += 1
        self._judging = False

    def _is_owner(self, tenure: int, generation: int) -> bool:
        """Whether the partitions of the lanes are still this worker's, as far as it can know."""
        return (
            tenure == self._tenure
            and generation == self.consumer_generation_id == self._group.thread.generation
            and self._presence.still_in(generation)
            and not self.crashed
        )

    # -- the work -----------------------------------------------------------------------------------------------------

    async def _judge(self, batch: Batch) -> None:
        if self.should_stop or batch.generation != self.consumer_generation_id:
            return
        if not self._presence.still_in(batch.generation):
            return
        partition = batch.records[0].partition
        lane = self._lanes.get(partition)
        if lane is None:
            if self.rebalancing:
                return  # Recovery seeks to the committed offset before it ends.
            raise BatchLost(f"partition {partition}: its events came before its states; a restart begins in order")
        try:
            self._events += await lane.take(batch)
        except Exception:
            if self._lanes.get(partition) is not lane:
                return  # It was taken away meanwhile, and what it needs with it.
            raise
        if self._events >= self.worker_settings.checkpoint_events:
            self._checkpoint_due.set()
        if len(lane.runs) > 2 * self._runs_per_lane():
            # Changed runs cannot go before the table knows them.
            await self._take_checkpoint([lane])

    async def _take_checkpoints(self) -> None:
        while not self.should_stop:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._checkpoint_due.wait(), self.worker_settings.checkpoint_seconds)
            self._checkpoint_due.clear()
            await self._take_checkpoint([lane for lane in self._lanes.values() if has_news(lane)])

    async def _take_checkpoint(self, lanes: list[Lane], over: Over | None = None) -> None:
        if not lanes:
            return
        self._events = 0
        began = time.monotonic()
        if await self._checkpoint.take(lanes, over):
            self._lookout.checkpoint_completed([lane.partition for lane in lanes], began)
            self._metrics.checkpoint_took(time.monotonic() - began)
            for lane in lanes:
                lane.runs.shrink(self._runs_per_lane())

    def _runs_per_lane(self) -> int:
        return max(1, self.worker_settings.held_runs // max(1, len(self._lanes)))

    async def _write_progress(self) -> None:
        try:
            while not self.should_stop:
                await self._progress.write(self._aiokafka_producer)
        except KafkaError as error:
            raise ProduceFailed(f"the broker did not take {self.declared.progress.name}: {error!r}") from error

    async def _sweep(self) -> None:
        while not self.should_stop:
            await self.sleep(sweep.INTERVAL_S)
            lanes = list(self._lanes.values())
            if self.should_stop or not lanes:
                continue
            try:
                await self._checkpoint.find_foreign_writes(lanes, self._changelog_ends)
            except KafkaError as error:
                logger.warning("the broker does not say where the changelog ends (%s): it is asked again later", error)
                continue
            over = {lane.partition: await self._over(lane) for lane in lanes}
            await self._take_checkpoint([lane for lane in lanes if over[lane.partition]], over)

    async def _over(self, lane: Lane) -> dict[bytes, tuple[int, int]]:
        over: dict[bytes, tuple[int, int]] = {}
        for _ in range(sweep.SCANS):
            if self._lanes.get(lane.partition) is not lane:
                return {}  # Taken away meanwhile, and its states with it.
            over |= sweep.over(lane, self._group.committed(self._events_tp(lane.partition)))
            await self.sleep(sweep.PAUSE_S)
        return over

    async def _look_out(self) -> None:
        while True:
            self._look()
            began = time.monotonic()
            await asyncio.sleep(LOOK_INTERVAL_S)
            # Nothing else ran either, heartbeats among it.
            if time.monotonic() - began > LOOK_INTERVAL_S + _SHORTLY_AWAY_S:
                logger.warning("this worker did not run for some seconds (paused, or short of CPU); it goes on")

    def _look(self) -> None:
        lanes = list(self._lanes.values())
        self._lookout.look(
            self._phase(),
            lanes,
            {lane.partition: self._group.thread.end(self._events_tp(lane.partition)) for lane in lanes},
            polled_at=self._group.polled_at if lanes else None,
            recovery_remaining=self._recovery_remaining(),
            rebalances=self.rebalancing_count,
            detectors_on=self._detectors.on if lanes else None,
        )

    def _phase(self) -> Phase:
        if self.should_stop:
            return Phase.stopping
        if self._judging:
            return Phase.judging
        if self.partitions is None:
            return Phase.waiting
        return Phase.recovering if self._recovery_remaining() else Phase.joining

    def _recovery_remaining(self) -> int:
        if self.partitions is None:
            return 0
        remaining: int = cast(Any, self.tables).recovery.active_remaining_total()
        return max(0, remaining)

    async def _watch(self) -> None:
        """Look at the group: whether it refuses this worker, and whether this worker slept through a generation."""
        while not self.should_stop:
            await self.sleep(_WATCH_S)
            generation = self.consumer_generation_id
            try:
                if not self._presence.still_in(generation) and self._asked_to_rejoin != generation:
                    self._asked_to_rejoin = generation
                    logger.warning(
                        "this worker was away longer than its session of %g s: it drops what it had not sent and starts"
                        " again from the committed offsets",
                        self.worker_settings.session_seconds,
                    )
                    self._forget_lanes()
                    await self._group.thread.rejoin()
                await self._group.thread.check_group()
            except ConsumerNotStarted:
                continue
            except KafkaError as error:
                raise GroupFailed(f"the broker does not let this worker into its group: {error}") from error


def __getattr__(name: str) -> Any:
    # Made when Faust asks for it, not when this module is imported: the settings are read from the environment then.
    if name != "app":
        raise AttributeError(name)
    try:
        app = WorkerApp(Settings.from_environment())
    except SettingsError as error:
        raise SystemExit(str(error)) from None
    globals()["app"] = app
    return app
