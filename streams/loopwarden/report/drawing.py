"""The `Timeline` of what was gathered: numbers, letters and colours given, patterns found, sums made."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from loopwarden.report.gathered import Call, Gathered, Issued, Key, Spending
from loopwarden.report.headline import headline
from loopwarden.report.model import (
    Cell,
    IssuedVerdict,
    Result,
    Severity,
    Signature,
    Status,
    Stretch,
    Timeline,
    Totals,
)
from loopwarden.report.payloads import legible
from loopwarden.report.stretches import repetitions
from loopwarden.report.words import letter, plural


def draw(run: Gathered) -> Timeline:
    """Return the run as a picture needs it."""
    drawing = _Drawing()
    cells = tuple(drawing.cell(call) for call in run.calls)
    verdicts = tuple(_verdict(issued, run, drawing) for issued in run.issued)
    signatures = tuple(drawing.signature(seen, run) for seen in drawing.seen.values())
    found = Timeline(
        run_id=legible(run.run_id),
        agent_id=_legible(run.agent_id),
        session_id=_legible(run.session_id),
        status=_status(run),
        severity=_severity(run),
        headline="",
        began_at=run.began_at,
        newest_at=run.newest_at,
        unjudged=run.unjudged,
        redelivered=run.redelivered,
        shown_characters=run.shown_characters,
        notes=(*run.notes, *_notes(run)),
        totals=_totals(run, cells),
        policies=tuple(run.policies),
        signatures=signatures,
        results=tuple(drawing.result(key, run) for key in drawing.results),
        cells=cells,
        verdicts=verdicts,
        marks=tuple(run.marks),
        stretches=_stretches(cells, {mark.before_call - 1 for mark in run.marks}),
    )
    return found.model_copy(update={"headline": headline(found)})


@dataclass
class _Seen:
    """A signature while its calls are gone through."""

    number: int
    key: Key
    calls: list[Call] = field(default_factory=list)
    colour: int = 0
    results: dict[str, int] = field(default_factory=dict)
    """Places in the run's results by their hashes."""
    ranks: dict[str, int] = field(default_factory=dict)
    """1, 2, ... by their hashes."""
    newest: str | None = None


class _Drawing:
    """Gives numbers in the order in which things come first."""

    def __init__(self) -> None:
        self.seen: dict[Key, _Seen] = {}
        self.results: dict[tuple[int, str], list[Call]] = {}
        self._coloured = 0

    def cell(self, call: Call) -> Cell:
        seen = self.seen.setdefault(call.key, _Seen(len(self.seen), call.key))
        seen.calls.append(call)
        if len(seen.calls) == 2:
            self._coloured += 1
            seen.colour = self._coloured
        result, repeats = None, False
        if call.result_hash is not None:
            repeats, seen.newest = call.result_hash == seen.newest, call.result_hash
            result = seen.results.setdefault(call.result_hash, len(self.results))
            seen.ranks.setdefault(call.result_hash, len(seen.ranks) + 1)
            self.results.setdefault((seen.number, call.result_hash), []).append(call)
        return Cell(
            signature=seen.number,
            outcome=call.outcome,
            result=result,
            repeats=repeats,
            decision=call.decision,
            detector=call.detector,
            count=call.count,
            obeyed=_obeyed(call),
            streak=call.streak,
            in_window=call.in_window,
            window=call.window,
            verdicts=tuple(call.verdicts),
            judged=call.judged,
            call_id=_legible(call.call_id),
            event_id=legible(call.event_id),
            at=call.at,
            ended_at=call.ended_at,
            spent=call.spending.spent(),
        )

    def signature(self, seen: _Seen, run: Gathered) -> Signature:
        tool, args_hash = seen.key
        outcomes = Counter(call.outcome for call in seen.calls)
        return Signature(
            letter=letter(seen.number),
            colour=seen.colour,
            tool=legible(tool),
            args_hash=args_hash,
            known_poll=any(call.known_poll for call in seen.calls),
            args=run.args.get(seen.key),
            calls=len(seen.calls),
            first_call=seen.calls[0].number,
            last_call=seen.calls[-1].number,
            refused=outcomes["blocked"],
            errors=outcomes["error"],
            results=len(seen.results),
            longest_streak=max(call.streak for call in seen.calls),
        )

    def result(self, key: tuple[int, str], run: Gathered) -> Result:
        number, result_hash = key
        calls = self.results[key]
        first = calls[0]
        seen = self.seen[first.key]
        return Result(
            signature=number,
            number=seen.ranks[result_hash],
            kind="error" if first.outcome == "error" else "result",
            result_hash=result_hash,
            calls=len(calls),
            first_call=first.number,
            payload=run.results.get((*first.key, result_hash)),
        )


def _obeyed(call: Call) -> bool | None:
    if call.outcome == "blocked":
        return True if call.under_order or call.decision == "block" else None
    if call.decision == "block" and call.outcome != "pending":
        return False
    return None


def _verdict(issued: Issued, run: Gathered, drawing: _Drawing) -> IssuedVerdict:
    followed = issued.followed
    verdict = followed.verdict
    seen = drawing.seen.get((verdict.tool or "", verdict.args_hash or ""))
    counted = [run.call_of[each].number for each in verdict.evidence or () if each in run.call_of]
    return IssuedVerdict(
        verdict_id=verdict.verdict_id,
        at=issued.at,
        call=issued.call,
        before_call=issued.before_call,
        action=verdict.action,
        phase=verdict.phase,
        detector=verdict.detector,
        reason=legible(verdict.reason),
        scope=verdict.scope,
        tool=_legible(verdict.tool),
        signature=None if seen is None else seen.number,
        count=verdict.count,
        threshold=verdict.threshold,
        message=legible(verdict.message),
        evidence=tuple(dict.fromkeys(counted)),
        delivered=followed.delivered,
        obeyed=followed.obeyed,
        disobeyed=followed.disobeyed,
        fate=followed.in_words(),
        recorded=issued.recorded if run.recorded_known else None,
        recomputed=issued.recomputed,
    )


def _stretches(cells: tuple[Cell, ...], boundaries: set[int]) -> tuple[Stretch, ...]:
    found: list[tuple[int, int, int]] = []
    for start, end, period in repetitions(_alike(cells), sorted(boundaries)):
        if end - start > 1:
            found.append((start, end, period))
        elif found and not found[-1][2] and start not in boundaries:
            # What follows no pattern is one stretch, too.
            found[-1] = (found[-1][0], end, 0)
        else:
            found.append((start, end, 0))
    return tuple(_stretch(cells, *each) for each in found)


def _stretch(cells: tuple[Cell, ...], start: int, end: int, period: int) -> Stretch:
    results = {(cell.signature, cell.result) for cell in cells[start:end]}
    return Stretch(
        first_call=start + 1,
        last_call=end,
        pattern=tuple(range(start + 1, start + period + 1)),
        times=(end - start) / period if period else 1.0,
        same=len(results) == len({signature for signature, _ in results}),
    )


def _alike(cells: tuple[Cell, ...]) -> list[tuple[int, str, int | None]]:
    """What of each call a pattern is made of: signature, outcome, and which result where it came more than once in a
    row. Results that change each time are alike in that."""
    before: dict[int, int] = {}
    alike: list[tuple[int, str, int | None]] = [(cell.signature, cell.outcome, None) for cell in cells]
    for place, cell in enumerate(cells):
        if cell.result is None:
            continue
        if cell.repeats:
            for each in (place, before[cell.signature]):
                alike[each] = (cell.signature, cell.outcome, cell.result)
        before[cell.signature] = place
    return alike


def _status(run: Gathered) -> Status:
    if run.state is None or run.state.ended_at is None:
        return "running"
    return "aborted" if run.state.aborted else "finished"


def _severity(run: Gathered) -> Severity:
    actions = {issued.followed.verdict.action for issued in run.issued}
    for action in ("abort", "block", "warn"):
        if action in actions:
            return action
    return "quiet"


def _totals(run: Gathered, cells: tuple[Cell, ...]) -> Totals:
    on_repeats = Spending()
    for call, cell in zip(run.calls, cells, strict=True):
        if cell.repeats:
            on_repeats.take(call.spending)
    outcomes = Counter(cell.outcome for cell in cells)
    actions = Counter(
        issued.followed.verdict.action
        for issued in run.issued
        if issued.followed.verdict.action != "block" or issued.followed.verdict.phase == "order"
    )
    return Totals(
        calls=len(cells),
        refused=outcomes["blocked"],
        errors=outcomes["error"],
        repeated=sum(cell.repeats for cell in cells),
        disobeyed=sum(cell.obeyed is False for cell in cells),
        warnings=actions["warn"],
        blocks=actions["block"],
        aborts=actions["abort"],
        spent=run.spending.spent(),
        spent_on_repeats=on_repeats.spent(),
    )


def _notes(run: Gathered) -> list[str]:
    notes = []
    unplaced = sum(map(len, run.waiting.values()))
    if unplaced:
        notes.append(f"{plural(unplaced, 'recorded verdict')} of events that are not there: left out")
    if run.recorded_known:
        missing = sum(issued.recomputed and not issued.recorded for issued in run.issued)
        extra = sum(issued.recorded and not issued.recomputed for issued in run.issued)
        if missing:
            notes.append(f"{plural(missing, 'verdict')} of the judge not among the recorded ones")
        if extra:
            notes.append(f"{plural(extra, 'recorded verdict')} that the judge does not come to with this policy")
    if run.redelivered:
        notes.append(f"{plural(run.redelivered, 'event')} came again and changed nothing")
    return notes


def _legible(text: str | None) -> str | None:
    return None if text is None else legible(text)
