"""The order that the guarantees rest on: verdicts, then states, then offsets; and what a checkpoint writes."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import msgspec
import pytest

from loopwarden.judge import RunState, freeze, thaw
from loopwarden.worker import checkpoint as checkpoint_module
from loopwarden.worker import sweep
from loopwarden.worker.checkpoint import has_news
from loopwarden.worker.errors import BatchLost, ProduceFailed
from loopwarden.worker.progress import encode_progress
from loopwarden.worker.stores import Store
from loopwarden_schemas.policy import PolicyDocument

from .parts import Parts, settle

HOUR = 3_600_000


def test_verdicts_are_acknowledged_before_states_are_written_and_states_before_offsets_are_released() -> None:
    async def story() -> None:
        parts = Parts()
        await parts.judge("run", "run", "run")
        assert parts.broker.topics() == ["verdicts"]
        taking = asyncio.create_task(parts.checkpoint.take([parts.lane]))
        await settle()
        assert parts.broker.topics() == ["verdicts"], "no state before the verdicts are acknowledged"
        await parts.broker.acknowledge("verdicts")
        assert parts.broker.topics() == ["verdicts", "changelog"]
        assert parts.released == []
        assert not list(parts.states.store.keys()), "the table holds only what the changelog has acknowledged"
        await parts.broker.acknowledge("changelog")
        assert await taking
        assert parts.released == [6]
        entry = parts.states.get(b"run")
        assert entry is not None
        assert entry.offset == 5
        assert not has_news(parts.lane)

    asyncio.run(story())


def test_verdicts_of_a_batch_do_not_wait_for_those_of_the_one_before() -> None:
    async def story() -> None:
        parts = Parts()
        await parts.judge("run", "run", "run")
        await parts.judge("run")
        assert parts.broker.topics() == ["verdicts", "verdicts"]
        assert parts.outbox.judged == 0
        await parts.broker.acknowledge("verdicts")
        assert parts.outbox.judged == 8
        assert parts.outbox.verdicts == parts.broker.ends["verdicts"]

    asyncio.run(story())


def test_a_checkpoint_holds_the_states_of_its_moment_also_when_events_come_while_it_is_taken() -> None:
    async def story() -> None:
        parts = Parts()
        await parts.judge("a", "b")
        held = parts.lane.runs.get(b"b")
        assert held is not None
        assert held.state is not None
        as_it_was = freeze(held.state)
        slice_, checkpoint_module._SLICE_S = checkpoint_module._SLICE_S, 0.0
        try:
            taking = asyncio.create_task(parts.checkpoint.take([parts.lane]))
            await asyncio.sleep(0)
            await parts.judge("b")
        finally:
            checkpoint_module._SLICE_S = slice_
        await settle()
        await parts.broker.acknowledge("verdicts")
        await parts.broker.acknowledge("changelog")
        assert await taking
        assert parts.released == [4]
        assert parts.written()[b"b"] == as_it_was
        assert has_news(parts.lane)

    asyncio.run(story())


def test_a_checkpoint_while_the_archive_is_read_waits_for_the_verdicts_of_the_events_before_it() -> None:
    async def story() -> None:
        parts = Parts()
        read: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def read_archive() -> None:
            await read

        parts.lane.policies.knows = lambda number: False  # type: ignore[method-assign]
        parts.lane.policies.read_archive = read_archive  # type: ignore[method-assign]
        applied = {"type": "policy.applied", "event_id": "p", "ts": 0, "number": 7, "digest": "d"}
        judging = asyncio.create_task(parts.judge("run", "run", "run", then=applied))
        await settle()
        assert not judging.done()
        taking = asyncio.create_task(parts.checkpoint.take([parts.lane]))
        await settle()
        assert parts.broker.topics() == ["verdicts"]
        await parts.broker.acknowledge("verdicts")
        assert parts.broker.topics() == ["verdicts", "changelog"]
        await parts.broker.acknowledge("changelog")
        assert await taking
        assert parts.released == [6]
        read.set_result(None)
        await judging

    asyncio.run(story())


def test_whoever_lost_the_partition_while_waiting_writes_nothing_and_releases_nothing() -> None:
    async def story() -> None:
        parts = Parts()
        await parts.judge("run", "run", "run")
        taking = asyncio.create_task(parts.checkpoint.take([parts.lane]))
        await settle()
        parts.owner = False
        await parts.broker.acknowledge("verdicts")
        assert not await taking
        assert parts.broker.topics() == ["verdicts"]
        assert parts.released == []

    asyncio.run(story())


def test_whoever_lost_the_partition_while_states_were_on_their_way_keeps_and_releases_nothing() -> None:
    async def story() -> None:
        parts = Parts()
        await parts.judge("run")
        taking = asyncio.create_task(parts.checkpoint.take([parts.lane]))
        await settle()
        parts.owner = False
        await parts.broker.acknowledge("changelog")
        assert not await taking
        assert parts.released == []
        assert not list(parts.states.store.keys())

    asyncio.run(story())


def test_a_state_that_the_broker_refuses_is_an_error_and_releases_nothing() -> None:
    async def story() -> None:
        parts = Parts()
        await parts.judge("run")
        taking = asyncio.create_task(parts.checkpoint.take([parts.lane]))
        await settle()
        await parts.broker.refuse("changelog")
        with pytest.raises(ProduceFailed, match="changelog"):
            await taking
        assert parts.released == []

    asyncio.run(story())


def test_a_verdict_that_the_broker_refuses_is_reported_and_never_counts_as_judged() -> None:
    async def story() -> None:
        parts = Parts()
        await parts.judge("run", "run", "run")
        await parts.broker.refuse("verdicts")
        assert [type(failure) for failure in parts.failures] == [ProduceFailed]
        await parts.judge("run")
        await parts.broker.acknowledge("verdicts")
        assert parts.outbox.judged == 0

    asyncio.run(story())


def test_each_changed_run_is_written_once_a_checkpoint_and_unchanged_ones_are_not(store: Store) -> None:
    async def story() -> None:
        parts = Parts(store)
        for run_ids in (("a", "b", "a"), ("b",)):
            await parts.judge(*run_ids)
            taking = asyncio.create_task(parts.checkpoint.take([parts.lane]))
            await settle()
            await parts.broker.acknowledge("verdicts")
            await parts.broker.acknowledge("changelog")
            assert await taking
        written = [[key for key, _ in records] for topic, records in parts.broker.log if topic == "changelog"]
        assert [sorted(keys, key=str) for keys in written] == [[b"a", b"b"], [b"b"]]

    asyncio.run(story())


def test_when_somebody_else_wrote_the_states_of_the_partition_are_written_again(store: Store) -> None:
    async def story() -> None:
        parts = Parts(store)
        parts.states.recover(b"quiet", freeze_empty("quiet"), None)
        await parts.judge("run")
        taking = asyncio.create_task(parts.checkpoint.take([parts.lane]))
        await settle()
        parts.broker.ends["changelog"] = 3  # Three records that are not this worker's.
        await parts.broker.acknowledge("changelog")
        assert await taking
        assert has_news(parts.lane)
        taking = asyncio.create_task(parts.checkpoint.take([parts.lane]))
        await settle()
        await parts.broker.acknowledge("changelog")
        assert await taking
        assert parts.written().keys() == {b"quiet"}
        assert not has_news(parts.lane)

    asyncio.run(story())


def test_what_a_runs_state_has_seen_is_not_judged_again(store: Store) -> None:
    async def story() -> None:
        once = Parts()
        await once.judge("run", "run", "run")
        again = Parts(store)
        state = once.lane.runs.get(b"run")
        assert state is not None
        assert state.state is not None
        again.states.recover(b"run", freeze(state.state), None)
        await again.judge("run", "run", "run")
        assert again.broker.topics() == []
        await again.judge("run")
        assert again.broker.topics() == ["verdicts"]

    asyncio.run(story())


def test_records_that_did_not_reach_the_lane_are_found() -> None:
    async def story() -> None:
        parts = Parts()
        await parts.judge("run", follows=0)
        with pytest.raises(BatchLost, match="offsets 2 to 6 were polled but did not reach"):
            await parts.judge("run", follows=7)

    asyncio.run(story())


def test_an_event_that_the_judge_fails_on_is_a_dead_letter_and_the_partition_goes_on() -> None:
    async def story() -> None:
        parts = Parts()
        good, parts.policy = parts.policy, SimpleNamespace(resolve=None)  # type: ignore[assignment]
        await parts.judge("first")
        parts.policy = good
        await parts.judge("second", "second", "second")
        assert sorted(set(parts.broker.topics())) == ["dead", "verdicts"]

    asyncio.run(story())


def test_runs_beyond_the_limit_leave_memory_once_the_table_has_them_those_unused_longest_first(store: Store) -> None:
    async def story() -> None:
        parts = Parts(store)
        for run_ids in (("a", "b", "c"), ("a",)):
            await parts.judge(*run_ids)
            parts.lane.runs.shrink(2)
            taking = asyncio.create_task(parts.checkpoint.take([parts.lane]))
            await settle()
            await parts.broker.acknowledge("verdicts")
            await parts.broker.acknowledge("changelog")
            assert await taking
        parts.lane.runs.shrink(2)
        assert [key for key in (b"a", b"b", b"c") if parts.lane.runs.get(key)] == [b"a", b"c"]
        await parts.judge("b")
        held = parts.lane.runs.get(b"b")
        assert held is not None
        assert held.state is not None
        assert len(held.state.window.calls) == 2, "its first call came back from the table"

    asyncio.run(story())


def freeze_empty(run_id: str, *, newest_at: int = 0, offset: int = 0) -> bytes:
    state = RunState(run_id, newest_at, PolicyDocument.from_value({}).resolve(None))
    state.offset, state.index = offset, 0
    return freeze(state)


@pytest.mark.parametrize(
    ("append_time", "committed", "swept"),
    [(25 * HOUR, 9, False), (25 * HOUR + 1, 9, True), (25 * HOUR + 1, 8, False)],
)
def test_a_state_goes_an_hour_after_the_judge_would_not_use_it_and_once_its_last_event_is_committed(
    append_time: int, committed: int, swept: bool, store: Store
) -> None:
    parts = Parts(store)
    parts.states.recover(b"old", freeze_empty("old", offset=8), None)
    parts.lane.newest_append_time = append_time
    assert sweep.over(parts.lane, committed) == ({b"old": (8, 0)} if swept else {})


def test_a_swept_state_gets_a_tombstone_and_leaves_the_table(store: Store) -> None:
    async def story() -> None:
        parts = Parts(store)
        parts.states.recover(b"old", freeze_empty("old"), None)
        await parts.judge("run")
        taking = asyncio.create_task(parts.checkpoint.take([parts.lane], {0: {b"old": (0, 0)}}))
        await settle()
        await parts.broker.acknowledge("changelog")
        assert await taking
        assert parts.written()[b"old"] is None
        assert list(parts.states.store.keys()) == [b"run"]

    asyncio.run(story())


def test_a_run_that_changed_since_is_not_swept(store: Store) -> None:
    async def story() -> None:
        parts = Parts(store)
        parts.states.recover(b"old", freeze_empty("old"), None)
        await parts.judge("old", append_time=30 * HOUR)
        assert sweep.over(parts.lane, 10**9) == {}
        taking = asyncio.create_task(parts.checkpoint.take([parts.lane], {0: {b"old": (0, 0)}}))
        await settle()
        await parts.broker.acknowledge("changelog")
        assert await taking
        assert thaw(parts.written()[b"old"] or b"").newest_at == 30 * HOUR

    asyncio.run(story())


def test_a_run_that_began_again_since_it_was_looked_at_is_not_swept(store: Store) -> None:
    async def story() -> None:
        parts = Parts(store)
        parts.states.recover(b"old", freeze_empty("old", offset=0), None)
        parts.offset = 10
        parts.lane.newest_append_time = 30 * HOUR
        over = {0: sweep.over(parts.lane, committed=9)}
        assert over == {0: {b"old": (0, 0)}}
        await parts.judge("old", append_time=30 * HOUR)
        await parts.take_checkpoint()
        assert await parts.checkpoint.take([parts.lane], over)
        entry = store.get(b"old")
        assert entry is not None
        assert thaw(entry.value).begun == 30 * HOUR

    asyncio.run(story())


def test_a_state_larger_than_any_may_be_never_reaches_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        parts = Parts()
        parts.states.recover(b"run", freeze_empty("run", newest_at=1), None)
        await parts.judge("run", "small")
        monkeypatch.setattr(checkpoint_module, "MAX_STATE_BYTES", len(freeze_empty("run")))
        taking = asyncio.create_task(parts.checkpoint.take([parts.lane]))
        await settle()
        await parts.broker.acknowledge("changelog")
        assert await taking
        assert parts.written() == {b"run": None}
        assert parts.released == [4]

    asyncio.run(story())


def test_progress_tells_in_messagepack_how_far_a_partition_is_judged() -> None:
    assert msgspec.msgpack.decode(encode_progress(7, 3)) == {"judged": 7, "verdicts": 3}
