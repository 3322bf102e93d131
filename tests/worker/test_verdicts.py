"""What the worker publishes is what judging the log once in one process gives, whatever happens to the worker."""

from __future__ import annotations

import signal
import sys
from typing import Any

import msgpack


def _in_order(verdicts: list[tuple[int, Any]]) -> dict[str, list[str]]:
    by_run: dict[str, list[str]] = {}
    for _, verdict in verdicts:
        by_run.setdefault(verdict.run_id, []).append(verdict.verdict_id)
    return by_run


def test_verdicts_are_those_of_one_process_in_each_runs_order(installation: Any, histories: Any, strict: Any) -> None:
    number = installation.apply(strict)
    for event in histories:
        installation.publish(event)
    worker = installation.start_worker()
    installation.wait_until_judged()
    expected = installation.judged_in_one_process({number: strict})
    assert len(expected) > 100
    assert installation.verdicts() == expected
    assert worker.stop() == 0


def test_a_verdict_lies_on_its_events_partition_with_headers_that_say_its_cause(
    installation: Any, strict: Any, repeated_call: Any
) -> None:
    installation.apply(strict)
    for number in range(3):
        for event in repeated_call("run-7", number):
            installation.publish(event)
    installation.start_worker()
    installation.wait_until_judged()
    events = {
        msgpack.unpackb(record.value)["event_id"]: record
        for record in installation.read(installation.topics.events.name)
    }
    verdicts = installation.read(installation.topics.verdicts.name)
    assert verdicts
    for record in verdicts:
        cause = events[msgpack.unpackb(record.value)["event_id"]]
        assert record.key == b"run-7"
        assert record.partition == cause.partition == installation.partition("run-7")
        assert dict(record.headers) == {
            "content-type": b"application/msgpack",
            "cause-partition": str(cause.partition).encode(),
            "cause-offset": str(cause.offset).encode(),
            "cause-append-time": str(cause.timestamp).encode(),
        }


def test_killed_in_the_middle_nothing_is_lost_and_nothing_invented(
    installation: Any, histories: Any, strict: Any
) -> None:
    number = installation.apply(strict)
    worker = installation.start_worker()
    worker.wait_for_log("detectors are")
    for at, event in enumerate(histories):
        installation.publish(event)
        if at % 1000 == 999:
            installation.producer.flush()
            worker.kill()
            worker = installation.start_worker()
    installation.wait_until_judged()
    expected = installation.judged_in_one_process({number: strict})
    verdicts = installation.verdicts()
    assert sorted(_in_order(verdicts)) == sorted(_in_order(expected))
    assert _in_order(verdicts) == _in_order(expected)


def test_a_worker_that_is_told_to_stop_makes_durable_what_it_judged_and_the_next_one_goes_on(
    installation: Any, histories: Any, strict: Any
) -> None:
    number = installation.apply(strict)
    half = len(histories) // 2
    for event in histories[:half]:
        installation.publish(event)
    worker = installation.start_worker()
    installation.wait_until_judged()
    assert worker.stop() == 0
    published = len(installation.read(installation.topics.verdicts.name))
    for event in histories[half:]:
        installation.publish(event)
    installation.start_worker()
    installation.wait_until_judged()
    expected = installation.judged_in_one_process({number: strict})
    assert 0 < published < len(expected)
    # Not one is there twice: nothing was judged again.
    assert len(installation.read(installation.topics.verdicts.name)) == len(expected)
    assert installation.verdicts() == expected


def test_a_worker_that_slept_through_its_session_starts_again_and_loses_nothing(
    installation: Any, histories: Any, strict: Any
) -> None:
    number = installation.apply(strict)
    sleeper = installation.start_worker()
    sleeper.wait_for_log("detectors are")
    for event in histories[:1000]:
        installation.publish(event)
    installation.producer.flush()
    sleeper.signal(signal.SIGSTOP)
    other = installation.start_worker()
    for event in histories[1000:2000]:
        installation.publish(event)
    installation.wait_until_judged()
    sleeper.signal(signal.SIGCONT)
    sleeper.wait_for_log("was away longer than its session")
    for event in histories[2000:]:
        installation.publish(event)
    installation.wait_until_judged()
    expected = installation.judged_in_one_process({number: strict})
    assert _in_order(installation.verdicts()) == _in_order(expected)
    assert other.stop() == 0
    assert sleeper.stop() == 0


def test_progress_reaches_the_end_and_says_where_the_verdicts_end(
    installation: Any, strict: Any, repeated_call: Any
) -> None:
    installation.apply(strict)
    for number in range(6):
        for event in repeated_call("run-7", number):
            installation.publish(event)
    installation.start_worker()
    installation.wait_until_judged()
    events = installation.end_offsets(installation.topics.events.name)
    verdicts = installation.end_offsets(installation.topics.verdicts.name)
    assert installation.progress() == {
        partition: {"judged": end, "verdicts": verdicts[partition]} for partition, end in events.items()
    }
    assert verdicts[installation.partition("run-7")] > 0


def test_plain_faust_starts_the_same_worker(installation: Any, strict: Any, repeated_call: Any) -> None:
    installation.apply(strict)
    for number in range(3):
        for event in repeated_call("run-7", number):
            installation.publish(event)
    worker = installation.start_worker(sys.executable, "-m", "faust", "-A", "loopwarden.worker.app", "worker")
    installation.wait_until_judged()
    assert installation.verdicts()
    assert worker.stop() == 0
