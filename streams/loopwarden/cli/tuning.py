"""What `loopwarden tune` does: many policies tried on a history, a table and a plot of what they come to."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec
import orjson

from loopwarden.cli.fitting import fitting_table
from loopwarden.cli.histories import History, Reduced, under_policies
from loopwarden.cli.mistakes import Mistake
from loopwarden.cli.scatter import scatter
from loopwarden.cli.terminal import plural, printable, say
from loopwarden.replay import Candidate, RunUnder, Tally, candidates, choose, front, suspects, tallies
from loopwarden_schemas.policy import PolicyDocument

_AT_ONCE: Final = 11
"""Policies judged under in one pass: each holds the states of all runs that are alive."""


def tune_policy(history: History, base: PolicyDocument, most_harm: float, output: str | None, as_json: bool) -> int:
    """Try policies and tell what they come to; return the exit code.

    Raises:
        ClusterError, InputError: the history cannot be read.
        Mistake: it holds no run that is seen whole, or the policy cannot be written.
    """
    tried = candidates(base)
    found, reduced = _judge(history, tried)
    runs = found[0].resolved + found[0].unresolved + found[0].unknown
    if not runs:
        reduced.tell(history.name())
        raise Mistake(f"{history.name()}: must hold a run that can be judged from its beginning, but holds none")
    chosen = choose(found, most_harm) if found[0].resolved else None
    best = front(found)
    if as_json:
        for at, (candidate, tally) in enumerate(zip(tried, found, strict=True)):
            print(msgspec.json.encode(_as_json(candidate, tally, at in best, at == chosen)).decode())
    else:
        _show(history, tried, found, best, chosen)
    reduced.tell(history.name())
    return _conclude(tried, found, chosen, most_harm, output)


def _judge(history: History, tried: Sequence[Candidate]) -> tuple[list[Tally], Reduced]:
    """Judge all runs under the strictest policy, and those that it stops under the others."""
    parts = history.parts()
    strictest = Tally()
    suspected: set[bytes] = set()

    def first(runs: list[RunUnder]) -> None:
        strictest.add(tallies(runs, 1)[0])
        suspected.update(suspects(runs))

    reduced = under_policies(history, parts, [tried[0].document], first, f"Trying policies: 1 of {len(tried)}")
    found = [strictest, *(strictest.without_harm() for _ in tried[1:])]
    some = [replace(each, part=replace(each.part, runs=frozenset(suspected))) for each in parts]
    for at in range(1, len(tried), _AT_ONCE):
        group = range(at, min(at + _AT_ONCE, len(tried)))
        sums = [Tally() for _ in group]

        def take(runs: list[RunUnder], sums: list[Tally] = sums) -> None:
            for total, tally in zip(sums, tallies(runs, len(sums)), strict=True):
                total.add(tally)

        what = f"Trying policies: {group[0] + 1} to {group[-1] + 1} of {len(tried)}"
        if suspected:
            under_policies(history, some, [tried[number].document for number in group], take, what)
        for number, total in zip(group, sums, strict=True):
            for name in ("harmed", "stopped", "stopped_unknown", "spared_calls"):
                setattr(found[number], name, getattr(total, name))
    return found, reduced


def _conclude(
    tried: Sequence[Candidate], found: Sequence[Tally], chosen: int | None, most_harm: float, output: str | None
) -> int:
    if not found[0].resolved:
        say(
            "nothing is chosen: no run is known to be resolved, so that harm cannot be weighed. --resolved REASON names"
            " the reasons of run.finished that mean so"
        )
        return 1
    if chosen is None:
        say(f"nothing is chosen: no policy stops a run and harms at most {most_harm:.2%} of the resolved ones")
        return 1
    if output is not None:
        try:
            Path(output).write_bytes(orjson.dumps(tried[chosen].document.value, option=orjson.OPT_INDENT_2) + b"\n")
        except OSError as error:
            raise Mistake(f"{output}: cannot be written: {error.strerror}") from None
        say(f"{output}: written. `loopwarden what-if --policy {output}` tells the runs, `policy apply` applies it")
    return 0


def _show(
    history: History, tried: Sequence[Candidate], found: Sequence[Tally], best: list[int], chosen: int | None
) -> None:
    from rich.console import Console

    first = found[0]
    unknown = f", {first.unknown:,} of unknown outcome" if first.unknown else ""
    print(
        f"{plural(len(tried), 'policy').replace('policys', 'policies')} tried on {printable(history.name())}:"
        f" {first.resolved:,} resolved runs, {first.unresolved:,} unresolved{unknown}"
    )
    if not first.resolved and not first.unresolved:
        # Shares of nothing: a table and a plot of them would only look like an answer.
        return
    console = Console(file=sys.stdout, highlight=False)
    rows = [_row(tried[at], found[at], at == chosen) for at in best]
    columns = ("warn / block / breaker", "detectors", "stopped", "harmed", "calls spared")
    console.print(fitting_table(columns, rows, console.width))
    points = [(100 * tally.harmed_share, 100 * tally.stopped_share) for tally in found]
    for line in scatter(points, set(best), chosen, "% of resolved runs harmed", "% of unresolved runs stopped"):
        print(line)


def _row(candidate: Candidate, tally: Tally, is_chosen: bool) -> tuple[str, ...]:
    return (
        f"{candidate.warning} / {candidate.critical} / {candidate.breaker}{'  <- chosen' if is_chosen else ''}",
        candidate.detectors,
        f"{tally.stopped:,} ({tally.stopped_share:.1%})",
        f"{tally.harmed:,} ({tally.harmed_share:.2%})",
        f"{tally.spared_calls:,}",
    )


def _as_json(candidate: Candidate, tally: Tally, is_best: bool, is_chosen: bool) -> dict[str, object]:
    return {
        "warning": candidate.warning,
        "critical": candidate.critical,
        "breaker": candidate.breaker,
        "detectors": candidate.detectors,
        **{name: getattr(tally, name) for name in Tally.__dataclass_fields__},
        "best": is_best,
        "chosen": is_chosen,
    }
