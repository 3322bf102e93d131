"""An event that the judge fails on is a dead letter, and its run goes on as if the event were not there."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from loopwarden.judge import RunState, freeze, judge
from loopwarden.worker import lane as lane_module
from loopwarden.worker import mending
from loopwarden.worker.stores import Store
from loopwarden.worker.transport import Batch
from loopwarden_schemas.codec import event_from_value
from loopwarden_schemas.structs import Verdict

from .parts import Parts, settle

PAYLOAD = "a secret of the user's"


class Bug(Exception):
    pass


@pytest.fixture
def fail_on(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Any], bool]], None]:
    """Let the judge fail on some events, once it has changed their runs' states."""

    def fail_on(wanted: Callable[[Any], bool]) -> None:
        def failing(state: Any, event: Any, policy: Any) -> Any:
            judged = judge(state, event, policy)
            if wanted(event):
                raise Bug(PAYLOAD)
            return judged

        monkeypatch.setattr(lane_module, "judge", failing)
        monkeypatch.setattr(mending, "judge", failing)

    return fail_on


@pytest.mark.parametrize("careful_records", [0, 20, 10_000])
@pytest.mark.parametrize("seed", range(3))
def test_whatever_the_judge_fails_on_the_rest_is_judged_as_without_it(
    fail_on: Any, histories: Any, monkeypatch: pytest.MonkeyPatch, store: Store, careful_records: int, seed: int
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(mending, "_CAREFUL_RECORDS", careful_records)
    events = histories[1000 * seed : 1000 * seed + 600]
    bad = {event["event_id"] for event in events if chance.random() < 0.05}
    fail_on(lambda event: event.event_id in bad)

    async def story() -> None:
        parts = Parts(store)
        states: dict[str, RunState] = {}
        expected: list[Verdict] = []
        for start in range(0, len(events), 40):
            batch = events[start : start + 40]
            records = [parts.record(event, event["run_id"].encode(), 1) for event in batch]
            await parts.lane.take(Batch(1, None, records))
            for event in batch:
                decoded: Any = event_from_value(event, append_time=1)
                if event["event_id"] not in bad:
                    judged = judge(states.get(event["run_id"]), decoded, parts.policy)
                    states[event["run_id"]] = judged.state
                    expected += judged.verdicts
            if chance.random() < 0.3:
                await parts.take_checkpoint()
        await parts.take_checkpoint()
        assert parts.broker.verdicts() == expected
        assert len(parts.broker.sent("dead")) == sum(event["event_id"] in bad for event in events)
        for run_id, state in states.items():
            entry = store.get(run_id.encode())
            assert entry is not None
            state.offset, state.index = entry.place
            assert entry.value == freeze(state)

    asyncio.run(story())


def test_what_failed_is_not_judged_again_after_a_restart_that_knows_of_it(fail_on: Any, store: Store) -> None:
    fail_on(lambda event: event.event_id == "started-2")

    async def story() -> None:
        parts = Parts(store)
        await parts.judge("run", "run")
        await parts.take_checkpoint()
        entry = store.get(b"run")
        assert entry is not None
        assert entry.offset == 3
        again = Parts(store)
        await again.judge("run", "run")
        assert again.broker.topics() == []

    asyncio.run(story())


def test_the_letter_says_type_and_place_and_nothing_of_the_payload(
    fail_on: Any, caplog: pytest.LogCaptureFixture
) -> None:
    fail_on(lambda event: True)

    async def story() -> None:
        parts = Parts()
        await parts.judge("run")
        headers = dict(parts.broker.headers[0])
        assert headers["reason"] == b"judge_failed"
        assert headers["detail"].startswith(b"Bug at worker/test_mending.py:")
        assert b"in failing, from worker/lane.py:" in headers["detail"]
        assert PAYLOAD not in str(parts.broker.headers)

    asyncio.run(story())
    assert "a bug of ours: the judge failed at partition 0 offset 0[0]: Bug at " in caplog.text
    assert PAYLOAD not in caplog.text


def test_no_checkpoint_takes_a_state_that_is_being_mended(fail_on: Any, store: Store) -> None:
    fail_on(lambda event: event.event_id == "finished-3")

    async def story() -> None:
        parts = Parts(store)
        read = asyncio.Event()
        read_again = parts.lane._read_again

        async def later(key: bytes, start: int, end: int) -> list[Any]:
            await read.wait()
            return await read_again(key, start, end)

        parts.lane._read_again = later
        judging = asyncio.create_task(parts.judge("run", "run", "run"))
        await settle()
        taking = asyncio.create_task(parts.take_checkpoint())
        await settle()
        assert "changelog" not in parts.broker.topics()
        read.set()
        await judging
        await taking
        without = Parts()
        fail_on(lambda event: False)
        await without.lane.take(Batch(1, None, [each for each in parts.records if each.offset != 3]))
        held = without.lane.runs.get(b"run")
        entry = store.get(b"run")
        assert held is not None
        assert held.state is not None
        assert entry is not None
        assert entry.value == freeze(held.state)

    asyncio.run(story())


def test_a_verdict_waits_for_a_bounded_number_of_events_behind_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much one poll brings, and whichever run it is of: 100 events are in each of these records."""
    judged_at_send: list[int] = []
    judged = 0

    def counting(state: Any, event: Any, policy: Any) -> Any:
        nonlocal judged
        judged += 1
        return judge(state, event, policy)

    monkeypatch.setattr(lane_module, "judge", counting)

    async def story() -> None:
        parts = Parts()
        send_batch = parts.broker.send_batch

        async def send(batch: Any, topic: str, *, partition: int) -> Any:
            judged_at_send.append(judged)
            return await send_batch(batch, topic, partition=partition)

        monkeypatch.setattr(parts.broker, "send_batch", send)
        quiet = [parts.lone_call("quiet", number) for number in range(3)]
        flood = [parts.lone_call("flood", number) for number in range(10_000)]
        records = [
            parts.record(quiet, b"quiet", 1),
            *(parts.record(flood[start : start + 100], b"flood", 1) for start in range(0, len(flood), 100)),
        ]
        await parts.lane.take(Batch(1, None, records))

    asyncio.run(story())
    assert judged == 10_003
    assert judged_at_send[0] < 2_200, "the verdicts of the quiet run left the worker before the flood was judged"
