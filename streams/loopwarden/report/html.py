"""A run as one HTML file: no script, nothing from elsewhere, light and dark, on a phone, on paper, read aloud."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

from loopwarden.report.html_picture import picture
from loopwarden.report.html_tables import moment, policy_table, signatures_table, steps_table, verdicts_table
from loopwarden.report.markup import Markup, join, tag, void
from loopwarden.report.model import Spent, Timeline
from loopwarden.report.payloads import one_line
from loopwarden.report.words import SEVERITIES, duration, plural
from loopwarden_schemas.verdicts import RULES_VERSION

_NOTHING_ACTIVE: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Content security policy: even if something slipped through the escaping, no browser would run or fetch it."""

CALLS_ON_PAPER: Final = 2_000
"""Of longer runs paper has the map and the tables: each call of 10,000 would take 50 sheets, and minutes to print."""

_STATUSES: Final = {"running": "not finished", "finished": "finished"}


def to_html(run: Timeline) -> str:
    """Return the whole page."""
    head = tag(
        "head",
        void("meta", charset="utf-8"),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        void("meta", name="color-scheme", content="light dark"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_NOTHING_ACTIVE}">'),
        tag("title", f"Run {one_line(run.run_id)}: {SEVERITIES[run.severity]} (Loopwarden)"),
        tag("style", style()),
    )
    size = "too-long-for-paper" if len(run.cells) > CALLS_ON_PAPER else None
    return f"<!doctype html>\n{tag('html', head, tag('body', body(run), class_=size), lang='en')}\n"


@cache
def style() -> Markup:
    """Return the style sheet."""
    return Markup(files("loopwarden.report").joinpath("report.css").read_text("utf-8"))


def body(run: Timeline) -> Markup:
    """Return what the page shows, without the document around it."""
    return join(
        [
            tag("a", "Skip the picture: the run in words", href="#steps", class_="skip"),
            _header(run),
            tag(
                "main",
                _facts(run),
                _section("picture", "Timeline", picture(run)),
                _paper_note(run),
                _section("steps", "Step by step", steps_table(run)),
                _section("signatures", "Signatures", signatures_table(run)),
                _section("verdicts", "Verdicts", verdicts_table(run)),
                _section("policy", "Policy in force", policy_table(run)),
            ),
            _footer(run),
        ]
    )


def _header(run: Timeline) -> Markup:
    told = [f"agent {run.agent_id}"] if run.agent_id is not None else []
    told += [f"session {run.session_id}"] if run.session_id is not None else []
    when = () if run.began_at is None else (moment(run.began_at), " UTC")
    return tag(
        "header",
        tag("p", "Loopwarden · run report", class_="brand"),
        tag("h1", run.run_id),
        tag(
            "p",
            tag("span", SEVERITIES[run.severity], class_=f"pill {run.severity}"),
            None if run.status == "aborted" else tag("span", _STATUSES[run.status], class_="pill"),
            tag("span", *when, *(f" · {each}" for each in told), class_="when"),
            class_="pills",
        ),
        tag("p", run.headline, class_="lead"),
        tag("ul", *(tag("li", note) for note in run.notes), class_="notes") if run.notes else None,
    )


def _facts(run: Timeline) -> Markup:
    totals = run.totals
    verdicts = [
        plural(count, noun)
        for count, noun in ((totals.warnings, "warning"), (totals.blocks, "block"), (totals.aborts, "abort"))
        if count
    ]
    facts = [
        ("Calls", f"{totals.calls:,}", f"{plural(len(run.signatures), 'signature')}"),
        ("Nothing new", f"{totals.repeated:,}", "same outcome as the call before"),
        ("Refused", f"{totals.refused:,}", f"{totals.disobeyed:,} made although blocked"),
        ("Errors", f"{totals.errors:,}", None),
        ("Verdicts", f"{totals.warnings + totals.blocks + totals.aborts:,}", ", ".join(verdicts) or None),
    ]
    if run.began_at is not None and run.newest_at is not None:
        facts.append(("Took", duration((run.newest_at - run.began_at) / 1000), "first to last event"))
    facts += _spent(totals.spent, totals.spent_on_repeats)
    items = [
        tag("div", tag("dt", name), tag("dd", value, tag("small", about) if about else None))
        for name, value, about in facts
    ]
    return tag("dl", *items, class_="facts")


def _spent(all_: Spent, repeats: Spent) -> list[tuple[str, str, str | None]]:
    found: list[tuple[str, str, str | None]] = []
    if all_.seconds is not None:
        found.append(("Time in calls", duration(all_.seconds), f"{duration(repeats.seconds or 0)} for nothing new"))
    if all_.input_tokens is not None or all_.output_tokens is not None:
        tokens = (all_.input_tokens or 0) + (all_.output_tokens or 0)
        wasted = (repeats.input_tokens or 0) + (repeats.output_tokens or 0)
        found.append(("Tokens", f"{tokens:,}", f"{wasted:,} for nothing new"))
    if all_.cost_usd is not None:
        found.append(("Cost", f"${all_.cost_usd:,.2f}", f"${repeats.cost_usd or 0:,.2f} for nothing new"))
    return found


def _section(name: str, title: str, content: Markup) -> Markup:
    return tag("section", tag("h2", title, id=f"{name}-title"), content, id=name, aria_labelledby=f"{name}-title")


def _paper_note(run: Timeline) -> Markup | None:
    if len(run.cells) <= CALLS_ON_PAPER:
        return None
    words = "On paper a run of this length has its map and its tables; on the screen each call has its cell."
    return tag("p", words, class_="on-paper")


def _footer(run: Timeline) -> Markup:
    shown = (
        f"Arguments, results and errors are shown where the events carried them, cut at {run.shown_characters:,}"
        " characters each."
        if run.shown_characters
        else "Arguments, results and errors were left out."
    )
    return tag(
        "footer",
        tag("p", f"{shown} Times are those of the log, in UTC. Judged with rules version {RULES_VERSION}."),
    )
