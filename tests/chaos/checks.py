"""Whether the guarantees of design.md hold: the records on the topics against what judging the log once gives.

A check is of a cut, an offset in each partition of `agent-events`: everything below it must have been judged, and must
be right. What lies beyond it is the next check's.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from itertools import accumulate
from typing import Final, NamedTuple

import msgpack

from loopwarden.client import Record
from loopwarden_schemas.codec import decode_verdict
from loopwarden_schemas.state import state_position

from .oracle import DeadLetter, Oracle

_MOST_SHOWN: Final = 20

POLICIES_KEY: Final = b""
"""In the changelog: the policies applied in a partition, no run."""


class GuaranteeBroken(Exception):
    """What is on the topics is not what must be there. `runs` names the runs to look at."""

    def __init__(self, what: str, found: list[str], runs: set[str]) -> None:
        shown = "\n  ".join(found[:_MOST_SHOWN])
        more = f"\n  and {len(found) - _MOST_SHOWN} more" if len(found) > _MOST_SHOWN else ""
        super().__init__(f"{what}: {len(found)}\n  {shown}{more}")
        self.runs = runs


class Seen(NamedTuple):
    """The first record of a verdict."""

    run_id: str
    cause: int
    offset: int
    value: bytes


class Told(NamedTuple):
    """A record of `loop-progress`."""

    partition: int
    judged: int
    verdicts: int


class State(NamedTuple):
    """A record of the changelog."""

    place: tuple[int, int]
    value: bytes | None


class Checks:
    """Takes the records of all topics, those of a partition in their order, and holds them to the oracle.

    Attributes:
        oracle: What must be there; it takes the events itself.
        judged: Up to where `loop-progress` says that each partition is judged.
        duplicates: Records of `loop-verdicts` whose verdict was there already.
    """

    def __init__(self, partitions: int) -> None:
        self.oracle = Oracle(partitions)
        self.judged: dict[int, int] = defaultdict(int)
        self.duplicates = 0
        self._seen: dict[int, dict[str, Seen]] = defaultdict(dict)
        self._told: list[Told] = []
        self._letters: set[DeadLetter] = set()
        self._newest: dict[bytes, State] = {}
        self._last: dict[bytes, State] = {}

    @property
    def verdicts(self) -> int:
        """How many distinct verdicts were published."""
        return sum(map(len, self._seen.values()))

    @property
    def dead_letters(self) -> int:
        """How many distinct dead letters were written."""
        return len(self._letters)

    def take_verdict(self, record: Record) -> None:
        """Take a record of `loop-verdicts`.

        Raises:
            GuaranteeBroken: it lies where it must not, or differs from one with its id.
        """
        verdict = decode_verdict(record.value or b"")
        headers = dict(record.headers)
        seen = Seen(verdict.run_id, int(headers["cause-offset"]), record.offset, record.value or b"")
        place = f"partition {record.partition} offset {record.offset}, run {verdict.run_id}: {verdict.verdict_id}"
        if record.key != verdict.run_id.encode() or int(headers["cause-partition"]) != record.partition:
            raise GuaranteeBroken("verdicts under a wrong key or partition", [place], {verdict.run_id})
        first = self._seen[record.partition].setdefault(verdict.verdict_id, seen)
        if first is seen:
            return
        self.duplicates += 1
        if (first.value, first.cause) != (seen.value, seen.cause):
            raise GuaranteeBroken(f"verdicts that are not what offset {first.offset} says", [place], {verdict.run_id})

    def take_progress(self, record: Record) -> None:
        """Take a record of `loop-progress`."""
        value = msgpack.unpackb(record.value)
        told = Told(record.partition, value["judged"], value["verdicts"])
        self._told.append(told)
        self.judged[told.partition] = max(self.judged[told.partition], told.judged)

    def take_dead_letter(self, record: Record) -> None:
        """Take a record of `agent-events-dead`."""
        headers = dict(record.headers)
        partition, offset, index = (int(headers[f"source-{name}"]) for name in ("partition", "offset", "index"))
        self._letters.add(DeadLetter(partition, offset, index, headers["reason"].decode()))

    def take_state(self, record: Record) -> None:
        """Take a record of the changelog."""
        if not record.key:
            return
        state = State((-1, -1) if record.value is None else state_position(record.value), record.value)
        self._last[record.key] = state
        if record.key not in self._newest or self._newest[record.key].place <= state.place:
            self._newest[record.key] = state

    def check(self, cut: Mapping[int, int]) -> None:
        """Compare what lies below a cut; to be called when the oracle took the events up to it.

        Raises:
            GuaranteeBroken: verdicts, progress or dead letters are not what they must be.
        """
        for partition, end in cut.items():
            self._check_verdicts(partition, end)
        self._check_progress(cut)
        self._check_dead_letters(cut)

    def check_states(self) -> None:
        """Compare all states; to be called when nothing flows, and the workers have ended in order.

        Raises:
            GuaranteeBroken: a state is not the one that judging the log gives, or compaction would keep an older one.
        """
        wrong: dict[str, str] = {}
        for key, value in self.oracle.states().items():
            newest, run_id = self._newest.get(key), key.decode()
            if newest is None or newest.value != value:
                found = None if newest is None else newest.place
                wrong[run_id] = f"run {run_id}: the state at {state_position(value)} expected, got one at {found}"
            elif self._last[key] != newest:
                wrong[run_id] = f"run {run_id}: the last record of the changelog is not its newest state"
        if wrong:
            raise GuaranteeBroken("states that are wrong", list(wrong.values()), set(wrong))

    def _check_verdicts(self, partition: int, end: int) -> None:
        expected, seen = self.oracle.verdicts[partition], self._seen[partition]
        wanted = {each.verdict_id for each in expected}
        missing = [each[:3] for each in expected if each.verdict_id not in seen]
        _break("verdicts that are missing", partition, missing)
        invented = [(id_, x.run_id, x.cause) for id_, x in seen.items() if x.cause < end and id_ not in wanted]
        _break("verdicts that were invented", partition, invented)
        different = [each[:3] for each in expected if seen[each.verdict_id].value != each.value]
        _break("verdicts that say something else", partition, different)
        newest: dict[str, int] = defaultdict(lambda: -1)
        disordered = []
        for each in expected:
            offset = seen[each.verdict_id].offset
            if offset < newest[each.run_id]:
                disordered.append(each[:3])
            newest[each.run_id] = offset
        _break("verdicts out of their run's order", partition, disordered)

    def _check_progress(self, cut: Mapping[int, int]) -> None:
        """Whoever waited for certainty had all verdicts that there were."""
        causes, reached = {}, {}
        for partition in cut:
            expected = self.oracle.verdicts[partition]
            causes[partition] = [each.cause for each in expected]
            offsets = (self._seen[partition][each.verdict_id].offset for each in expected)
            reached[partition] = list(accumulate(offsets, max))
        early = []
        for partition, judged, verdicts in self._told:
            count = bisect_left(causes[partition], judged) if judged <= cut[partition] else 0
            if count and reached[partition][count - 1] >= verdicts:
                last = reached[partition][count - 1]
                early.append(f"partition {partition}: judged {judged}, verdicts {verdicts}, but one lies at {last}")
        self._told = [told for told in self._told if told.judged > cut[told.partition]]
        if early:
            raise GuaranteeBroken("progress that promises too much", early, set())

    def _check_dead_letters(self, cut: Mapping[int, int]) -> None:
        expected = set(self.oracle.dead)
        found = {each for each in self._letters if each.offset < cut[each.partition]}
        wrong = [f"missing: {each}" for each in expected - found] + [f"invented: {each}" for each in found - expected]
        if wrong:
            raise GuaranteeBroken("dead letters that are wrong", sorted(wrong), set())


def _break(what: str, partition: int, verdicts: list[tuple[str, str, int]]) -> None:
    if verdicts:
        found = [f"partition {partition} offset {cause}, run {run_id}: {id_}" for id_, run_id, cause in verdicts]
        raise GuaranteeBroken(what, found, {run_id for _, run_id, _ in verdicts})
