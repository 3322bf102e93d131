"""What judging again gives beside what was recorded: the same verdicts, missing ones, extra ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from loopwarden.replay.beginnings import Beginnings, Why
from loopwarden.replay.log_part import LogPart
from loopwarden_schemas.structs import Verdict
from loopwarden_schemas.verdicts import RULES_VERSION

_FIELDS = Verdict.__struct_fields__


class Changed(msgspec.Struct, frozen=True):
    """A verdict whose id is the same and whose other fields are not."""

    recorded: Verdict
    replayed: Verdict
    fields: list[str]
    """The names of those that differ."""


@dataclass
class RunDifference:
    """A run that was not judged the same.

    Attributes:
        missing: Verdicts that judging again gives, and that were not recorded.
        extra: Verdicts that were recorded, and that judging again does not give.
        changed: Those that are not the same in every field.
    """

    run_id: str
    partition: int
    missing: list[Verdict] = field(default_factory=list)
    extra: list[Verdict] = field(default_factory=list)
    changed: list[Changed] = field(default_factory=list)


@dataclass
class Comparison:
    """What came of comparing, for one partition or several.

    Attributes:
        records: Read from the log.
        events: Of them that belong to the runs that were asked for.
        runs: Seen.
        same: Verdicts that are the same.
        differing: The runs with others.
        not_compared: The runs that were not judged whole, by the reason.
        expired: Verdicts that judging again gives, whose record is no longer retained.
        dead: What the worker put to the dead letters, by the reason.
    """

    records: int = 0
    events: int = 0
    runs: int = 0
    same: int = 0
    differing: list[RunDifference] = field(default_factory=list)
    not_compared: dict[Why, list[str]] = field(default_factory=dict)
    expired: int = 0
    dead: Counter[str] = field(default_factory=Counter)

    def add(self, other: Comparison) -> None:
        """Add what came of another part of the log."""
        self.records += other.records
        self.events += other.events
        self.runs += other.runs
        self.same += other.same
        self.expired += other.expired
        self.differing += other.differing
        self.dead += other.dead
        for why, runs in other.not_compared.items():
            self.not_compared.setdefault(why, []).extend(runs)

    @property
    def missing(self) -> int:
        """Verdicts that were not recorded."""
        return sum(len(each.missing) for each in self.differing)

    @property
    def extra(self) -> int:
        """Verdicts that should not have been recorded."""
        return sum(len(each.extra) for each in self.differing)

    @property
    def changed(self) -> int:
        """Verdicts that were recorded with other fields."""
        return sum(len(each.changed) for each in self.differing)


class _OfRun:
    """The verdicts of one run by their ids, each the first time that it came.

    Of those that are the same on both sides only the offset of the cause is kept: they are nearly all.
    """

    __slots__ = ("begun", "matched", "recorded", "replayed")

    def __init__(self) -> None:
        self.begun: int | None = None
        """The earliest beginning that a recorded verdict tells."""
        self.matched: dict[str, int] = {}
        self.replayed: dict[str, tuple[int, Verdict]] = {}
        self.recorded: dict[str, tuple[int | None, Verdict]] = {}


class Comparing:
    """Gathers both sides of one part of a log."""

    def __init__(self, part: LogPart) -> None:
        self._part = part
        self._runs: dict[str, _OfRun] = {}

    def replayed(self, verdict: Verdict, offset: int) -> None:
        """Take a verdict that judging again gives. `offset`: of the event that causes it."""
        run = self._of(verdict.run_id)
        if verdict.verdict_id not in run.matched:
            run.replayed.setdefault(verdict.verdict_id, (offset, verdict))

    def recorded(self, verdict: Verdict, cause_offset: int | None) -> None:
        """Take a verdict that was published. `cause_offset`: as its record says, if it does."""
        run, verdict_id = self._of(verdict.run_id), verdict.verdict_id
        run.begun = verdict.begun if run.begun is None else min(run.begun, verdict.begun)
        if verdict_id in run.matched or verdict_id in run.recorded:
            return
        offset, replayed = run.replayed.get(verdict_id, (0, None))
        if replayed == verdict:
            run.matched[verdict_id] = offset
            del run.replayed[verdict_id]
        else:
            run.recorded[verdict_id] = (cause_offset, verdict)

    def runs(self) -> frozenset[str]:
        """Return the runs that have verdicts on either side."""
        return frozenset(self._runs)

    def _of(self, run_id: str) -> _OfRun:
        return self._runs.get(run_id) or self._runs.setdefault(run_id, _OfRun())

    def compare(self, beginnings: Beginnings, is_wanted: Callable[[str], bool], agent: str | None = None) -> Comparison:
        """Compare, once everything was taken.

        Args:
            beginnings: Told of all events.
            is_wanted: Says of a run that has events whether it is to be compared.
            agent: Whose runs only, of those without; None: all.
        """
        for run_id, run in self._runs.items():
            if run.begun is not None:
                beginnings.see_recorded(run_id, run.begun)
            for cause, verdict in run.recorded.values():
                if verdict.rules_version != RULES_VERSION and self._compared(cause):
                    beginnings.not_whole.setdefault(run_id, "other_rules")
        found = Comparison(runs=sum(map(is_wanted, beginnings.begun)))
        for run_id, why in beginnings.not_whole.items():
            if is_wanted(run_id):
                found.not_compared.setdefault(why, []).append(run_id)
        for run_id, run in self._runs.items():
            if run_id in beginnings.not_whole:
                continue
            if is_wanted(run_id) if run_id in beginnings.begun else self._must_be_seen(run, agent):
                self._compare_run(run_id, run, beginnings.may_count_on(run_id), found)
        return found

    def _must_be_seen(self, run: _OfRun, agent: str | None) -> bool:
        """Whether a run of which only verdicts are known should have events in what was read."""
        if agent is not None and all(verdict.agent_id != agent for _, verdict in run.recorded.values()):
            return False
        return self._part.whole_log or any(
            cause is not None and self._compared(cause) for cause, _ in run.recorded.values()
        )

    def _compared(self, cause: int | None) -> bool:
        return cause is None or self._part.since <= cause < self._part.end

    def _compare_run(self, run_id: str, run: _OfRun, may_count_on: bool, found: Comparison) -> None:
        difference = RunDifference(run_id, self._part.partition)
        found.same += sum(map(self._compared, run.matched.values()))
        for verdict_id, (offset, verdict) in run.replayed.items():
            if not self._compared(offset):
                continue
            _, recorded = run.recorded.get(verdict_id, (None, None))
            if recorded is None:
                if offset < self._part.recorded_from:
                    found.expired += 1
                else:
                    difference.missing.append(verdict)
                continue
            fields = [name for name in _FIELDS if getattr(recorded, name) != getattr(verdict, name)]
            if not fields or (may_count_on and fields == ["n"]):
                found.same += 1
            else:
                difference.changed.append(Changed(recorded, verdict, fields))
        difference.extra += [
            verdict
            for verdict_id, (cause, verdict) in run.recorded.items()
            if verdict_id not in run.replayed and self._compared(cause)
        ]
        if difference.missing or difference.extra or difference.changed:
            found.differing.append(difference)
