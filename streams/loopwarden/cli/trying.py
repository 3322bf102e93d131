"""What `loopwarden what-if` does: a history under two policies, and what is otherwise under the second."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Final, Literal, TypeAlias

import msgspec

from loopwarden.cli.fitting import fitting_table
from loopwarden.cli.histories import History, under_policies
from loopwarden.cli.mistakes import Mistake
from loopwarden.cli.terminal import plural, printable, say
from loopwarden.replay import Course, RunUnder, Spared, spared_more
from loopwarden_schemas.policy import PolicyDocument

Change: TypeAlias = Literal["earlier", "later", "newly", "no more", "as before"]
CHANGES: Final[tuple[Change, ...]] = ("earlier", "later", "newly", "no more", "as before")
_ACTIONS: Final[tuple[tuple[str, Callable[[Course], int | None]], ...]] = (
    ("warned", lambda course: course.warned_at),
    ("blocked", lambda course: course.blocked_at),
    ("aborted", lambda course: course.aborted_at),
)
_SHOWN: Final = 20
"""Runs shown, those that change most: --json tells all."""


def try_policy(
    history: History,
    new: PolicyDocument,
    old: PolicyDocument | None,
    new_name: str,
    old_name: str | None,
    as_json: bool,
) -> int:
    """Tell what would have been otherwise; return the exit code.

    Raises:
        ClusterError, InputError: the history cannot be read.
        Mistake: it holds no run that is seen whole.
    """
    runs: list[RunUnder] = []
    found = under_policies(history, history.parts(), (old, new), runs.extend, "Judging twice")
    if not runs:
        found.tell(history.name())
        raise Mistake(f"{history.name()}: must hold a run that can be judged from its beginning, but holds none")
    runs.sort(key=lambda run: (-abs(spared_more(run).calls), run.run_id))
    if as_json:
        for run in runs:
            if changes(run) or run.courses[0] != run.courses[1]:
                print(msgspec.json.encode({"kind": "run", **_run_json(run)}).decode())
        print(msgspec.json.encode({"kind": "summary", **summary_of(runs), "events": found.events}).decode())
    else:
        against = old_name or "the policies in force by the log"
        calls = sum(run.calls for run in runs)
        print(
            f"{plural(len(runs), 'run')}, {plural(calls, 'call')} of {printable(history.name())}:"
            f" {printable(new_name)} instead of {printable(against)}"
        )
        for line in _in_words(runs):
            print(line)
    found.tell(history.name())
    return 0


def change(old: int | None, new: int | None) -> Change | None:
    """Return how the place of something changes; None: under neither policy it comes."""
    if old is None:
        return None if new is None else "newly"
    if new is None:
        return "no more"
    return "earlier" if new < old else "later" if new > old else "as before"


def changes(run: RunUnder) -> dict[str, Change]:
    """Return what changes for a run, by the action."""
    old, new = run.courses
    found = {action: change(at(old), at(new)) for action, at in _ACTIONS}
    return {action: kind for action, kind in found.items() if kind is not None and kind != "as before"}


def hurt(runs: list[RunUnder]) -> list[RunUnder]:
    """Return the resolved runs that only the new policy gets in the way of."""
    return [run for run in runs if run.outcome == "resolved" and run.courses[1].stops and not run.courses[0].stops]


def summary_of(runs: list[RunUnder]) -> dict[str, object]:
    """Return the counts, for programs."""
    old, new = (_total([run.courses[at].spared for run in runs]) for at in (0, 1))
    return {
        "runs": len(runs),
        "calls": sum(run.calls for run in runs),
        "changes": {action: _counts(runs, at) for action, at in _ACTIONS},
        "spared": {"old": old._asdict(), "new": new._asdict(), "more": new.minus(old)._asdict()},
        "outcomes": {
            outcome: {
                "runs": sum(run.outcome == outcome for run in runs),
                "stopped_old": sum(run.outcome == outcome and run.courses[0].stops for run in runs),
                "stopped_new": sum(run.outcome == outcome and run.courses[1].stops for run in runs),
            }
            for outcome in ("resolved", "unresolved", "unknown")
        },
        "resolved_hurt": sorted(run.run_id for run in hurt(runs)),
        "calls_refused_in_history": sum(run.refused for run in runs),
    }


def _counts(runs: list[RunUnder], at: Callable[[Course], int | None]) -> dict[str, int]:
    counts: dict[str, int] = dict.fromkeys(CHANGES, 0)
    for run in runs:
        kind = change(*(at(course) for course in run.courses))
        if kind is not None:
            counts[kind] += 1
    return counts


def _total(spared: list[Spared]) -> Spared:
    total = Spared()
    for each in spared:
        total = total.plus(each)
    return total


def _in_words(runs: list[RunUnder]) -> Iterator[str]:
    from rich.console import Console

    console = Console(file=sys.stdout, highlight=False)
    rows = [(action, *(f"{_counts(runs, at)[kind]:,}" for kind in CHANGES)) for action, at in _ACTIONS]
    console.print(fitting_table(("runs", *CHANGES), rows, console.width))
    old, new = (_total([run.courses[at].spared for run in runs]) for at in (0, 1))
    yield f"spared: {_spared(new)}; before: {_spared(old)}"
    for outcome, word in (("resolved", "hurt"), ("unresolved", "stopped"), ("unknown", "stopped")):
        of_kind = [run for run in runs if run.outcome == outcome]
        if of_kind:
            counts = [sum(run.courses[at].stops for run in of_kind) for at in (0, 1)]
            name = f"{outcome} runs" if outcome != "unknown" else "runs of unknown outcome"
            yield f"{name} {word}: {counts[1]:,} of {len(of_kind):,}; before: {counts[0]:,}"
    newly = hurt(runs)
    if newly:
        more = f" and {len(newly) - _SHOWN:,} more (--json tells all)" if len(newly) > _SHOWN else ""
        yield f"resolved, and newly hurt: {', '.join(printable(run.run_id) for run in newly[:_SHOWN])}{more}"
    refused = sum(run.refused for run in runs if run.courses[1].blocked_at is None)
    if refused:
        say(f"{plural(refused, 'call')} were refused in runs that it would not block: what they return nobody knows")
    changed = [run for run in runs if changes(run)]
    if changed:
        console.print(fitting_table(("run", "outcome", "calls", *_columns()), _rows(changed[:_SHOWN]), console.width))
        if len(changed) > _SHOWN:
            yield f"and {len(changed) - _SHOWN:,} more runs that change (--json tells all)"


def _columns() -> list[str]:
    return [*(action for action, _ in _ACTIONS), "calls spared"]


def _rows(runs: list[RunUnder]) -> list[tuple[str, ...]]:
    return [
        (
            printable(run.run_id),
            run.outcome,
            f"{run.calls:,}",
            *(_place(*(at(course) for course in run.courses)) for _, at in _ACTIONS),
            f"{run.courses[0].spared.calls:,} -> {run.courses[1].spared.calls:,}",
        )
        for run in runs
    ]


def _place(old: int | None, new: int | None) -> str:
    if old == new:
        return "-" if old is None else f"at {old}"
    return f"{'-' if old is None else f'at {old}'} -> {'-' if new is None else f'at {new}'}"


def _spared(spared: Spared) -> str:
    told = [plural(spared.calls, "call")]
    if spared.milliseconds:
        told.append(f"{spared.milliseconds / 1000:,.0f} s")
    if spared.tokens:
        told.append(plural(spared.tokens, "token"))
    if spared.cost_usd:
        told.append(f"{spared.cost_usd:,.2f} USD")
    return ", ".join(told)


def _run_json(run: RunUnder) -> dict[str, object]:
    old, new = run.courses

    def course(of: Course) -> dict[str, object]:
        return {**of._asdict(), "spared": of.spared._asdict()}

    return {
        "run_id": run.run_id,
        "agent_id": run.agent_id,
        "outcome": run.outcome,
        "calls": run.calls,
        "old": course(old),
        "new": course(new),
        "changes": changes(run),
    }
