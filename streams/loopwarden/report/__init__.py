"""A run as a picture: every call a cell, the verdicts along it, who obeyed. As HTML, Markdown or JSON.

`timeline` folds a run's events into a `Timeline`; `TimelineBuilder` does it while they come.
"""

from __future__ import annotations

from loopwarden.report.model import Timeline
from loopwarden.report.timeline import TimelineBuilder, timeline

__all__ = ["Timeline", "TimelineBuilder", "timeline"]
