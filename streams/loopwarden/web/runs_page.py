"""All runs that are watched, a hundred at a time."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlencode

from loopwarden.report.markup import Markup, tag
from loopwarden.report.words import plural
from loopwarden.web.asking import RunsAsked
from loopwarden.web.bodies import Runs
from loopwarden.web.fleet_page import Source
from loopwarden.web.layout import document
from loopwarden.web.parts import choice, form, header, runs_table, text

_STATUSES = {"": "any", "live": "live", "aborted": "aborted", "finished": "finished", "idle": "idle"}
_ORDERS = {"worst": "worst first", "newest": "newest first", "calls": "most calls first"}


def runs_page(asked: RunsAsked, found: Runs, source: Source) -> str:
    """Return the page."""
    shown = f"{asked.start + 1:,} to {asked.start + len(found.runs):,} of " if found.found > len(found.runs) else ""
    none = tag("p", "No run is watched that fits." if asked != RunsAsked() else "No run is watched yet.")
    return document(
        "Runs",
        "runs",
        header("Runs", None, source.notes()),
        tag(
            "main",
            tag(
                "section",
                form(
                    "/runs",
                    text("text", "Run or agent", asked.text),
                    choice("status", "Status", _STATUSES, asked.status),
                    choice("order", "Order", _ORDERS, asked.order),
                ),
                tag("p", tag("small", f"{shown}{plural(found.found, 'run')}, {source.look_back}")),
                runs_table("Runs", found.runs) if found.runs else none,
                _pages(asked, found),
            ),
        ),
    )


def _pages(asked: RunsAsked, found: Runs) -> Markup | None:
    links = []
    if asked.start:
        links.append(_link(replace(asked, start=max(0, asked.start - asked.limit)), "Back"))
    if asked.start + len(found.runs) < found.found:
        links.append(_link(replace(asked, start=asked.start + asked.limit), "Next"))
    return tag("p", *links, class_="filters") if links else None


def _link(asked: RunsAsked, words: str) -> Markup:
    given = {"text": asked.text, "status": asked.status, "order": asked.order, "start": asked.start}
    return tag("a", words, href=f"/runs?{urlencode(given)}")
