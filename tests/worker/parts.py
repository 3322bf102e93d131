"""A lane with its checkpoint, and a broker that acknowledges when it is told to."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from loopwarden.worker.checkpoint import Checkpoint
from loopwarden.worker.lane import Lane
from loopwarden.worker.metrics import Metrics
from loopwarden.worker.outbox import Outbox
from loopwarden.worker.policies import Policies
from loopwarden.worker.records import Records
from loopwarden.worker.recovery import States
from loopwarden.worker.stores import Store
from loopwarden.worker.transport import Batch
from loopwarden_schemas.codec import decode_verdict, encode_event
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.structs import Verdict


class SlowBroker:
    """Takes batches like an aiokafka producer, and acknowledges them when it is told to.

    The real one cannot be asked to acknowledge states before verdicts; everything else is tested with it.
    """

    def __init__(self) -> None:
        self.log: list[tuple[str, list[tuple[bytes | None, bytes | None]]]] = []
        self.waiting: dict[str, list[tuple[int, asyncio.Future[Any]]]] = {}
        self.ends: dict[str, int] = {}
        self.headers: list[Any] = []

    def create_batch(self) -> Any:
        records: list[tuple[bytes | None, bytes | None]] = []

        def append(*, timestamp: None, key: bytes | None, value: bytes | None, headers: Any) -> bool:
            records.append((key, value))
            self.headers.append(headers)
            return True

        return SimpleNamespace(append=append, close=lambda: None, record_count=lambda: len(records), records=records)

    async def send_batch(self, batch: Any, topic: str, *, partition: int) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.log.append((topic, batch.records))
        self.waiting.setdefault(topic, []).append((len(batch.records), future))
        return future

    async def acknowledge(self, *topics: str) -> None:
        for topic in topics:
            for count, future in self.waiting.pop(topic, []):
                base = self.ends.get(topic, 0)
                self.ends[topic] = base + count
                future.set_result(SimpleNamespace(offset=base))
        await settle()

    async def refuse(self, topic: str) -> None:
        for _, future in self.waiting.pop(topic, []):
            future.set_exception(RuntimeError("refused"))
        await settle()

    def sent(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        """Keys and values of all that was sent to a topic."""
        return [record for to, records in self.log if to == topic for record in records]

    def verdicts(self) -> list[Verdict]:
        return [decode_verdict(value or b"") for _, value in self.sent("verdicts")]

    def topics(self) -> list[str]:
        return [topic for topic, _ in self.log]


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0.001)


class Parts:
    """A lane with a broker that acknowledges slowly, and what was released and what failed."""

    def __init__(self, store: Store | None = None) -> None:
        self.broker = SlowBroker()
        self.released: list[int] = []
        self.failures: list[BaseException] = []
        self.owner = True
        self.committed = 0
        self.states = States(store)
        self.states.recovered(changelog_end=0)
        self.outbox = Outbox(
            Records(self.broker, "verdicts", 0),
            Records(self.broker, "dead", 0),
            judged=0,
            verdicts_end=0,
            on_progress=lambda: None,
            on_failure=self.failures.append,
        )
        self.policy = PolicyDocument.from_value(
            {"tools": {"loopDetection": {"enabled": True, "warningThreshold": 1, "criticalThreshold": 2}}}
        )
        policies = Policies(SimpleNamespace(get=lambda number: self.policy), [])  # type: ignore[arg-type]
        policies.in_force = lambda offset, index=0: self.policy  # type: ignore[method-assign]
        self.lane = Lane(
            0,
            1,
            states=self.states,
            policies=policies,
            outbox=self.outbox,
            metrics=Metrics(),
            on_policy=lambda policies: None,
            read_again=self.read_again,
        )
        self.records: list[Any] = []
        self.checkpoint = Checkpoint(
            self.broker,
            "changelog",
            may_write=lambda: self.owner,
            release=lambda partition, offset: self.released.append(offset),
            committed=lambda partition: self.committed,
        )
        self.offset = 0

    async def take_checkpoint(self) -> None:
        """Take a checkpoint of which the broker acknowledges everything."""
        taking = asyncio.create_task(self.checkpoint.take([self.lane]))
        while not taking.done():
            await asyncio.sleep(0.001)
            await self.broker.acknowledge("verdicts", "dead", "changelog")
        assert await taking

    async def judge(
        self, *run_ids: str, append_time: int = 1, follows: int | None = None, then: dict[str, Any] | None = None
    ) -> None:
        """Judge the same call again for each of these runs, and then one more event."""
        records = []
        for run_id in run_ids:
            call = {"run_id": run_id, "ts": 0, "call_id": f"c{self.offset}", "tool": "read", "args": None}
            for kind in ("started", "finished"):
                event = {"type": f"tool_call.{kind}", "event_id": f"{kind}-{self.offset}", **call}
                if kind == "finished":
                    event["result"] = "same"
                records.append(self.record(event, run_id.encode(), append_time))
        if then is not None:
            records.append(self.record(then, None, append_time))
        await self.lane.take(Batch(1, follows, records))

    def lone_call(self, run_id: str, number: int) -> dict[str, Any]:
        """A call of which only the outcome is told, the same each time."""
        ids = {"run_id": run_id, "event_id": f"{run_id}-{number}", "ts": 0}
        return {"type": "tool_call.finished", **ids, "tool": "read", "args": None, "result": "same"}

    def record(self, event: dict[str, Any] | list[dict[str, Any]], key: bytes | None, append_time: int) -> Any:
        self.offset += 1
        self.records.append(
            SimpleNamespace(
                topic="agent-events",
                partition=0,
                offset=self.offset - 1,
                timestamp=append_time,
                key=key,
                value=encode_event(event),
                headers=(),
            )
        )
        return self.records[-1]

    async def read_again(self, key: bytes, start: int, end: int) -> list[Any]:
        await asyncio.sleep(0)
        return [record for record in self.records[start:end] if record.key == key]

    def written(self) -> dict[bytes | None, bytes | None]:
        """What the newest batch for the changelog holds."""
        return dict([records for topic, records in self.broker.log if topic == "changelog"][-1])
