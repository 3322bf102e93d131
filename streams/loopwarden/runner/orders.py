"""The verdicts of one run as they stand: what is blocked, whether the run is over, which warnings were not shown yet.

Orders end with their run: when it finishes, is aborted, begins anew, or had no event for 24 hours.
(design.md, "Verdicts".)
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from loopwarden.gateway import Receipt
from loopwarden_schemas.structs import Verdict

IDLE_S: Final = 24 * 3600.0
"""An event more than this after the run's newest one finds a fresh run."""

_MAX_CALLS: Final = 256
"""Calls whose end is remembered, to show a warning that came too late with the next result."""

_MAX_WARNINGS: Final = 64


class Orders:
    """Of one run. It is changed under the guard's lock, and can be read without: what is read is replaced, or a dict.

    Attributes:
        abort: The verdict that ended the run.
        last: (`begun`, `n`) of the newest verdict seen.
    """

    def __init__(self) -> None:
        self.abort: Verdict | None = None
        self.last = (-1, -1)
        self._abort_offset = -1
        self._blocks: dict[tuple[str, str | None], Verdict] = {}
        self._warnings: list[Verdict] = []
        self._ended_calls: OrderedDict[str, None] = OrderedDict()
        self._started: Receipt | None = None
        self._boundary: Receipt | None = None
        """The event that ended the run, or began it anew: verdicts about events before it are of no concern."""
        self._active_at = 0.0

    def apply(self, verdict: Verdict, cause_offset: int) -> bool:
        """Apply a verdict about the event at this offset; return whether it was new."""
        at = (verdict.begun, verdict.n)
        if at <= self.last:
            return False
        if verdict.begun > self.last[0]:
            self._forget()
        self.last = at
        boundary = self._boundary
        if boundary is not None and (boundary.offset is None or cause_offset <= boundary.offset):
            return True
        if verdict.action == "abort":
            self._forget()
            self.abort, self._abort_offset = verdict, cause_offset
        elif verdict.action == "warn":
            self._warnings = [*self._warnings[1 - _MAX_WARNINGS :], verdict]
        elif verdict.action == "clear":
            if verdict.scope == "run":
                self.abort = None
            elif verdict.tool is not None:
                self._blocks.pop((verdict.tool, verdict.args_hash), None)
        elif verdict.phase == "order" and verdict.tool is not None:
            self._blocks[verdict.tool, verdict.args_hash] = verdict
        return True

    @property
    def has_blocks(self) -> bool:
        """Whether anything is blocked, so that a call's arguments have to be hashed."""
        return bool(self._blocks)

    def blocking(self, tool: str, args_hash: str) -> Verdict | None:
        """The order that covers a call, given by its normalised tool and its hash."""
        return self._blocks.get((tool, None)) or self._blocks.get((tool, args_hash))

    def aborted(self) -> Verdict | None:
        """The verdict that ended the run, unless a `run.started` of ours has begun it anew since."""
        started = self._started
        if self.abort is not None and started is not None and (started.offset or -1) > self._abort_offset:
            self._forget()
            self._boundary = started
        return self.abort

    def warning(self) -> Verdict | None:
        """The oldest warning that was not shown and came too late for its own call."""
        return next((each for each in self._warnings if self._came_late(each)), None)

    def take_warnings(self, call_id: str) -> list[Verdict]:
        """The warnings to show with the result of this call, each only once: its own, and those that came too late."""
        self._ended_calls[call_id] = None
        if len(self._ended_calls) > _MAX_CALLS:
            self._ended_calls.popitem(last=False)
        taken = [each for each in self._warnings if each.call_id == call_id or self._came_late(each)]
        self._warnings = [each for each in self._warnings if each not in taken]
        return taken

    def drop_warnings(self) -> None:
        """Show none of those that there are."""
        self._warnings = []

    def run_started(self, receipt: Receipt) -> None:
        """The run was said to begin: anew, where it was over."""
        self._started = receipt
        if self.abort is not None or self._boundary is not None:
            self._forget()
            self._boundary = receipt

    def run_finished(self, receipt: Receipt) -> None:
        """The run is over: its orders are."""
        self._forget()
        self._boundary = receipt

    def active(self, now: float) -> None:
        """Something of the run happens now (seconds): after a day without anything, it is a fresh run."""
        if self._active_at and now - self._active_at > IDLE_S:
            self._forget()
        self._active_at = now

    def read_again(self) -> None:
        """All verdicts will be applied again, from the run's first one on."""
        self._forget()
        self.last = (-1, -1)

    def _came_late(self, warning: Verdict) -> bool:
        return warning.call_id is None or warning.call_id in self._ended_calls

    def _forget(self) -> None:
        self.abort, self._abort_offset = None, -1
        self._blocks = {}
        self._warnings = []
