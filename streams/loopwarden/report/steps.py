"""A run as a reader goes through it: its stretches and marks in order, each with the verdicts along it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from loopwarden.report.model import IssuedVerdict, Mark, Stretch, Timeline
from loopwarden.report.words import calls_in_words, plural

_EACH = {
    "error": ("the same error each time", "another error each time"),
    "result": ("the same result each time", "another result each time"),
}
_ONE = {"result": "a result", "error": "an error"}
_OTHERS = {"void": "nothing returned", "pending": "no outcome", "blocked": "refused"}


class VerdictGroup(NamedTuple):
    """Verdicts one after the other that say the same, of one signature, each about another attempt."""

    verdicts: tuple[IssuedVerdict, ...]

    @property
    def first(self) -> IssuedVerdict:
        return self.verdicts[0]

    @property
    def last(self) -> IssuedVerdict:
        return self.verdicts[-1]


class Step(NamedTuple):
    """A stretch of calls, or a mark between them."""

    what: Stretch | Mark
    verdicts: list[VerdictGroup]


def steps(run: Timeline) -> Iterator[Step]:
    """Return them in the order of the log."""
    marks = list(run.marks)
    for stretch in run.stretches:
        while marks and marks[0].before_call <= stretch.first_call:
            yield _of_mark(run, marks.pop(0))
        cells = run.cells[stretch.first_call - 1 : stretch.last_call]
        yield Step(stretch, grouped([run.verdicts[place] for cell in cells for place in cell.verdicts]))
    for mark in marks:
        yield _of_mark(run, mark)


def grouped(verdicts: Sequence[IssuedVerdict]) -> list[VerdictGroup]:
    """Return verdicts in their order, those about repeated attempts put together."""
    groups: list[list[IssuedVerdict]] = []
    newest: dict[object, list[IssuedVerdict]] = {}
    for verdict in verdicts:
        if verdict.phase == "order":
            newest.clear()
        alike = (verdict.action, verdict.phase, verdict.detector, verdict.scope, verdict.tool, verdict.signature)
        recorded = (verdict.recorded, verdict.recomputed)
        group = newest.get((alike, recorded)) if verdict.phase == "attempt" else None
        if group is None:
            group = newest[(alike, recorded)] = []
            groups.append(group)
        group.append(verdict)
    return [VerdictGroup(tuple(group)) for group in groups]


def stretch_in_words(run: Timeline, stretch: Stretch) -> str:
    """Return what the calls of a stretch have in common."""
    cells = run.cells[stretch.first_call - 1 : stretch.last_call]
    if not stretch.pattern:
        if len(cells) == 1:
            return f"{run.signatures[cells[0].signature].tool}: {_outcome(run, stretch)}"
        different = len({cell.signature for cell in cells})
        return f"{plural(len(cells), 'call')} without a pattern, {different:,} of them different"
    tools = [run.signatures[run.cells[call - 1].signature].tool for call in stretch.pattern]
    if len(tools) == 1:
        return f"{tools[0]}, {len(cells):,} times in a row: {_outcome(run, stretch)}"
    return f"{', '.join(tools)} in turn, {plural(len(cells), 'call')}: {_outcome(run, stretch)}"


def verdict_in_words(group: VerdictGroup) -> str:
    """Return what verdicts say, without their message."""
    first, last = group.first, group.last
    counted = "" if first.count is None else f" {first.count}"
    if len(group.verdicts) > 1 and last.count != first.count:
        counted += f"-{last.count}"
    threshold = "" if first.threshold is None else f" of {first.threshold}"
    many = f" ({len(group.verdicts)} times)" if len(group.verdicts) > 1 else ""
    return f"{first.reason}{counted}{threshold}{many}"


def place_in_words(group: VerdictGroup) -> str:
    """Return at which calls verdicts came."""
    first, last = group.first, group.last
    if first.call is None:
        return f"before call {first.before_call:,}"
    return calls_in_words(first.call, last.call or first.call)


def evidence_in_words(verdict: IssuedVerdict) -> str:
    """Return which calls a verdict counts, the newest 10 of them, as `1-4, 7`."""
    ranges: list[list[int]] = []
    for call in sorted(verdict.evidence):
        if ranges and ranges[-1][1] == call - 1:
            ranges[-1][1] = call
        else:
            ranges.append([call, call])
    return ", ".join(f"{first:,}" if first == last else f"{first:,}-{last:,}" for first, last in ranges)


def fate_in_words(group: VerdictGroup) -> str:
    """Return what became of verdicts."""
    if len(group.verdicts) == 1:
        return group.first.fate
    if group.first.action == "warn":
        shown = sum(verdict.delivered > 0 for verdict in group.verdicts)
        return f"shown {shown}x" if shown else group.first.fate
    obeyed = sum(verdict.obeyed for verdict in group.verdicts)
    disobeyed = sum(verdict.disobeyed for verdict in group.verdicts)
    told = [f"{word} {count}x" for word, count in (("obeyed", obeyed), ("disobeyed", disobeyed)) if count]
    return ", ".join(told) or "not tried"


def _of_mark(run: Timeline, mark: Mark) -> Step:
    return Step(mark, grouped([run.verdicts[place] for place in mark.verdicts]))


def _outcome(run: Timeline, stretch: Stretch) -> str:
    cells = run.cells[stretch.first_call - 1 : stretch.last_call]
    told = []
    for outcome in dict.fromkeys(cell.outcome for cell in cells):
        if outcome in _OTHERS:
            told.append(_OTHERS[outcome])
        elif len(cells) == 1:
            told.append("the same as before" if cells[0].repeats else _ONE[outcome])
        else:
            told.append(_EACH[outcome][not stretch.same])
    after = "" if cells[0].judged else ", after the run was over"
    return f"{', '.join(told)}{after}"
