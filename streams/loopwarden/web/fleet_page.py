"""The fleet: how many runs, how many verdicts a minute, and which runs are worst."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from loopwarden.report.markup import Markup, tag
from loopwarden.report.words import clock, plural
from loopwarden.web.layout import document, notes
from loopwarden.web.parts import facts, header, runs_table, section
from loopwarden.web.summary import Summary

_HEIGHT: Final = 60
_ACTIONS: Final = ("abort", "block", "warn", "clear")


@dataclass(frozen=True)
class Source:
    """How the reading goes.

    Attributes:
        topics: What is read, in words.
        look_back: How far before the start, in words.
        caught_up: Whether all of that was read.
        trouble: Why nothing is read just now; None: all is well.
    """

    topics: str
    look_back: str
    caught_up: bool
    trouble: str | None

    def notes(self) -> Markup | None:
        """Return what the reader has to know about it."""
        reading = None if self.caught_up or self.trouble else "Still reading what was there before: the numbers grow."
        away = None if self.trouble is None else f"What is shown stands still: {self.trouble}"
        return notes(away, reading)


def fleet_page(summary: Summary, source: Source) -> str:
    """Return the page."""
    verdicts = [sum(counts.values()) for _, counts in summary.verdicts]
    hour = {action: sum(counts[action] for _, counts in summary.verdicts) for action in _ACTIONS}
    in_words = [
        plural(hour[action], noun)
        for action, noun in (("warn", "warning"), ("block", "block"), ("abort", "abort"))
        if hour[action]
    ]
    shown = facts(
        ("Runs watched", f"{summary.live:,}", f"{summary.active:,} heard of in the last 5 minutes"),
        ("Verdicts a minute", f"{verdicts[-2]:,}", f"{verdicts[-1]:,} so far in this one"),
        ("Verdicts in an hour", f"{sum(verdicts):,}", ", ".join(in_words) or None),
        ("Events a minute", f"{summary.events[-2]:,}", f"{summary.events[-1]:,} so far in this one"),
        ("Refused", f"{summary.refused:,}", "calls that runners refused"),
        ("Disobeyed", f"{summary.disobeyed:,}", "calls made although blocked"),
    )
    worst = (
        runs_table("The worst runs of the last hour", summary.worst)
        if summary.worst
        else tag("p", "No run of the last hour repeats itself.")
    )
    unreadable = f"{plural(summary.unreadable, 'record')} could not be read." if summary.unreadable else None
    forgotten = (
        f"{plural(summary.forgotten, 'run')} not heard of for longest were forgotten here: their pages still read them"
        " from the log."
        if summary.forgotten
        else None
    )
    return document(
        "Fleet",
        "fleet",
        header("Fleet", None, source.notes()),
        tag(
            "main",
            shown,
            section("Verdicts, minute by minute", _chart(summary)),
            section("Worst runs", worst),
            tag(
                "footer",
                tag(
                    "p",
                    f"Counted from {source.topics}, {source.look_back}. Times are UTC. ",
                    *(f"{each} " for each in (unreadable, forgotten) if each),
                ),
            ),
        ),
    )


def _chart(summary: Summary) -> Markup:
    most = max(4, *(sum(counts.values()) for _, counts in summary.verdicts))
    bars: list[Markup] = []
    for place, (at, counts) in enumerate(summary.verdicts):
        y = float(_HEIGHT)
        for action in _ACTIONS:
            height = _HEIGHT * counts[action] / most
            y -= height
            if height:
                said = f"{clock(at)[11:16]}: {counts[action]} {action}"
                bars.append(
                    tag(
                        "rect",
                        tag("title", said),
                        class_=action,
                        x=place + 0.1,
                        y=f"{y:.2f}",
                        width=0.8,
                        height=f"{height:.2f}",
                    )
                )
    totals = [sum(counts.values()) for _, counts in summary.verdicts]
    total = sum(totals)
    words = (
        f"{plural(total, 'verdict')} in the last 60 minutes, at most {max(totals):,} a minute"
        if total
        else "No verdicts in the last hour"
    )
    first, last = clock(summary.verdicts[0][0])[11:16], clock(summary.verdicts[-1][0])[11:16]
    legend = [
        tag("li", tag("span", class_=f"swatch {action}"), f" {noun}")
        for action, noun in (("warn", "warning"), ("block", "block"), ("abort", "abort"), ("clear", "block lifted"))
    ]
    return tag(
        "figure",
        tag(
            "svg",
            tag("title", words),
            *bars,
            viewBox=f"0 0 {len(summary.verdicts)} {_HEIGHT}",
            preserveAspectRatio="none",
            role="img",
            class_="minutes",
        ),
        tag("p", tag("span", first), tag("span", words, class_="about"), tag("span", last), class_="axis"),
        tag("ul", *legend, class_="legend"),
        class_="picture",
    )
