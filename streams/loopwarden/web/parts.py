"""Pieces that several pages show."""

from __future__ import annotations

from collections import Counter
from typing import Final
from urllib.parse import quote

from loopwarden.report.html_tables import moment
from loopwarden.report.markup import Child, Markup, join, tag
from loopwarden.web.bodies import Run

_LOOKS: Final = {
    "pending": "no outcome yet",
    "new": "new result",
    "same": "same result as before",
    "error": "error",
    "error same": "same error as before",
    "void": "nothing returned",
    "blocked": "refused",
}


def run_link(run_id: str) -> Markup:
    """Return a link to a run's page."""
    return tag("a", run_id, href=run_path(run_id))


def run_path(run_id: str) -> str:
    """Return where a run's page is."""
    return f"/runs/{quote(run_id.encode('utf-8', 'surrogatepass'), safe='')}"


def cell(head: str, *children: Child, class_: str | None = None) -> Markup:
    """Return a cell of a table, that says on a phone what it is."""
    return tag("td", *children, data_h=head, class_=class_)


def table(caption: str, heads: tuple[str, ...], rows: list[Markup], class_: str | None = None) -> Markup:
    """Return a table."""
    head = tag("thead", tag("tr", *(tag("th", each, scope="col") for each in heads)))
    named = tag("caption", caption, class_="unseen")
    return tag("div", tag("table", named, head, tag("tbody", *rows), class_=class_), class_="scroll")


def facts(*told: tuple[str, str, str | None]) -> Markup:
    """Return numbers with their names and what is to be said about them."""
    items = [
        tag("div", tag("dt", name), tag("dd", value, tag("small", about) if about else None))
        for name, value, about in told
    ]
    return tag("dl", *items, class_="facts")


def runs_table(caption: str, runs: list[Run]) -> Markup:
    """Return runs, a row each."""
    heads = ("Run", "Status", "Verdicts", "Calls", "Nothing new", "Newest calls", "Newest verdict")
    return table(caption, heads, [_row(run) for run in runs], "runs")


def _row(run: Run) -> Markup:
    newest = "" if run.newest_verdict is None else run.newest_verdict
    when = None if run.newest_verdict_at is None else tag("small", " ", moment(run.newest_verdict_at))
    return tag(
        "tr",
        tag(
            "th",
            run_link(run.run_id),
            under(run.agent_id),
            scope="row",
        ),
        cell("Status", tag("span", run.status, class_=f"pill {run.status}")),
        cell("Verdicts", _verdicts(run)),
        cell("Calls", f"{run.calls:,}", tag("small", f" {run.refused:,} refused") if run.refused else None),
        cell("Nothing new", f"{run.repeats:,}"),
        cell("Newest calls", _newest(run)),
        cell("Newest verdict", newest, when, class_="newest"),
    )


def under(words: str | None) -> Markup | None:
    """Return what stands small beneath a name, where there is something."""
    return tag("small", words, class_="under") if words else None


def _verdicts(run: Run) -> Markup | None:
    told = [
        tag("span", f"{count:,} {words}{'' if count == 1 else 's'}", class_=f"badge {action}")
        for count, words, action in (
            (run.aborts, "abort", "abort"),
            (run.blocks, "block", "block"),
            (run.warnings, "warning", "warn"),
        )
        if count
    ]
    if run.disobeyed:
        told.append(tag("span", f"{run.disobeyed:,} disobeyed", class_="badge disobeyed"))
    return tag("span", *told, class_="badges") if told else None


def _newest(run: Run) -> Markup:
    calls = run.newest
    times = Counter(call.signature for call in calls)
    often = {signature: 0 for signature in dict.fromkeys(call.signature for call in calls) if times[signature] > 1}
    colours = {signature: number % 7 + 1 for number, signature in enumerate(often)}
    cells = [
        tag(
            "i",
            class_=f"k{colours.get(call.signature, 0)} {call.outcome}",
            title=f"{call.tool}: {_LOOKS[call.outcome]}",
        )
        for call in calls
    ]
    words = ", ".join(f"{count} {_LOOKS[look]}" for look, count in Counter(call.outcome for call in calls).items())
    return tag("span", *cells, class_="strip", role="img", aria_label=f"{len(calls)} newest calls: {words}")


def choice(name: str, label: str, options: dict[str, str], chosen: str) -> Markup:
    """Return a choice of a form."""
    items = [tag("option", words, value=value, selected=value == chosen) for value, words in options.items()]
    return tag("label", label, tag("select", *items, name=name))


def text(name: str, label: str, value: str) -> Markup:
    """Return a field of a form."""
    return tag("label", label, Markup(tag("input", name=name, value=value, type="search").removesuffix("</input>")))


def form(path: str, *fields: Markup) -> Markup:
    """Return a form whose answer is a page that can be linked to."""
    return tag("form", *fields, tag("button", "Show", type="submit"), action=path, method="get", class_="filters")


def header(title: str, lead: Child = None, *below: Child) -> Markup:
    """Return a page's head."""
    return tag("header", tag("h1", title), tag("p", lead, class_="lead") if lead else None, *below)


def section(title: str, *content: Child) -> Markup:
    """Return a part of a page."""
    return tag("section", tag("h2", title), join(content))
