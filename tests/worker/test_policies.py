"""Which policy a run pins, whatever happens to the worker, and which `policy.applied` is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from loopwarden.worker.errors import StateRefused
from loopwarden.worker.policies import Applied, Policies, PolicyArchive, archived_document
from loopwarden_schemas.policy import DEFAULT_DOCUMENT, PolicyDocument
from loopwarden_schemas.state import state_position
from loopwarden_schemas.structs import PolicyApplied

OFF = {"tools": {"loopDetection": {"enabled": False}}}


class Archive(PolicyArchive):
    """An archive that holds two documents from the start, and a third once it was read again."""

    def __init__(self) -> None:
        self._documents = {number: document(number) for number in (0, 3)}

    async def read_to_end(self) -> None:
        self._documents[5] = document(5)


def document(number: int) -> PolicyDocument:
    return PolicyDocument.from_value({"tools": {"loopDetection": {"historySize": number + 1}}})


def applied(number: int, digest: str | None = None) -> PolicyApplied:
    return PolicyApplied(event_id="p", ts=0, number=number, digest=digest or document(number).digest)


def apply(policies: Policies, number: int, offset: int, index: int = 0, digest: str | None = None) -> str | None:
    async def as_the_lane_does() -> str | None:
        if not policies.knows(number):
            await policies.read_archive()
        return policies.apply(applied(number, digest), offset, index)

    return asyncio.run(as_the_lane_does())


def size_in_force(policies: Policies, offset: int, index: int = 0) -> int:
    return policies.in_force(offset, index).resolve(None).history_size


def test_a_run_pins_the_newest_policy_below_its_first_event() -> None:
    policies = Policies(Archive(), [])
    assert policies.in_force(10**9) is DEFAULT_DOCUMENT
    assert apply(policies, 0, offset=10) is None
    assert apply(policies, 3, offset=20, index=2) is None
    assert [size_in_force(policies, *place) for place in ((11, 0), (20, 2), (20, 3), (99, 0))] == [1, 1, 4, 4]


def test_a_number_that_is_missing_is_looked_for_in_the_archive_before_it_is_refused() -> None:
    policies = Policies(Archive(), [])
    assert apply(policies, 5, offset=10) is None
    refusal = apply(policies, 7, offset=11)
    assert refusal is not None
    assert "holds no 7" in refusal
    assert size_in_force(policies, 99) == 6


def test_a_number_lower_than_the_one_in_force_and_a_wrong_digest_are_refused() -> None:
    policies = Policies(Archive(), [])
    assert apply(policies, 3, offset=10) is None
    assert "lower" in (apply(policies, 0, offset=11) or "")
    assert "digest" in (apply(policies, 5, offset=12, digest="f" * 32) or "")
    assert size_in_force(policies, 99) == 4
    assert apply(policies, 3, offset=13) is None, "the same once more is no error"


def test_read_again_after_a_crash_an_event_changes_nothing() -> None:
    policies = Policies(Archive(), [])
    assert [apply(policies, number, offset) for number, offset in ((0, 10), (3, 20))] == [None, None]
    frozen = policies.freeze()
    assert [apply(policies, number, offset) for number, offset in ((0, 10), (3, 20))] == [None, None]
    assert policies.freeze() == frozen


def test_a_policy_is_kept_until_the_committed_offset_has_passed_its_successor() -> None:
    policies = Policies(Archive(), [])
    for number, offset in ((0, 10), (3, 20)):
        assert apply(policies, number, offset) is None
    policies.forget_before(20)
    assert size_in_force(policies, 15) == 1, "an event at 15 may still be judged again"
    policies.forget_before(21)
    assert size_in_force(policies, 99) == 4
    assert policies.in_force(15) is DEFAULT_DOCUMENT


def test_the_changelogs_record_says_its_place_like_a_state() -> None:
    policies = Policies(Archive(), [])
    assert policies.freeze() is None
    assert apply(policies, 3, offset=20, index=2) is None
    frozen = policies.freeze()
    assert frozen is not None
    offset, index, value = frozen
    assert state_position(value) == (offset, index) == (20, 2)
    assert Policies.thaw(Archive(), value, 0).newest()[0] == 3


def test_a_policy_in_force_that_the_archive_lost_stops_the_worker() -> None:
    frozen = Policies(Archive(), [Applied(20, 0, 8)]).freeze()
    assert frozen is not None
    with pytest.raises(StateRefused, match="policy 8 was applied at offset 20"):
        Policies.thaw(Archive(), frozen[2], 0)


@pytest.mark.parametrize(
    "value", [None, b"", b"\xc1", b"[1]", b'{"policy": 7}', b'{"policy"', b"\x81\xa6policy\x81\x01\x02"]
)
def test_what_is_no_policy_has_no_number(value: bytes | None) -> None:
    assert archived_document(value) is None


def test_a_new_policy_holds_for_the_runs_that_begin_after_it_also_when_they_are_judged_again(
    installation: Any, strict: Any, repeated_call: Any
) -> None:
    documents = {installation.archive_policy(OFF): OFF, installation.archive_policy(strict): strict}
    first, second = documents
    installation.apply_policy(first, OFF)

    def calls(run_id: str, numbers: range) -> None:
        for number in numbers:
            for event in repeated_call(run_id, number):
                installation.publish(event)

    calls("before", range(3))
    installation.apply_policy(second, strict)
    calls("before", range(3, 8))
    calls("after", range(8))
    worker = installation.start_worker(LOOPWARDEN_CHECKPOINT_SECONDS="60")
    installation.wait_until_judged()
    worker.kill()  # Before its first checkpoint: everything is judged again.
    installation.start_worker()
    calls("after", range(8, 10))
    installation.wait_until_judged()
    assert {verdict.run_id for _, verdict in installation.verdicts()} == {"after"}
    assert installation.verdicts() == installation.judged_in_one_process(documents)


def test_the_log_says_once_that_the_detectors_are_off_and_how_they_are_turned_on(
    installation: Any, strict: Any
) -> None:
    worker = installation.start_worker()
    worker.wait_for_log("the loop detectors are off")
    assert worker.log.count("detectors are") == 1
    assert "loopwarden policy apply" in worker.log
    installation.apply(strict)
    installation.wait_until_judged()
    assert worker.log.count("the loop detectors are on: policy 0") == 1


def test_the_log_says_that_the_guard_is_armed(installation: Any) -> None:
    compaction = {"type": "compaction", "event_id": "c", "ts": 1, "run_id": "run-7", "succeeded": True}
    installation.publish({**compaction, "event_id": "m", "trigger": "manual"})
    installation.publish(compaction)
    worker = installation.start_worker()
    installation.wait_until_judged()
    assert worker.log.count("post-compaction guard armed for 3 attempts") == 1
