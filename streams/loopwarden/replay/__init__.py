"""Logs folded again: the judge over many runs at once, without a broker."""

from __future__ import annotations

from loopwarden.replay.beginnings import WHY, Why
from loopwarden.replay.comparison import Changed, Comparison, RunDifference
from loopwarden.replay.course import RESOLVED, UNRESOLVED, Course, Spared, outcome_of
from loopwarden.replay.exported import Export, RunExported, VerdictRecorded, export_lines, recorded_of
from loopwarden.replay.fold_events import Folded, Folder, fold_events
from loopwarden.replay.log_part import LogPart
from loopwarden.replay.replayed import Replay
from loopwarden.replay.tuning import Candidate, Tally, candidates, choose, front, suspects, tallies
from loopwarden.replay.what_if import RunUnder, WhatIf, spared_more

__all__ = [
    "RESOLVED",
    "UNRESOLVED",
    "WHY",
    "Candidate",
    "Changed",
    "Comparison",
    "Course",
    "Export",
    "Folded",
    "Folder",
    "LogPart",
    "Replay",
    "RunDifference",
    "RunExported",
    "RunUnder",
    "Spared",
    "Tally",
    "VerdictRecorded",
    "WhatIf",
    "Why",
    "candidates",
    "choose",
    "export_lines",
    "fold_events",
    "front",
    "outcome_of",
    "recorded_of",
    "spared_more",
    "suspects",
    "tallies",
]
