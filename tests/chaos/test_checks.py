"""What the checks of the chaos find: a check that passes whatever is on the topics would prove nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import msgpack
import pytest

from loopwarden.client import Record
from loopwarden_schemas.topics import partition_for

from .checks import Checks, GuaranteeBroken
from .oracle import Oracle
from .workload import deliveries

PARTITIONS = 2
Topics = dict[str, list[Record]]


def _log() -> Iterator[Record]:
    ends = [0] * PARTITIONS
    for delivery in islice(deliveries(1), 4_000):
        partition = partition_for(delivery.key, PARTITIONS)
        yield Record(partition, ends[partition], 1, delivery.key, delivery.value, [])
        ends[partition] += 1


LOG = list(_log())
CUT = {record.partition: record.offset + 1 for record in LOG}


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    oracle = Oracle(PARTITIONS)
    for record in LOG:
        oracle.take(record)
    return oracle


@pytest.fixture
def topics(oracle: Oracle) -> Topics:
    """What a worker without a fault writes."""
    verdicts = [
        Record(partition, offset, 1, each.run_id.encode(), each.value, _cause(partition, each.cause))
        for partition in range(PARTITIONS)
        for offset, each in enumerate(oracle.verdicts[partition])
    ]
    progress = [
        Record(each, 0, 1, None, msgpack.packb({"judged": end, "verdicts": len(oracle.verdicts[each])}), [])
        for each, end in CUT.items()
    ]
    letters = [
        Record(each.partition, 0, 1, None, b"", _place(each.partition, each.offset, each.element, each.reason))
        for each in oracle.dead
    ]
    states = [Record(0, 0, 1, key, value, []) for key, value in oracle.states().items()]
    assert len(verdicts) > 500
    assert len(letters) > 3
    return {"verdicts": verdicts, "progress": progress, "dead": letters, "states": states}


def _cause(partition: int, offset: int) -> list[tuple[str, bytes]]:
    return [("cause-partition", b"%d" % partition), ("cause-offset", b"%d" % offset)]


def _place(partition: int, offset: int, index: int, reason: str) -> list[tuple[str, bytes]]:
    places = {"partition": partition, "offset": offset, "index": index}
    return [("reason", reason.encode()), *((f"source-{name}", b"%d" % at) for name, at in places.items())]


def _check(oracle: Oracle, topics: Topics) -> Checks:
    checks = Checks(PARTITIONS)
    checks.oracle = oracle
    for record in topics["verdicts"]:
        checks.take_verdict(record)
    for record in topics["progress"]:
        checks.take_progress(record)
    for record in topics["dead"]:
        checks.take_dead_letter(record)
    for record in topics["states"]:
        checks.take_state(record)
    checks.check(CUT)
    checks.check_states()
    return checks


def test_what_a_worker_without_a_fault_writes_is_as_it_must_be(oracle: Oracle, topics: Topics) -> None:
    checks = _check(oracle, topics)
    assert checks.duplicates == 0
    assert checks.judged == CUT


def test_records_that_come_twice_are_counted_and_change_nothing(oracle: Oracle, topics: Topics) -> None:
    topics["verdicts"] += [each._replace(offset=each.offset + 10**6) for each in topics["verdicts"][:7]]
    topics["dead"] += topics["dead"]
    assert _check(oracle, topics).duplicates == 7


def _lose(topics: Topics) -> None:
    del topics["verdicts"][500]


def _invent(topics: Topics) -> None:
    verdict = msgpack.unpackb(topics["verdicts"][0].value)
    invented = msgpack.packb({**verdict, "verdict_id": "0" * 32})
    topics["verdicts"].append(topics["verdicts"][0]._replace(value=invented, offset=10**6))


def _change(topics: Topics) -> None:
    verdict = msgpack.unpackb(topics["verdicts"][0].value)
    topics["verdicts"][0] = topics["verdicts"][0]._replace(value=msgpack.packb({**verdict, "n": 999}))


def _differ_from_its_duplicate(topics: Topics) -> None:
    verdict = msgpack.unpackb(topics["verdicts"][0].value)
    other = msgpack.packb({**verdict, "n": 999})
    topics["verdicts"].append(topics["verdicts"][0]._replace(value=other, offset=10**6))


def _misplace(topics: Topics) -> None:
    topics["verdicts"][0] = topics["verdicts"][0]._replace(key=b"another run")


def _disorder(topics: Topics) -> None:
    """Two verdicts of one run change their places."""
    verdicts = topics["verdicts"]
    first = next(at for at, each in enumerate(verdicts) if any(other.key == each.key for other in verdicts[at + 1 :]))
    second = next(at for at in range(first + 1, len(verdicts)) if verdicts[at].key == verdicts[first].key)
    one, other = verdicts[first], verdicts[second]
    verdicts[first], verdicts[second] = other._replace(offset=one.offset), one._replace(offset=other.offset)


def _promise(topics: Topics) -> None:
    told = msgpack.unpackb(topics["progress"][0].value)
    early = msgpack.packb({**told, "verdicts": told["verdicts"] - 1})
    topics["progress"].insert(0, topics["progress"][0]._replace(value=early))


def _drop_a_dead_letter(topics: Topics) -> None:
    del topics["dead"][3]


def _invent_a_dead_letter(topics: Topics) -> None:
    topics["dead"].append(topics["dead"][0]._replace(headers=_place(0, 0, 99, "undecodable")))


def _keep_an_old_state(topics: Topics) -> None:
    topics["states"][3] = topics["states"][3]._replace(value=msgpack.packb([1, 0, 0]))


def _write_an_old_state_last(topics: Topics) -> None:
    topics["states"].append(topics["states"][3]._replace(value=msgpack.packb([1, 0, 0])))


@pytest.mark.parametrize(
    ("break_it", "found"),
    [
        (_lose, "verdicts that are missing: 1"),
        (_invent, "verdicts that were invented: 1"),
        (_change, "verdicts that say something else: 1"),
        (_differ_from_its_duplicate, "not what offset 0 says"),
        (_misplace, "wrong key or partition"),
        (_disorder, "out of their run's order"),
        (_promise, "progress that promises too much: 1"),
        (_drop_a_dead_letter, "dead letters that are wrong: 1\n  missing"),
        (_invent_a_dead_letter, "dead letters that are wrong: 1\n  invented"),
        (_keep_an_old_state, "states that are wrong: 1"),
        (_write_an_old_state_last, "the last record of the changelog is not its newest state"),
    ],
)
def test_what_is_wrong_is_found_and_named(
    oracle: Oracle, topics: Topics, break_it: Callable[[Topics], None], found: str
) -> None:
    break_it(topics)
    with pytest.raises(GuaranteeBroken, match=found):
        _check(oracle, topics)


def test_the_same_seed_gives_the_same_deliveries() -> None:
    assert list(islice(deliveries(7), 2000)) == list(islice(deliveries(7), 2000))
    assert list(islice(deliveries(7), 2000)) != list(islice(deliveries(8), 2000))
