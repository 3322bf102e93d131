"""States come back from the changelog, and one that a worker wrote late does not win."""

from __future__ import annotations

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


@pytest.mark.parametrize("owner_runs", [True, False])
def test_a_state_that_was_written_late_does_not_win_and_is_written_over(
    installation: Any, strict: Any, repeated_call: Any, owner_runs: bool
) -> None:
    number = installation.apply(strict)
    worker = installation.start_worker()
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
        installation.start_worker()
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


def test_runs_that_left_memory_go_on_where_they_were(installation: Any, histories: Any, strict: Any) -> None:
    number = installation.apply(strict)
    worker = installation.start_worker(LOOPWARDEN_HELD_RUNS="4", LOOPWARDEN_CHECKPOINT_SECONDS="0.05")
    for event in histories[:1500]:
        installation.publish(event)
    installation.wait_until_judged()
    assert installation.verdicts() == installation.judged_in_one_process({number: strict})
    assert worker.stop() == 0
