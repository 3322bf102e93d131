"""The run in tables: step by step, signature by signature, verdict by verdict, and the policy. (HTML.)"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from loopwarden.report.html_picture import chip, link_to
from loopwarden.report.markup import Markup, escape, join, tag
from loopwarden.report.model import Mark, Payload, Result, Stretch, Timeline
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
from loopwarden.report.words import calls_in_words, clock, clock_iso, plural

ROWS_SHOWN: Final = 500
"""Of each table. A run that needs more is read as JSON."""

RESULTS_SHOWN: Final = 5
"""Of each signature, first and last ones."""

PAYLOAD_BUDGET: Final = 500_000
"""Characters of arguments and results in one page: a browser on a phone still opens it."""


def moment(milliseconds: int) -> Markup:
    """Return a moment for people and machines."""
    return tag("time", clock(milliseconds), datetime=clock_iso(milliseconds))


def steps_table(run: Timeline) -> Markup:
    """Return the run step by step."""
    found = list(steps(run))
    rows = [_step(run, step) for step in found[:ROWS_SHOWN]]
    table = _table(("Calls", "When (UTC)", "What happened", "Verdicts"), rows, "The run, step by step")
    return Markup(table + _left_out(len(found), "step"))


def signatures_table(run: Timeline) -> Markup:
    """Return the signatures, those called most often first, with what they carried."""
    order = sorted(range(len(run.signatures)), key=lambda each: (-run.signatures[each].calls, each))
    budget = _Budget()
    results: defaultdict[int, list[Result]] = defaultdict(list)
    for result in run.results:
        results[result.signature].append(result)
    rows = [_signature(run, each, results[each], budget) for each in order[:ROWS_SHOWN]]
    heads = ("Signature", "Calls", "Refused", "Errors", "Outcomes", "Longest streak", "First, last", "Carried")
    table = _table(heads, rows, "Signatures: a tool with its arguments")
    return Markup(table + _left_out(len(order), "signature") + budget.told())


def verdicts_table(run: Timeline) -> Markup:
    """Return the verdicts and what became of them."""
    if not run.verdicts:
        return tag("p", "No verdicts.")
    found = grouped(run.verdicts)
    rows = [_verdict(run, group) for group in found[:ROWS_SHOWN]]
    table = _table(("At", "Verdict", "Why", "About", "Fate", "Message to the model"), rows, "Verdicts, in their order")
    return Markup(table + _left_out(len(found), "verdict"))


def policy_table(run: Timeline) -> Markup:
    """Return the policies that the run was judged by."""
    parts: list[Markup] = []
    for policy in run.policies:
        detectors = "detectors on" if policy.detectors_on else "detectors off"
        guard = "post-compaction guard on" if policy.guard_on else "post-compaction guard off"
        about = f"From call {policy.from_call:,} on: {policy.source}; {detectors}, {guard}."
        rows = [
            tag("tr", tag("th", name, scope="row"), _cell("Value", setting_in_words(value)))
            for name, value in flat(policy.table)
        ]
        parts.append(tag("p", about, " Digest ", tag("code", policy.policy_digest)))
        parts.append(_table(("Setting", "Value"), rows, "The policy in force", "narrow"))
    return join(parts)


def _step(run: Timeline, step: Step) -> Markup:
    what = step.what
    if isinstance(what, Mark):
        text = tag("td", what.text, colspan=1, data_h="What happened")
        return tag(
            "tr", tag("th", "—", scope="row"), _cell("When", moment(what.at)), text, _verdicts(step), class_="mark-row"
        )
    return tag(
        "tr",
        tag(
            "th",
            link_to(run, what.first_call, calls_in_words(what.first_call, what.last_call)),
            scope="row",
            class_="at",
        ),
        _cell("When", moment(run.cells[what.first_call - 1].at)),
        _cell("What happened", _pattern(run, what), " ", stretch_in_words(run, what)),
        _verdicts(step),
    )


def _pattern(run: Timeline, stretch: Stretch) -> Markup:
    calls = stretch.pattern or range(stretch.first_call, stretch.last_call + 1)
    shown = [chip(run, run.cells[call - 1].signature) for call in calls[:24]]
    return tag("span", *shown, " …" if len(calls) > 24 else None, class_="chips")


def _verdicts(step: Step) -> Markup:
    said = [
        tag("li", _badge(group), f" {verdict_in_words(group)}", tag("small", f" {place_in_words(group)}"))
        for group in step.verdicts
    ]
    return _cell("Verdicts", tag("ul", *said, class_="plain") if said else None)


def _badge(group: VerdictGroup) -> Markup:
    action = group.first.action
    words = {"order": f"{action}", "attempt": action if action in ("warn", "abort") else f"{action}ed attempt"}
    return tag("span", words[group.first.phase], class_=f"badge {action}")


def _signature(run: Timeline, number: int, results: list[Result], budget: _Budget) -> Markup:
    signature = run.signatures[number]
    carried = list(_carried(signature.args, results, budget)) or [escape("nothing to show")]
    return tag(
        "tr",
        tag("th", chip(run, number), f" {signature.tool}", scope="row"),
        _cell("Calls", f"{signature.calls:,}"),
        _cell("Refused", f"{signature.refused:,}"),
        _cell("Errors", f"{signature.errors:,}"),
        _cell("Outcomes", f"{signature.results:,} different" if signature.results > 1 else f"{signature.results}"),
        _cell("Longest streak", f"{signature.longest_streak:,}"),
        _cell("First, last", calls_in_words(signature.first_call, signature.last_call)),
        _cell("Carried", *carried),
    )


def _carried(args: Payload | None, results: list[Result], budget: _Budget) -> Iterator[Markup]:
    if args is not None:
        yield _details("Arguments", args, budget)
    shown = results if len(results) <= 2 * RESULTS_SHOWN else results[:RESULTS_SHOWN] + results[-RESULTS_SHOWN:]
    for result in shown:
        if result.payload is not None:
            kind = "Error" if result.kind == "error" else "Result"
            many = f", had {result.calls:,} times" if result.calls > 1 else ""
            yield _details(f"{kind} {result.number}, of call {result.first_call:,}{many}", result.payload, budget)
    if len(results) > len(shown):
        yield tag("small", f"{len(results) - len(shown):,} further results between them are left out here")


def _details(summary: str, payload: Payload, budget: _Budget) -> Markup:
    text = budget.take(payload)
    if text is None:
        return tag("details", tag("summary", summary), tag("p", "Left out: the page is full."))
    cut = payload.left_out + len(payload.text) - len(text)
    rest = tag("p", tag("small", f"{plural(cut, 'further character')} left out")) if cut else None
    return tag("details", tag("summary", summary), tag("pre", text, tabindex="0"), rest)


class _Budget:
    """How many characters of payloads may still be shown."""

    def __init__(self) -> None:
        self.left = PAYLOAD_BUDGET
        self.refused = 0

    def take(self, payload: Payload) -> str | None:
        if len(payload.text) > self.left:
            self.refused += 1
            return None
        self.left -= len(payload.text)
        return payload.text

    def told(self) -> Markup:
        if not self.refused:
            return Markup()
        words = (
            f"{plural(self.refused, 'payload')} left out: a page shows {PAYLOAD_BUDGET:,} characters of them in all."
            " The JSON form has them."
        )
        return tag("p", tag("small", words))


def _verdict(run: Timeline, group: VerdictGroup) -> Markup:
    first = group.first
    if first.scope == "run":
        about = Markup("the run")
    elif first.signature is not None and first.scope == "call":
        about = join([chip(run, first.signature), f" {first.tool or ''}"])
    else:
        about = join([f"{first.tool or 'a call'}{' (every call)' if first.scope == 'tool' else ''}"])
    counted = evidence_in_words(first)
    told = [f"counting calls {counted}"] if counted else []
    told += ["not published"] if first.recorded is False else []
    told += [] if first.recomputed else ["published, but not what the judge comes to"]
    return tag(
        "tr",
        tag("th", link_to(run, first.call or first.before_call, place_in_words(group)), scope="row", class_="at"),
        _cell("Verdict", _badge(group)),
        _cell("Why", verdict_in_words(group), *(tag("small", f" {each}") for each in told)),
        _cell("About", about),
        _cell("Fate", fate_in_words(group) or "—"),
        _cell("Message", first.message),
    )


def _cell(head: str, *children: Any) -> Markup:
    return tag("td", *children, data_h=head)


def _table(heads: tuple[str, ...], rows: list[Markup], caption: str, class_: str | None = None) -> Markup:
    head = tag("thead", tag("tr", *(tag("th", each, scope="col") for each in heads)))
    named = tag("caption", caption, class_="unseen")
    return tag("div", tag("table", named, head, tag("tbody", *rows), class_=class_), class_="scroll")


def _left_out(there: int, noun: str) -> Markup:
    if there <= ROWS_SHOWN:
        return Markup()
    words = f"The first {ROWS_SHOWN} of {plural(there, noun)}. The JSON form has all of them."
    return tag("p", tag("small", words))
