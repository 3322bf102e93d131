"""A run: the report's picture, tables and words, as they stand now."""

from __future__ import annotations

from loopwarden.report.markup import Markup, tag
from loopwarden.web.layout import document, notes
from loopwarden.web.parts import header


def run_page(run_id: str, drawn: str, trouble: str | None) -> str:
    """Return the page.

    Args:
        run_id: The run.
        drawn: The run as `body` of the report has it: HTML.
        trouble: Why the page does not follow; None: it does.
    """
    away = None if trouble is None else f"What is shown stands still: {trouble}"
    return document(f"Run {run_id}", "run", notes(away), Markup(drawn))


def no_run_page(run_id: str) -> str:
    """Return the page of a run of which the log holds nothing."""
    return document(
        f"Run {run_id}",
        "run",
        header(run_id, "The log holds nothing of this run (yet). Is the id right?"),
        tag("main"),
    )


def problem_page(error: str) -> str:
    """Return the page that says why there is none."""
    return document("Not shown", "", header("This cannot be shown now", error), tag("main"))
