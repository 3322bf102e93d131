"""A run as Markdown: for an issue, a chat or a post-mortem in a repository."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from loopwarden.report.model import Cell, IssuedVerdict, Mark, Payload, Timeline
from loopwarden.report.payloads import legible, one_line
from loopwarden.report.settings import flat, setting_in_words
from loopwarden.report.steps import (
    Step,
    VerdictGroup,
    evidence_in_words,
    fate_in_words,
    grouped,
    place_in_words,
    steps,
    stretch_in_words,
    verdict_in_words,
)
from loopwarden.report.words import SEVERITIES, calls_in_words, clock, duration, plural

ROWS_SHOWN: Final = 100
"""Of each table."""

_CALLS_DRAWN: Final = 1_000
_IN_A_ROW: Final = 20
_ARGUMENTS_SHOWN: Final = 100

_ACTS: Final = re.compile(r"([\\`*\[\]<>|~&]|(?<!\w)_|_(?!\w))")
_LOOKS: Final = {"void": "-", "pending": "?", "blocked": "x"}


def to_markdown(run: Timeline) -> str:
    """Return the whole text."""
    parts = [
        f"# Run {_plain(run.run_id)}",
        f"**{SEVERITIES[run.severity]}**, {run.status}. {_plain(run.headline)}",
        "\n".join(f"- {fact}" for fact in _facts(run)),
        "## Timeline",
        *_picture(run),
        "## Step by step",
        _steps(run),
        "## Signatures",
        _signatures(run),
        "## Verdicts",
        _verdicts(run),
        "## Policy in force",
        *_policies(run),
    ]
    return "\n\n".join(parts) + "\n"


def _facts(run: Timeline) -> Iterator[str]:
    totals = run.totals
    if run.agent_id is not None:
        yield f"agent {_plain(run.agent_id)}"
    if run.began_at is not None and run.newest_at is not None:
        yield f"{clock(run.began_at)} UTC, {duration((run.newest_at - run.began_at) / 1000)} from first to last event"
    yield (
        f"{plural(totals.calls, 'call')} of {plural(len(run.signatures), 'signature')},"
        f" {totals.repeated:,} brought nothing new, {totals.refused:,} refused, {totals.errors:,} failed"
    )
    yield (
        f"{plural(totals.warnings, 'warning')}, {plural(totals.blocks, 'block')}, {plural(totals.aborts, 'abort')};"
        f" {plural(totals.disobeyed, 'call')} made although blocked"
    )
    spent, repeats = totals.spent, totals.spent_on_repeats
    if spent.seconds is not None:
        yield f"{duration(spent.seconds)} in calls, {duration(repeats.seconds or 0)} of it for nothing new"
    if spent.input_tokens is not None or spent.output_tokens is not None:
        yield f"{spent.input_tokens or 0:,} tokens in, {spent.output_tokens or 0:,} out"
    if spent.cost_usd is not None:
        yield f"${spent.cost_usd:,.2f}, ${repeats.cost_usd or 0:,.2f} of it for nothing new"
    yield from map(_plain, run.notes)


def _picture(run: Timeline) -> Iterator[str]:
    if len(run.cells) > _CALLS_DRAWN:
        yield f"{len(run.cells):,} calls are too many to draw here; the HTML form shows each."
        return
    yield (
        "One letter for each signature (tool and arguments). `A` new result, `A=` the same as before, `A!` error, `Ax` "
        "refused, `A?` no outcome, `A-` nothing returned; beneath: `w` warning, `b` block, `a` abort, `c` block lifted."
    )
    width = max((len(signature.letter) for signature in run.signatures), default=1) + 2
    lines = []
    for start in range(0, len(run.cells), _IN_A_ROW):
        cells = run.cells[start : start + _IN_A_ROW]
        letters = [f"{run.signatures[cell.signature].letter}{_look(cell)}".ljust(width) for cell in cells]
        signs = ["".join(_signs(run, cell)).ljust(width) for cell in cells]
        lines.append(f"{start + 1:>6}  {' '.join(letters)}".rstrip())
        lines.append(f"{'':>6}  {' '.join(signs)}".rstrip())
    yield "\n".join(["```text", *(line for line in lines if line), "```"])


def _look(cell: Cell) -> str:
    if cell.outcome in ("result", "error"):
        return f"{'!' if cell.outcome == 'error' else ''}{'=' if cell.repeats else ''}"
    return _LOOKS[cell.outcome]


def _signs(run: Timeline, cell: Cell) -> Iterator[str]:
    actions = {run.verdicts[place].action for place in cell.verdicts}
    yield from (action[0] for action in ("warn", "block", "abort", "clear") if action in actions)


def _steps(run: Timeline) -> str:
    found = list(steps(run))
    rows = [_step(run, step) for step in found[:ROWS_SHOWN]]
    return _table(("calls", "what happened", "verdicts"), rows, len(found))


def _step(run: Timeline, step: Step) -> tuple[str, ...]:
    said = (f"{_kind(group)} {verdict_in_words(group)} at {place_in_words(group)}" for group in step.verdicts)
    verdicts = ", ".join(said)
    if isinstance(step.what, Mark):
        return "", _plain(step.what.text), _plain(verdicts)
    stretch = step.what
    calls = stretch.pattern or range(stretch.first_call, stretch.last_call + 1)
    letters = " ".join(run.signatures[run.cells[call - 1].signature].letter for call in calls[:_IN_A_ROW])
    more = " …" if len(calls) > _IN_A_ROW else ""
    words = f"**{letters}{more}** {_plain(stretch_in_words(run, stretch))}"
    return calls_in_words(stretch.first_call, stretch.last_call), words, _plain(verdicts)


def _signatures(run: Timeline) -> str:
    order = sorted(range(len(run.signatures)), key=lambda each: (-run.signatures[each].calls, each))
    rows = []
    for each in order[:ROWS_SHOWN]:
        found = run.signatures[each]
        rows.append(
            (
                found.letter,
                _plain(found.tool),
                f"{found.calls:,}",
                f"{found.refused:,}",
                f"{found.errors:,}",
                f"{found.results:,}",
                f"{found.longest_streak:,}",
                _arguments(found.args),
            )
        )
    heads = ("", "tool", "calls", "refused", "errors", "different outcomes", "longest streak", "arguments")
    return _table(heads, rows, len(order))


def _arguments(args: Payload | None) -> str:
    if args is None:
        return ""
    text = one_line(args.text, _ARGUMENTS_SHOWN)
    more = len(" ".join(args.text.split())) - _ARGUMENTS_SHOWN + args.left_out
    return f"{_code(text)}{f' ({more:,} more characters)' if more > 0 else ''}"


def _verdicts(run: Timeline) -> str:
    if not run.verdicts:
        return "No verdicts."
    found = grouped(run.verdicts)
    rows = [
        (
            place_in_words(group),
            _kind(group),
            _plain(f"{verdict_in_words(group)}{_counted(group.first)}{_published(group.first)}"),
            _about(run, group.first),
            fate_in_words(group),
            _plain(group.first.message),
        )
        for group in found[:ROWS_SHOWN]
    ]
    return _table(("at", "verdict", "why", "about", "fate", "message to the model"), rows, len(found))


def _counted(verdict: IssuedVerdict) -> str:
    counted = evidence_in_words(verdict)
    return f", counting calls {counted}" if counted else ""


def _published(verdict: IssuedVerdict) -> str:
    if not verdict.recomputed:
        return ", published, but not what the judge comes to"
    return ", not published" if verdict.recorded is False else ""


def _about(run: Timeline, verdict: IssuedVerdict) -> str:
    if verdict.scope == "run":
        return "the run"
    if verdict.scope == "tool":
        return f"every call of {_plain(verdict.tool or '')}"
    letter = "" if verdict.signature is None else f"**{run.signatures[verdict.signature].letter}** "
    return f"{letter}{_plain(verdict.tool or '')}"


def _kind(group: VerdictGroup) -> str:
    first = group.first
    return "blocked attempt" if first.action == "block" and first.phase == "attempt" else first.action


def _policies(run: Timeline) -> Iterator[str]:
    for policy in run.policies:
        yield f"From call {policy.from_call:,} on: {_plain(policy.source)}. Digest `{policy.policy_digest}`."
        rows = [(f"`{name}`", setting_in_words(value)) for name, value in flat(policy.table)]
        yield _table(("setting", "value"), rows, len(rows))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], there: int) -> str:
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *(f"| {' | '.join(row)} |" for row in rows)]
    if there > len(rows):
        lines += ["", f"The first {len(rows):,} of {there:,}. The JSON form has all of them."]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Text on one line of which nothing acts as Markdown or HTML."""
    return _ACTS.sub(r"\\\1", " ".join(legible(text).split()))


def _code(text: str) -> str:
    """Text as code in a table: fenced by more backticks than it has in a row, its bars escaped."""
    longest = max((len(found) for found in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest else ""
    return f"{fence}{space}{text}{space}{fence}".replace("|", "\\|")
