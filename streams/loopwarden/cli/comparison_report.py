"""How judging again compares, in words or as lines of JSON; and the exit code that it comes to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from loopwarden.cli.fitting import terminal_width
from loopwarden.cli.terminal import plural, printable, say
from loopwarden.cli.verdict_rows import header, row
from loopwarden.replay import WHY, Comparison, RunDifference

_NAMED: Final = 10
"""Runs that are named of those that are not compared: --json names all."""

_SAME, _DIFFERS, _CANNOT = 0, 1, 2


class About(NamedTuple):
    """What was compared.

    Attributes:
        where: The topic or the file.
        partitions: How many of the topic's; 0: a file.
        unjudged: Records that the worker has not judged yet: they are not compared.
        seconds: How long it took.
        by_policy: Whether all runs were judged by a policy that was given.
        by_name: Whether the runs were given by name.
    """

    where: str
    partitions: int
    unjudged: int
    seconds: float
    by_policy: bool
    by_name: bool


def report(comparison: Comparison, about: About, as_json: bool) -> int:
    """Print how it compares; return the exit code."""
    differing = sorted(comparison.differing, key=lambda each: each.run_id)
    not_compared = sum(map(len, comparison.not_compared.values()))
    cannot = not_compared > 0 and (about.by_name or not_compared >= comparison.runs)
    code = _DIFFERS if differing else _CANNOT if cannot else _SAME
    if as_json:
        for run in differing:
            print(msgspec.json.encode({"kind": "run", **_run_json(run)}).decode())
        print(msgspec.json.encode({"kind": "summary", **_summary_json(comparison, about)}).decode())
        return code
    for line in _rows(differing):
        print(line)
    print(_in_words(comparison, about))
    for line in _limits(comparison, about):
        say(line)
    return code


def _in_words(comparison: Comparison, about: About) -> str:
    rate = comparison.events / about.seconds if about.seconds > 0 else 0.0
    partitions = f" ({plural(about.partitions, 'partition')})" if about.partitions else ""
    judged = (
        f"{plural(comparison.events, 'event')} of {plural(comparison.runs, 'run')} in {about.where}{partitions}"
        f" judged again, {rate:,.0f} events/s"
    )
    changed = f", changed {comparison.changed:,}" if comparison.changed else ""
    differing = f", in {plural(len(comparison.differing), 'run')}" if comparison.differing else ""
    counts = (
        f"verdicts: same {comparison.same:,}, missing {comparison.missing:,}, extra {comparison.extra:,}"
        f"{changed}{differing}"
    )
    return f"{judged}\n{counts}"


def _rows(differing: list[RunDifference]) -> Iterator[str]:
    width = terminal_width()
    if differing:
        yield f"          {header(None if width is None else width - 10)}"
    for run in differing:
        for word, verdicts in (("missing", run.missing), ("extra", run.extra)):
            for verdict in verdicts:
                yield f"{word:<8}  {row(verdict, None if width is None else width - 10)}"
        for changed in run.changed:
            yield f"{'changed':<8}  {row(changed.recorded, None if width is None else width - 10)}"
            for name in changed.fields:
                was, again = (f"{getattr(each, name)!r:.200}" for each in (changed.recorded, changed.replayed))
                yield f"            {name}: recorded {printable(was)}, again {printable(again)}"


def _limits(comparison: Comparison, about: About) -> Iterator[str]:
    if about.by_policy:
        yield (
            "judged by the policy given, compared with what the policies in force came to: missing is what it would"
            " have added, extra what it would not have said"
        )
    for why, runs in comparison.not_compared.items():
        named = ", ".join(sorted(runs)[:_NAMED])
        more = f" and {len(runs) - _NAMED:,} more (--json names all)" if len(runs) > _NAMED else ""
        yield f"not compared: {plural(len(runs), 'run')} that {WHY[why]}: {named}{more}"
        if why == "policy_unknown":
            yield "  --policy FILE judges them by one of your choice; `loopwarden policy show` prints the archived ones"
    if comparison.expired:
        yield (
            f"not compared: {plural(comparison.expired, 'verdict')} of events so old that loop-verdicts holds nothing"
            " of that time any more"
        )
    if about.unjudged:
        yield f"not compared: {plural(about.unjudged, 'record')} that the worker has not judged yet"
    if comparison.dead:
        told = ", ".join(f"{count:,} {reason}" for reason, count in sorted(comparison.dead.items()))
        yield f"left out as dead letters: {told}"


def _run_json(run: RunDifference) -> dict[str, object]:
    return {
        "run_id": run.run_id,
        "partition": run.partition,
        "missing": run.missing,
        "extra": run.extra,
        "changed": run.changed,
    }


def _summary_json(comparison: Comparison, about: About) -> dict[str, object]:
    return {
        "records": comparison.records,
        "events": comparison.events,
        "runs": comparison.runs,
        "same": comparison.same,
        "missing": comparison.missing,
        "extra": comparison.extra,
        "changed": comparison.changed,
        "runs_differing": len(comparison.differing),
        "not_compared": {why: sorted(runs) for why, runs in comparison.not_compared.items()},
        "verdicts_expired": comparison.expired,
        "records_not_judged_yet": about.unjudged,
        "dead_letters": dict(comparison.dead),
        "by_policy_given": about.by_policy,
        "seconds": round(about.seconds, 3),
    }
