"""States come back from the changelog, and one that a worker wrote late does not win."""

from __future__ import annotations

import re
from typing import Any

import pytest

from loopwarden_schemas.state import state_position

RUN = "run-7"


def states_of(installation: Any, key: bytes) -> list[Any]:
    return [record for record in installation.read(installation.topics.changelog.name) if record.key == key]


def same_partition(installation: Any) -> str:
    """Another run of the same partition."""
    return next(
        run_id
        for run_id in (f"other-{n}" for n in range(99))
        if installation.partition(run_id) == installation.partition(RUN)
    )


@pytest.mark.parametrize(("owner_runs", "kept"), [(True, "memory://"), (False, "rocksdb://")])
def test_a_state_that_was_written_late_does_not_win_and_is_written_over(
    installation: Any, strict: Any, repeated_call: Any, owner_runs: bool, kept: str
) -> None:
    number = installation.apply(strict)
    worker = installation.start_worker(LOOPWARDEN_STORE=kept)
    for call in range(2):
        for event in repeated_call(RUN, call):
            installation.publish(event)
        installation.wait_until_judged()
        wait_for_states(installation, call + 1)
    old, new = states_of(installation, RUN.encode())[0], states_of(installation, RUN.encode())[-1]
    assert state_position(old.value) < state_position(new.value)
    if not owner_runs:
        assert worker.stop() == 0
    # What a zombie does: it writes the state that it knew before it fell asleep.
    installation.producer.send(old.topic, old.value, key=old.key, partition=old.partition).get(30)
    if not owner_runs:
        installation.start_worker(LOOPWARDEN_STORE=kept)
    for event in repeated_call(same_partition(installation), 0):
        installation.publish(event)
    installation.wait_until_judged()
    installation.until(
        lambda: state_position(states_of(installation, RUN.encode())[-1].value) == state_position(new.value)
    )
    for call in range(2, 6):
        for event in repeated_call(RUN, call):
            installation.publish(event)
    installation.wait_until_judged()
    assert installation.verdicts() == installation.judged_in_one_process({number: strict})


def wait_for_states(installation: Any, count: int) -> None:
    installation.until(lambda: len(states_of(installation, RUN.encode())) >= count)


@pytest.mark.parametrize("kept", ["memory://", "rocksdb://"])
def test_runs_that_left_memory_go_on_where_they_were(installation: Any, histories: Any, strict: Any, kept: str) -> None:
    number = installation.apply(strict)
    settings = {
        "LOOPWARDEN_STORE": kept,
        "LOOPWARDEN_HELD_RUNS": "4",
        "LOOPWARDEN_CHECKPOINT_SECONDS": "0.05",
        # So that nobody waits for the session of a worker that was killed.
        "LOOPWARDEN_GROUP_INSTANCE_ID": "one",
    }
    for start, end in ((0, 700), (700, 1500)):
        # The second worker has the database of the first, which was killed.
        worker = installation.start_worker(**settings)
        for event in histories[start:end]:
            installation.publish(event)
        installation.wait_until_judged()
        worker.kill()
    assert installation.verdicts() == installation.judged_in_one_process({number: strict})


def test_a_restart_with_rocksdb_reads_only_what_was_written_since(
    installation: Any, strict: Any, repeated_call: Any
) -> None:
    number = installation.apply(strict)
    runs = [RUN, *(f"other-{number}" for number in range(9))]
    workers = [("rocksdb://", runs, range(3)), ("memory://", [RUN], range(3, 4)), ("rocksdb://", [RUN], range(4, 6))]
    read, written = [], []
    for kept, of_runs, calls in workers:
        publish(installation, repeated_call, of_runs, calls)
        worker = installation.start_worker(LOOPWARDEN_STORE=kept)
        installation.wait_until_judged()
        assert worker.stop() == 0
        written.append(len(installation.read(installation.topics.changelog.name)))
        read.append(sum(int(count) for count in re.findall(r"(\d+) records of its changelog were read", worker.log)))
    assert read[0] == 0
    assert read[1] == written[0], "a worker without a database reads all of it"
    partitions = installation.topics.changelog.partitions
    # Faust reads the last record that it had once more.
    assert written[1] - written[0] <= read[2] <= written[1] - written[0] + partitions < written[0]
    assert installation.verdicts() == installation.judged_in_one_process({number: strict})


def test_a_database_of_a_changelog_that_is_there_no_more_is_not_used(
    installation: Any, strict: Any, repeated_call: Any
) -> None:
    publish(installation, repeated_call, [RUN, "other-1", "other-2"], range(3))
    worker = installation.start_worker(LOOPWARDEN_STORE="rocksdb://")
    installation.wait_until_judged()
    assert worker.stop() == 0
    installation.begin_again()
    number = installation.apply(strict)
    publish(installation, repeated_call, [RUN], range(3))
    worker = installation.start_worker(LOOPWARDEN_STORE="rocksdb://")
    installation.wait_until_judged()
    assert "it was deleted and created again" in worker.log
    assert installation.verdicts() == installation.judged_in_one_process({number: strict}) != []


def publish(installation: Any, repeated_call: Any, runs: list[str], calls: range) -> None:
    for call in calls:
        for run in runs:
            for event in repeated_call(run, call):
                installation.publish(event)
