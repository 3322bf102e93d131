"""What the verdicts of a play come to: a line for each as it comes, and a table at the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from loopwarden.cli.fitting import fitting_table, gaps
from loopwarden.cli.plays import Play, Run
from loopwarden.cli.terminal import plural, printable
from loopwarden_schemas.structs import Verdict

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

_ROWS: Final = 25
_NAME_WIDTH: Final = 30
_COLORS: Final = {"warn": "yellow", "order": "cyan", "block": "red", "abort": "bold magenta", "clear": "dim"}


@dataclass
class _Tally:
    warned: set[int] = field(default_factory=set)
    blocked: set[int] = field(default_factory=set)
    aborted_at: int | None = None
    verdicts: int = 0


class Scoreboard:
    """Counts the verdicts of a play, each once."""

    def __init__(self, play: Play, line_width: int | None = None) -> None:
        """`line_width` is what a line of a verdict may have; None: any."""
        self._play = play
        self._line_width = line_width
        self._seen: set[str] = set()
        self._tallies = {run_id: _Tally() for run_id in play.runs}
        self._width = min(_NAME_WIDTH, max((len(run.name) for run in play.runs.values()), default=0))
        self._any_refused = any(run.refused for run in play.runs.values())

    @property
    def verdicts(self) -> int:
        """How many there were."""
        return len(self._seen)

    def see(self, verdict: Verdict) -> Text | None:
        """Count a verdict and return its line; None where it is of another play, or came before."""
        tally = self._tallies.get(verdict.run_id)
        step = self._play.step(verdict.event_id) if tally is not None else None
        if tally is None or step is None or verdict.verdict_id in self._seen:
            return None
        self._seen.add(verdict.verdict_id)
        tally.verdicts += 1
        if verdict.phase == "attempt" and verdict.action == "warn":
            tally.warned.add(step.call)
        elif verdict.phase == "attempt" and verdict.action == "block":
            tally.blocked.add(step.call)
        elif verdict.action == "abort":
            tally.aborted_at = step.call
        return self._line(verdict, step.run, step.call)

    def _line(self, verdict: Verdict, run: Run, call: int) -> Text:
        from rich.text import Text

        what = "order" if verdict.phase == "order" and verdict.action == "block" else verdict.action
        count = "" if verdict.count is None else f"{verdict.detector} {verdict.count}/{verdict.threshold}"
        parts = [
            Text(f"{self._name(run):<{self._width}}"),
            Text(f"call {call:>3}"),
            Text(f"{printable(verdict.tool or '-'):<10.10}"),
            Text(f"{what:<5}", style=_COLORS[what]),
            Text(f"{count:<30}"),
            Text(self._beside(what, run, call), style="dim"),
        ]
        before = gaps([part.cell_len for part in parts], self._line_width)
        return Text("").join(each for gap, part in zip(before, parts, strict=True) for each in (Text(gap), part))

    def _name(self, run: Run) -> str:
        name = printable(run.name)
        # Names of runs differ at their ends.
        return name if len(name) <= self._width else f"…{name[1 - self._width :]}"

    def _beside(self, what: str, run: Run, call: int) -> str:
        refuser = self._play.refuser
        if what == "block":
            return f"{refuser} refused it, too" if call in run.refused else f"{refuser} let it run"
        if what == "abort":
            left = run.calls - call
            return f"{refuser} let it go on for {plural(left, 'call')}" if left else ""
        return {"order": "from here on it is not to be run", "clear": "it may be run again"}.get(what, "")

    def table(self, width: int) -> RenderableType:
        """Return what became of each run, those with the most verdicts first where not all find room."""
        compared = (f"refused by {self._play.refuser}", "the same?") if self._any_refused else ()
        found = [run_id for run_id, tally in self._tallies.items() if tally.verdicts]
        order = sorted(found, key=lambda run_id: -self._tallies[run_id].verdicts)
        shown = order[:_ROWS] if len(self._tallies) > _ROWS else list(self._tallies)
        columns = ("run", "calls", "warned", "blocked", *compared, "aborted at")
        return fitting_table(columns, [self._row(run_id) for run_id in shown], width)

    def _row(self, run_id: str) -> list[str]:
        run, tally = self._play.runs[run_id], self._tallies[run_id]
        counts = (str(run.calls), str(len(tally.warned)), str(len(tally.blocked)))
        both = (str(len(run.refused)), _same(tally.blocked, run.refused)) if self._any_refused else ()
        aborted = "-" if tally.aborted_at is None else f"call {tally.aborted_at}"
        return [self._name(run), *counts, *both, aborted]

    def sentence(self) -> str:
        """Return the sum of it."""
        tallies, runs = self._tallies, self._play.runs
        blocked = sum(len(tally.blocked) for tally in tallies.values())
        refused = sum(len(run.refused) for run in runs.values())
        aborted = sum(tally.aborted_at is not None for tally in tallies.values())
        left_out = f" (shown are the runs with the most verdicts, at most {_ROWS})" if len(runs) > _ROWS else ""
        compared = f", {refused:,} of them refused by {self._play.refuser}" if refused else ""
        if refused and all(tallies[run_id].blocked == run.refused for run_id, run in runs.items()):
            compared = f": exactly those that {self._play.refuser} refused"
        return (
            f"{plural(len(runs), 'run')}, {plural(self._play.calls, 'call')}, {plural(self.verdicts, 'verdict')}:"
            f" {plural(aborted, 'run')} aborted, {plural(blocked, 'call')} blocked{compared}{left_out}"
        )


def _same(blocked: set[int], refused: set[int]) -> str:
    if not blocked and not refused:
        return "-"
    if blocked == refused:
        return "yes"
    more, fewer = len(blocked - refused), len(refused - blocked)
    return " ".join(filter(None, (f"{more} more" if more else "", f"{fewer} fewer" if fewer else "")))
