"""The verdicts of one run as they stand: what is blocked, whether the run is over, which warnings were not shown yet.

Orders end with their run: when it finishes, is aborted, begins anew, or had no event for 24 hours.
(design.md, "Verdicts".)
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

from loopwarden.gateway import Receipt
from loopwarden_schemas.structs import Verdict

IDLE_S: Final = 24 * 3600.0
"""An event more than this after the run's newest one finds a fresh run."""

_MAX_CALLS: Final = 256
"""Calls whose end is remembered, to show a warning that came too late with the next result."""

_MAX_WARNINGS: Final = 64


class _Standing(NamedTuple):
    """A verdict, and the offset of the event that it is about."""

    verdict: Verdict
    cause: int


class _Boundary(NamedTuple):
    """An event that ended the run (`run.finished`), or begins it anew where it was aborted (`run.started`)."""

    receipt: Receipt
    is_end: bool


class Orders:
    """Of one run. It is changed under the guard's lock, and can be read without: what is read is replaced, or a dict.

    An end that was sent hides everything at once. Where it lies in the log is known later, and so whether a verdict is
    about an event before it; one that never reached the log ended nothing.

    Attributes:
        last: (`begun`, `n`) of the newest verdict seen.
    """

    def __init__(self) -> None:
        self.last = (-1, -1)
        self._abort: _Standing | None = None
        self._blocks: dict[tuple[str, str | None], _Standing] = {}
        self._warnings: list[_Standing] = []
        self._ended_calls: OrderedDict[str, None] = OrderedDict()
        self._on_the_way: list[_Boundary] = []
        self._ended_at = -1
        """Verdicts about events up to this offset are of no concern."""
        self._started_at = -1
        self._active_at = 0.0

    def apply(self, verdict: Verdict, cause_offset: int) -> bool:
        """Apply a verdict about the event at this offset; return whether it was new."""
        self.settle()
        at = (verdict.begun, verdict.n)
        if at <= self.last:
            return False
        if verdict.begun > self.last[0]:
            self._forget()
        self.last = at
        if cause_offset <= self._ended_at:
            return True
        standing = _Standing(verdict, cause_offset)
        if verdict.action == "abort":
            self._forget()
            self._abort = standing
            self._begin_anew()
        elif verdict.action == "warn":
            self._warnings = [*self._warnings[1 - _MAX_WARNINGS :], standing]
        elif verdict.action == "clear":
            if verdict.scope == "run":
                self._abort = None
            elif verdict.tool is not None:
                self._blocks.pop((verdict.tool, verdict.args_hash), None)
        elif verdict.phase == "order" and verdict.tool is not None:
            self._blocks[verdict.tool, verdict.args_hash] = standing
        return True

    @property
    def has_blocks(self) -> bool:
        """Whether anything is blocked, so that a call's arguments have to be hashed."""
        return bool(self._blocks) and not self._is_over

    @property
    def newest_cause(self) -> int | None:
        """The offset of the newest event that a block is about; None where nothing is blocked."""
        return max((each.cause for each in self._blocks.values()), default=None)

    @property
    def unsettled(self) -> bool:
        """Whether `settle` may have something to do."""
        return bool(self._on_the_way)

    def blocking(self, tool: str, args_hash: str) -> Verdict | None:
        """The order that covers a call, given by its normalised tool and its hash."""
        found = self._blocks.get((tool, None)) or self._blocks.get((tool, args_hash))
        return None if found is None or self._is_over else found.verdict

    def aborted(self) -> Verdict | None:
        """The verdict that ended the run, unless a `run.started` of ours has begun it anew since."""
        abort = self._abort
        return None if abort is None or self._on_the_way else abort.verdict

    def warning(self) -> Verdict | None:
        """The oldest warning that was not shown and came too late for its own call."""
        return next((each.verdict for each in self._shown if self._came_late(each.verdict)), None)

    def take_warnings(self, call_id: str) -> list[Verdict]:
        """The warnings to show with the result of this call, each only once: its own, and those that came too late."""
        self._ended_calls[call_id] = None
        if len(self._ended_calls) > _MAX_CALLS:
            self._ended_calls.popitem(last=False)
        taken = [each for each in self._shown if each.verdict.call_id == call_id or self._came_late(each.verdict)]
        self._warnings = [each for each in self._warnings if each not in taken]
        return [each.verdict for each in taken]

    def drop_warnings(self) -> None:
        """Show none of those that there are."""
        self._warnings = []

    def run_started(self, receipt: Receipt) -> None:
        """The run was said to begin: anew, where it was aborted."""
        self._on_the_way = [*self._on_the_way, _Boundary(receipt, is_end=False)]
        self.settle()

    def run_finished(self, receipt: Receipt) -> None:
        """The run is over: its orders are."""
        self._on_the_way = [*self._on_the_way, _Boundary(receipt, is_end=True)]
        self.settle()

    def ended(self, offset: int) -> None:
        """The run ended with the event at this offset: verdicts up to there are of no concern."""
        self._ended_at = max(self._ended_at, offset)
        self._blocks = {key: each for key, each in self._blocks.items() if each.cause > offset}
        self._warnings = [each for each in self._warnings if each.cause > offset]
        if self._abort is not None and self._abort.cause <= offset:
            self._abort = None

    def settle(self) -> None:
        """Take in where the boundaries lie that the broker has acknowledged since."""
        if not self._on_the_way:
            return
        still = []
        for each in self._on_the_way:
            receipt = each.receipt
            if not receipt.done:
                still.append(each)
            elif receipt.offset is not None:
                if each.is_end:
                    self.ended(receipt.offset)
                else:
                    self._started_at = max(self._started_at, receipt.offset)
                    self._begin_anew()
            elif receipt.error is None and (each.is_end or self._abort is not None):
                self._forget()  # it is in the log, the broker did not say where: behind all that was judged by then
        self._on_the_way = still

    def active(self, now: float) -> None:
        """Something of the run happens now (seconds): after a day without anything, it is a fresh run."""
        if self._active_at and now - self._active_at > IDLE_S:
            self._forget()
        self._active_at = now

    def read_again(self) -> None:
        """All verdicts will be applied again, from the run's first one on."""
        self._forget()
        self.last = (-1, -1)

    @property
    def _is_over(self) -> bool:
        return any(each.is_end for each in self._on_the_way)

    @property
    def _shown(self) -> list[_Standing]:
        return [] if self._is_over else self._warnings

    def _begin_anew(self) -> None:
        if self._abort is not None and self._abort.cause < self._started_at:
            self.ended(self._started_at)

    def _came_late(self, warning: Verdict) -> bool:
        return warning.call_id is None or warning.call_id in self._ended_calls

    def _forget(self) -> None:
        self._abort = None
        self._blocks = {}
        self._warnings = []
