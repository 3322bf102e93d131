"""A state never goes backwards, whoever wrote last, and wherever it is kept."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwarden.worker.presence import Presence
from loopwarden.worker.recovery import States
from loopwarden.worker.rocksdb_store import RocksDBStores
from loopwarden.worker.stores import Entry, Mark, Store
from loopwarden_schemas.state import STATE_VERSION, UnknownStateVersion

KEY = b"run-7"
PLACES = st.tuples(st.integers(0, 50), st.integers(0, 3))


def state(offset: int, index: int = 0) -> bytes:
    return msgspec.msgpack.encode([STATE_VERSION, offset, index])


def held(states: States, key: bytes = KEY) -> tuple[int, int] | None:
    entry = states.get(key)
    return None if entry is None else entry.place


@pytest.fixture
def states(store: Store) -> States:
    return States(store)


@given(st.lists(PLACES, min_size=1))
def test_of_a_runs_records_the_one_that_saw_most_counts_not_the_last(places: list[tuple[int, int]]) -> None:
    states = States()
    for offset, index in places:
        states.recover(KEY, state(offset, index), None)
    entry = states.get(KEY)
    assert entry == Entry(*max(places), state(*max(places)))
    assert (KEY in states.rewrite) == (places[-1] != max(places)), "compaction would keep the last one only"


RECORDS = st.lists(
    st.tuples(st.sampled_from([b"", b"a", b"b", b"m", b"sa", bytes([255])]), PLACES, st.booleans()), max_size=12
)


@settings(max_examples=30)
@given(records=RECORDS, cut=st.integers(0, 12))
def test_both_stores_hold_the_same_and_one_that_is_read_on_from_its_mark_too(
    records: list[tuple[bytes, tuple[int, int], bool]], cut: int
) -> None:
    """A worker ends anywhere in the changelog; its successor reads on from what the database says."""
    with TemporaryDirectory() as folder:
        stores = RocksDBStores(Path(folder), "app", "cluster")
        in_memory, on_disk = States(), States(stores.open(0))
        for states, taken in ((in_memory, records), (on_disk, records[:cut])):
            recover(states, taken)
        on_disk.recovered(changelog_end=len(records[:cut]))
        on_disk.store.close()
        on_disk = States(stores.open(0))
        mark = on_disk.store.mark
        recover(on_disk, records[0 if mark is None else mark.changelog :])
        keys = sorted(in_memory.store.keys())
        assert sorted(on_disk.store.keys()) == keys
        for key in keys:
            assert on_disk.get(key) == in_memory.get(key)
        assert on_disk.last_offset == in_memory.last_offset
        assert on_disk.rewrite == in_memory.rewrite, "what has to be written again is found again"
        on_disk.store.close()
        stores.close()


def recover(states: States, records: list[tuple[bytes, tuple[int, int], bool]]) -> None:
    for key, place, tombstone in records:
        states.recover(key, None if tombstone else state(*place), place if tombstone else None)


def test_a_tombstone_removes_the_state_it_was_made_for_and_no_newer_one(states: States) -> None:
    states.recover(KEY, state(10), None)
    states.recover(KEY, state(12), None)
    states.recover(KEY, None, (10, 0))
    assert held(states) == (12, 0)
    assert states.rewrite == {KEY}
    states.recover(KEY, None, (12, 0))
    assert held(states) is None
    assert not states.rewrite


def test_a_state_of_another_version_is_refused() -> None:
    with pytest.raises(UnknownStateVersion, match="version must be 1, got 9"):
        States().recover(KEY, msgspec.msgpack.encode([9, 0, 0]), None)


def test_acknowledgements_that_leave_a_gap_mean_that_somebody_else_wrote(states: States) -> None:
    states.recover(KEY, state(10), None)
    states.recovered(changelog_end=5)
    assert not states.expect_end(5, 3)
    assert not states.expect_end(8, 1)
    assert not states.rewrite
    assert states.expect_end(10, 2)
    assert states.rewrite == {KEY}
    states.rewrite.clear()
    assert not states.expect_end(12, 1)


def test_an_acknowledgement_without_an_offset_counts_as_a_gap(states: States) -> None:
    states.recover(KEY, state(10), None)
    states.recovered(changelog_end=5)
    assert states.expect_end(-1, 3)
    assert not states.expect_end(8, 1), "nothing is known of what came before it"
    assert states.expect_end(10, 1)


def test_what_was_acknowledged_need_not_be_read_again(states: States) -> None:
    states.recovered(changelog_end=5)
    states.expect_end(5, 1)
    states.keep({KEY: Entry(10, 0, state(10))})
    assert states.store.mark == Mark(changelog=6, judged=10)


def test_behind_records_of_somebody_else_everything_is_read_again_until_it_was(states: States) -> None:
    states.recovered(changelog_end=5)
    states.expect_end(7, 1)
    states.rewrite.clear()
    states.keep({KEY: Entry(10, 0, state(10))})
    assert states.store.mark == Mark(changelog=5, judged=-1)
    states.recovered(changelog_end=8)
    assert states.store.mark == Mark(changelog=8, judged=10)


def test_while_a_state_has_to_be_written_again_the_record_that_hides_it_is_read_again(states: States) -> None:
    states.recover(KEY, state(10), None)
    states.recovered(changelog_end=1)
    states.recover(KEY, state(9), None)
    states.recovered(changelog_end=2)
    assert states.store.mark == Mark(changelog=1, judged=10)


@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_a_scan_goes_on_where_the_last_one_ended_and_then_begins_again(store: Store, most: int) -> None:
    keys = [b"", b"a", b"ab", b"b", b"m", bytes([255])]
    store.write({key: Entry(1, 0, state(1)) for key in keys}, Mark(1, 1))
    seen: list[bytes] = []
    while len(seen) < 2 * len(keys):
        seen += [key for key, _ in store.scan(most)]
    assert sorted(seen[: len(keys)]) == sorted(seen[len(keys) : 2 * len(keys)]) == sorted(keys)


def test_a_scan_gives_nothing_that_has_gone_and_survives_it(store: Store) -> None:
    store.write({key: Entry(1, 0, state(1)) for key in (b"a", b"b", b"c")}, None)
    assert len(store.scan(1)) == 1
    for key in (b"a", b"b", b"c"):
        store.put(key, None)
    assert store.scan(10) == []
    assert store.scan(10) == []


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
