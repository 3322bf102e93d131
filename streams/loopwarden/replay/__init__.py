"""Logs folded again: the judge over many runs at once, without a broker."""

from __future__ import annotations

from loopwarden.replay.fold_events import Folded, Folder, fold_events

__all__ = ["Folded", "Folder", "fold_events"]
