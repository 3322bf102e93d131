"""A state never goes backwards, whoever wrote last."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwarden.worker.presence import Presence
from loopwarden.worker.recovery import States
from loopwarden_schemas.state import STATE_VERSION, UnknownStateVersion

KEY = b"run-7"
PLACES = st.tuples(st.integers(0, 50), st.integers(0, 3))


def state(offset: int, index: int = 0) -> bytes:
    return msgspec.msgpack.encode([STATE_VERSION, offset, index])


@given(st.lists(PLACES, min_size=1))
def test_of_a_runs_records_the_one_that_saw_most_counts_not_the_last(places: list[tuple[int, int]]) -> None:
    states = States()
    for offset, index in places:
        states.recover(KEY, state(offset, index), None)
    entry = states.entries[KEY]
    assert (entry.offset, entry.index) == max(places)
    assert entry.value == state(*max(places))
    assert (KEY in states.rewrite) == (places[-1] != max(places)), "compaction would keep the last one only"


def test_a_tombstone_removes_the_state_it_was_made_for_and_no_newer_one() -> None:
    states = States()
    states.recover(KEY, state(10), None)
    states.recover(KEY, state(12), None)
    states.recover(KEY, None, (10, 0))
    assert states.entries[KEY].offset == 12
    assert states.rewrite == {KEY}
    states.recover(KEY, None, (12, 0))
    assert not states.entries
    assert not states.rewrite


def test_a_state_of_another_version_is_refused() -> None:
    with pytest.raises(UnknownStateVersion, match="version must be 1, got 9"):
        States().recover(KEY, msgspec.msgpack.encode([9, 0, 0]), None)


def test_acknowledgements_that_leave_a_gap_mean_that_somebody_else_wrote() -> None:
    states = States()
    states.recover(KEY, state(10), None)
    states.changelog_end = 5
    assert not states.expect_end(5, 3)
    assert not states.expect_end(8, 1)
    assert not states.rewrite
    assert states.expect_end(10, 2)
    assert states.rewrite == {KEY}
    states.rewrite.clear()
    assert not states.expect_end(12, 1)


def test_an_acknowledgement_without_an_offset_counts_as_a_gap() -> None:
    states = States()
    states.recover(KEY, state(10), None)
    states.changelog_end = 5
    assert states.expect_end(-1, 3)
    assert not states.expect_end(8, 1), "nothing is known of what came before it"
    assert states.expect_end(10, 1)


def test_a_generation_that_was_slept_through_stays_abandoned() -> None:
    now = [100.0]
    presence = Presence(10, clock=lambda: now[0])
    now[0] += 10
    assert presence.still_in(1)
    now[0] += 10.5
    assert not presence.still_in(1)
    assert not presence.still_in(1)
    assert presence.still_in(2)
    presence.begin()
    assert presence.still_in(1), "a group that was empty counts from 1 again"
