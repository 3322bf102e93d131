"""Logs folded again: the judge over many runs at once, without a broker."""

from __future__ import annotations

from loopwarden.replay.beginnings import WHY, Why
from loopwarden.replay.comparison import Changed, Comparison, RunDifference
from loopwarden.replay.exported import Export, RunExported, VerdictRecorded, export_lines, recorded_of
from loopwarden.replay.fold_events import Folded, Folder, fold_events
from loopwarden.replay.log_part import LogPart
from loopwarden.replay.replayed import Replay

__all__ = [
    "WHY",
    "Changed",
    "Comparison",
    "Export",
    "Folded",
    "Folder",
    "LogPart",
    "Replay",
    "RunDifference",
    "RunExported",
    "VerdictRecorded",
    "Why",
    "export_lines",
    "fold_events",
    "recorded_of",
]
