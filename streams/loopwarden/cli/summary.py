"""What became of the runs of a log, counted."""

from __future__ import annotations

from loopwarden.cli.terminal import plural
from loopwarden.replay import Folded
from loopwarden_schemas.structs import PolicyApplied, ToolCallBlocked, ToolCallFinished, ToolCallStarted


class Summary:
    """Counts over the events of a log as they are folded."""

    def __init__(self) -> None:
        self.warned = self.blocked = self.aborted = self.refused = 0
        self._calls: dict[str, list[int]] = {}
        self._detectors_off: set[str] = set()
        self._guard_off: set[str] = set()

    def add(self, folded: Folded) -> None:
        """Count one event."""
        event = folded.event
        if isinstance(event, PolicyApplied) or folded.rejected is not None:
            return
        started_and_finished = self._calls.setdefault(event.run_id, [0, 0])
        if isinstance(event, ToolCallStarted):
            started_and_finished[0] += 1
        elif isinstance(event, ToolCallFinished):
            started_and_finished[1] += 1
        elif isinstance(event, ToolCallBlocked):
            self.refused += 1
        if not folded.detectors_on:
            self._detectors_off.add(event.run_id)
        if not folded.guard_on:
            self._guard_off.add(event.run_id)
        for decision in folded.decisions:
            self.warned += decision.action == "warn"
            self.blocked += decision.action == "block"
        # A person may have ended a run, about which nothing was decided.
        self.aborted += sum(verdict.action == "abort" for verdict in folded.verdicts)

    def text(self) -> str:
        """Return the counts in a sentence."""
        # A log may hold only the `finished` of its calls.
        calls = sum(max(counts) for counts in self._calls.values())
        refused = f" ({self.refused:,} refused by the runner)" if self.refused else ""
        return (
            f"{plural(len(self._calls), 'run')}, {plural(calls, 'call')}{refused}: "
            f"{self.warned:,} warned about, {self.blocked:,} blocked; {plural(self.aborted, 'run')} aborted"
        )

    def switched_off(self) -> str | None:
        """Return a sentence where detectors were off, and how to turn them on."""
        off, runs = len(self._detectors_off), len(self._calls)
        if not off:
            return None
        which = "" if off == runs else f" for {off:,} of {plural(runs, 'run')}"
        guard = "nothing" if self._guard_off >= self._detectors_off else "only the post-compaction guard"
        return (
            f"the detectors were off{which}: {guard} watched. To turn them on, give a policy with "
            "{ tools: { loopDetection: { enabled: true } } }: --policy FILE, or --policy recommended"
        )
