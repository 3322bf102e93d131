"""Whether the runner obeys: verdicts are followed through, and a run that ignores its blocks can be ended.

Policy: `tools.loopwarden.abortAfterBlocks`. A block alone is known not to stop models that keep asking.
"""

from __future__ import annotations

from typing import Final

from loopwarden.judge.findings import EVIDENCE

DETECTOR: Final = "block_ignored"

MAX_OPEN: Final = 64
"""Blocked calls that were started and may still turn out refused, remembered per run; the oldest goes first."""


class Enforcement:
    """What became of the verdicts of a run."""

    __slots__ = ("delivered", "disobeyed", "event_ids", "ignored", "obeyed", "open")

    def __init__(self) -> None:
        self.delivered = 0
        """Events that named the verdict which the runner applied."""
        self.obeyed = 0
        """`tool_call.blocked` events: calls that the runner did not execute."""
        self.disobeyed = 0
        """Blocked calls that started or finished all the same."""
        self.ignored = 0
        """Attempts of blocked calls, refused or disobeyed, since the last allowed call."""
        self.event_ids: list[str] = []
        """Of the newest of those attempts, oldest first."""
        self.open: dict[int, None] = {}
        """Ids of blocked calls that started: a `blocked` may still say that they were refused."""

    def attempted(self, call_id: int | None, event_id: str) -> None:
        """A blocked call started, or finished, all the same."""
        self.disobeyed += 1
        self._ignore(event_id)
        if call_id is not None:
            self.open[call_id] = None
            if len(self.open) > MAX_OPEN:
                del self.open[next(iter(self.open))]

    def refused(self, call_id: int | None, event_id: str) -> None:
        """The runner did not execute a call; one that it had announced counts once."""
        self.obeyed += 1
        if call_id is not None and call_id in self.open:
            del self.open[call_id]
            self.disobeyed -= 1
        else:
            self._ignore(event_id)

    def allowed(self) -> None:
        """A call was allowed: attempts of blocked ones are counted anew."""
        if self.ignored:
            self.ignored = 0
            self.event_ids = []

    def _ignore(self, event_id: str) -> None:
        self.ignored += 1
        self.event_ids = [*self.event_ids[1 - EVIDENCE :], event_id]
