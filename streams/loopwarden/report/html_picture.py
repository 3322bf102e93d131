"""The run as a picture: a cell for each call, coloured by signature and marked by outcome. (HTML and SVG.)

Each cell is a list item whose text says all of it, for screen readers and, when pointed at, for everybody; everything
that is seen comes from its classes (report.css). Cells are in tens, so that they can be counted, and tens in chunks,
which a browser lays out only when they come into view.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from loopwarden.report.markup import Markup, escape, join, tag
from loopwarden.report.model import Cell, Mark, Timeline
from loopwarden.report.words import OUTCOMES, calls_in_words, plural

COLOURS: Final = 7
PATTERNS: Final = 3
"""So many signatures that are called more than once look different; then they begin again, with other letters."""

_TEN: Final = 10
_CHUNK: Final = 200
_SMALL_FROM: Final = 400
"""From so many calls on, cells are smaller and a map of the whole stands above them."""

_BUCKETS: Final = 200
_MAP_HEIGHT: Final = 40
_ONCE: Final = -1
"""All signatures that are called once, in the map."""

_LEGEND: Final = 12
_GRAVITY: Final = ("abort", "block", "warn", "clear")
_MARKS: Final = {
    "run": "▶",
    "again": "↻",
    "end": "■",
    "compaction": "⇊",
    "override": "◆",
    "unjudged": "¦",
    "rejected": "?",
}


def picture(run: Timeline) -> Markup:
    """Return the figure, with its legend."""
    if not run.cells:
        return tag("p", "The run has no calls.")
    small = len(run.cells) >= _SMALL_FROM
    scale, lines = _scale(run)
    return tag(
        "figure",
        tag("figcaption", _caption(run)),
        _legend(run),
        _map(run) if small else None,
        tag("div", *_chunks(run, scale), class_=f"cells{' small' if small else ''}", style=lines),
        class_="picture",
    )


def chip(run: Timeline, signature: int) -> Markup:
    """Return the coloured letter of a signature."""
    found = run.signatures[signature]
    return tag("span", found.letter, class_=f"chip {_colour(found.colour)}")


def link_to(run: Timeline, call: int, text: str) -> Markup:
    """Return a link to the ten cells in which a call is; of one that is still to come, to the last ones."""
    if not run.cells:
        return escape(text)
    place = min(call, len(run.cells)) - 1
    return tag("a", text, href=f"#calls-{place // _TEN * _TEN + 1}")


def _colour(colour: int) -> str:
    if not colour:
        return "k0"
    pattern = (colour - 1) // COLOURS % PATTERNS
    return f"k{(colour - 1) % COLOURS + 1}{f' p{pattern}' if pattern else ''}"


def _scale(run: Timeline) -> tuple[int, str | None]:
    """The streak at which a bar is full, and where the lines of the thresholds are."""
    longest = max(cell.streak for cell in run.cells)
    policies = [policy.table for policy in run.policies if policy.detectors_on]
    if not policies:
        return max(longest, 10), None
    warning, critical = policies[0]["warningThreshold"], policies[0]["criticalThreshold"]
    scale = max(longest, critical)
    return scale, f"--warn:{warning / scale:.3f};--block:{critical / scale:.3f}"


def _caption(run: Timeline) -> Markup:
    words = (
        f"Every call in order, {calls_in_words(1, len(run.cells))}: {plural(len(run.signatures), 'signature')}"
        " (tool and arguments), each with its colour and letter. "
    )
    bars = "The bar above a call: identical outcomes of its signature in a row"
    watching = [policy.table for policy in run.policies if policy.detectors_on]
    if not watching:
        return join([words, bars, "."])
    window = f" among the newest {watching[0]['historySize']} calls (the window)"
    return join([words, bars, window, ", with lines where a warning and a block are due."])


def _legend(run: Timeline) -> Markup:
    often = sorted((s for s in range(len(run.signatures)) if run.signatures[s].colour), key=lambda s: _by_calls(run, s))
    items = [
        tag("li", chip(run, each), f" {run.signatures[each].tool} ", tag("small", f"x{run.signatures[each].calls:,}"))
        for each in often[:_LEGEND]
    ]
    if len(often) > _LEGEND:
        items.append(tag("li", tag("small", f"and {len(often) - _LEGEND:,} more called twice or more")))
    once = len(run.signatures) - len(often)
    if once:
        items.append(tag("li", tag("span", "…", class_="chip k0"), " called once ", tag("small", f"x{once:,}")))
    return tag(
        "div",
        tag("ul", *items, class_="legend", aria_label="Signatures"),
        tag("ul", *_outcome_legend(run), class_="legend", aria_label="Marks"),
    )


def _by_calls(run: Timeline, signature: int) -> tuple[int, int]:
    return -run.signatures[signature].calls, signature


def _outcome_legend(run: Timeline) -> Iterator[Markup]:
    looks = Counter(_look(cell) for cell in run.cells)
    words = {
        "new": "new result",
        "same": "same result as before",
        "error": "error",
        "error same": "same error as before",
        "void": "nothing returned",
        "pending": "no outcome",
        "blocked": "refused by the runner",
    }
    for look, text in words.items():
        if looks[look]:
            yield tag("li", tag("span", "A", class_=f"chip k5 {look}", aria_hidden="true"), f" {text}")
    if any(cell.obeyed is False for cell in run.cells):
        yield tag("li", tag("span", "A", class_="chip k5 against", aria_hidden="true"), " made although blocked")
    if any(not cell.judged for cell in run.cells):
        yield tag("li", tag("span", "A", class_="chip k5 late", aria_hidden="true"), " after the run was over")
    actions = {verdict.action for verdict in run.verdicts}
    for action, text in (("warn", "warning"), ("block", "block"), ("abort", "abort"), ("clear", "block lifted")):
        if action in actions:
            yield tag("li", tag("span", class_=f"glyph {action}", aria_hidden="true"), f" {text}")
    for kind in dict.fromkeys(mark.kind for mark in run.marks):
        yield tag("li", tag("span", _MARKS[kind], class_="bookmark", aria_hidden="true"), f" {_mark_name(kind)}")


def _mark_name(kind: str) -> str:
    return {
        "run": "run started",
        "again": "began anew",
        "end": "run finished",
        "compaction": "context compacted",
        "override": "a person decided",
        "unjudged": "over: not judged from here on",
        "rejected": "event that could not be judged",
    }[kind]


def _chunks(run: Timeline, scale: int) -> Iterator[Markup]:
    marks = iter([*run.marks, None])
    mark = next(marks)
    chunk: list[Markup] = []
    for start in range(0, len(run.cells), _TEN):
        items = []
        for number, cell in enumerate(run.cells[start : start + _TEN], start + 1):
            while mark is not None and mark.before_call <= number:
                items.append(_mark(mark))
                mark = next(marks)
            items.append(_cell(run, number, cell, scale))
        while mark is not None and start + _TEN >= len(run.cells):
            items.append(_mark(mark))
            mark = next(marks)
        named = f"From call {start + 1:,}"
        chunk.append(tag("ol", *items, id=f"calls-{start + 1}", data_n=start + 1, role="list", aria_label=named))
        if len(chunk) * _TEN == _CHUNK or start + _TEN >= len(run.cells):
            yield tag("div", *chunk, class_="chunk")
            chunk = []


def _cell(run: Timeline, number: int, cell: Cell, scale: int) -> Markup:
    signature = run.signatures[cell.signature]
    classes = [_colour(signature.colour), _look(cell), f"h{_height(cell.streak, scale)}"]
    actions = {run.verdicts[place].action for place in cell.verdicts}
    gravest = next((action for action in _GRAVITY if action in actions), None)
    if gravest is not None:
        classes.append(gravest)
    if cell.obeyed is False:
        classes.append("against")
    if not cell.judged:
        classes.append("late")
    text = cell_in_words(run, number, cell)
    return tag("li", tag("span", text), class_=" ".join(classes), data_s=signature.letter)


def cell_in_words(run: Timeline, number: int, cell: Cell) -> str:
    """Return all that a cell shows."""
    signature = run.signatures[cell.signature]
    told = [f"Call {number:,}: {signature.letter} {signature.tool}", _outcome(cell)]
    if cell.obeyed is False:
        told.append("made although blocked")
    if cell.decision in ("warn", "block") and cell.detector is not None:
        told.append(f"decided {cell.decision}: {cell.detector} {cell.count}")
    issued = [f"{run.verdicts[place].action} {run.verdicts[place].phase}" for place in cell.verdicts]
    if issued:
        told.append(f"verdicts: {', '.join(issued)}")
    if not cell.judged:
        told.append("after the run was over")
    elif cell.streak:
        told.append(f"streak {cell.streak}, {cell.in_window} of {cell.window} in the window")
    return "; ".join(told)


def _outcome(cell: Cell) -> str:
    if cell.repeats:
        return f"same {OUTCOMES[cell.outcome]} as before"
    return f"new {OUTCOMES[cell.outcome]}" if cell.result is not None else OUTCOMES[cell.outcome]


def _look(cell: Cell) -> str:
    if cell.outcome == "result":
        return "same" if cell.repeats else "new"
    return f"{cell.outcome}{' same' if cell.repeats else ''}"


def _height(streak: int, scale: int) -> int:
    return min(20, round(20 * streak / scale))


def _mark(mark: Mark) -> Markup:
    return tag("li", tag("span", mark.text), class_="mark", data_s=_MARKS[mark.kind])


def _map(run: Timeline) -> Markup:
    """The whole run in one strip: how much of each part is which signature."""
    calls = len(run.cells)
    size = -(-calls // _BUCKETS)
    width = -(-calls // size)
    parts = [part for bucket in range(width) for part in _column(run, bucket, run.cells[bucket * size :][:size])]
    words = f"The whole run, {plural(size, 'call')} a column: signatures by their share, refused calls, verdicts."
    return tag(
        "div",
        tag(
            "svg",
            tag("title", words),
            *parts,
            viewBox=f"0 0 {width} {_MAP_HEIGHT + 16}",
            preserveAspectRatio="none",
            role="img",
            class_="map",
        ),
        tag("p", tag("span", "call 1"), tag("span", words, class_="about"), tag("span", f"{calls:,}"), class_="axis"),
    )


def _column(run: Timeline, bucket: int, cells: Sequence[Cell]) -> Iterator[Markup]:
    """One column of the map: the signatures from the top by their share, the refused calls and the verdicts beneath."""
    shares = Counter(cell.signature if run.signatures[cell.signature].colour else _ONCE for cell in cells)
    y = 0.0
    for signature, count in sorted(shares.items(), key=lambda share: (-share[1], share[0])):
        height = _MAP_HEIGHT * count / len(cells)
        yield _rect(_colour(0 if signature == _ONCE else run.signatures[signature].colour), bucket, y, height)
        y += height
    refused = sum(cell.outcome == "blocked" for cell in cells) / len(cells)
    if refused:
        yield _rect("refused", bucket, _MAP_HEIGHT + 2, 6 * refused)
    actions = {run.verdicts[place].action for cell in cells for place in cell.verdicts}
    gravest = next((action for action in _GRAVITY[:3] if action in actions), None)
    if gravest is not None:
        yield _rect(gravest, bucket, _MAP_HEIGHT + 10, 6)


def _rect(class_: str, bucket: int, y: float, height: float) -> Markup:
    # A little wider than its column, so that no gaps show between them.
    return tag("rect", class_=class_, x=bucket, y=f"{y:.2f}", width=1.02, height=f"{height:.2f}")
