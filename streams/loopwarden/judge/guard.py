"""The post-compaction guard: a run that goes on with the loop it was in before its context was compacted is aborted.

Policy: `postCompactionGuard`. It has nothing to do with the window. (Reference, section 10.)
"""

from __future__ import annotations

from loopwarden.judge.findings import EVIDENCE, Ending
from loopwarden_schemas.structs import Compaction

DETECTOR = "compaction_loop_persisted"


class Guard:
    """Armed by a compaction, it observes the next outcomes; when all of them are the same, the run must end."""

    __slots__ = ("count", "event_ids", "observed", "remaining")

    def __init__(self) -> None:
        self.remaining = 0
        """Outcomes still to be observed; 0 while dormant."""
        self.count = 0
        """Outcomes observed since it was armed."""
        self.observed: tuple[str, str, str] | None = None
        """Tool, arguments and outcome of everything observed since it was armed."""
        self.event_ids: list[str] = []
        """Of the newest `finished` observed, oldest first."""

    def arm(self, compaction: Compaction, window_size: int) -> None:
        """Begin to observe, where the compaction succeeded and was automatic.

        OpenClaw's code leaves out `in_attempt`; we keep what its documentation promises (design.md, "Events").
        """
        if compaction.succeeded and compaction.trigger != "manual":
            self.remaining = window_size
            self.count = 0
            self.observed = None
            self.event_ids = []

    def observe(self, tool: str, args_hash: str, result: str, event_id: str) -> Ending | None:
        """See one outcome; the loop persisted, and the run ends, when every outcome since it was armed was this one."""
        if not self.remaining:
            return None
        outcome = (tool, args_hash, result)
        if self.observed is not None and self.observed != outcome:
            # As many equal outcomes are needed as are observed, so that one other outcome settles it.
            self.remaining = 0
            return None
        self.observed = outcome
        self.event_ids = [*self.event_ids[1 - EVIDENCE :], event_id]
        self.count += 1
        self.remaining -= 1
        return Ending(DETECTOR, self.count, self.count, self.event_ids) if self.remaining == 0 else None
