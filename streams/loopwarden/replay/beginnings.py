"""Which runs of a partition are seen from their beginning: only those can be judged again. (design.md, "Guarantees".)

A log that is not read from its very beginning may lack the first events of a run. Nothing is guessed then: the run is
not compared, and named.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from loopwarden.judge.run_state import IDLE_MS
from loopwarden_schemas.structs import EventOfRun, RunStarted

Why: TypeAlias = Literal["truncated", "policy_unknown", "other_rules", "cut_short"]
"""Why a run is not compared: its beginning is not in what was read; nor is the policy it began under; its verdicts were
published under other rules; the file it was exported to lacks some of its events."""

WHY: Final[dict[Why, str]] = {
    "truncated": "began before what is read of the log",
    "policy_unknown": "began under a policy of which the log does not tell any more when it was applied",
    "other_rules": "have verdicts of another rules version",
    "cut_short": "lost events in the file: it says itself that there were more",
}


class Beginnings:
    """What is known of how the runs of one partition began. Told of each event, in order.

    A run is seen whole where the log is read from its very beginning; where its first event comes so long after the
    first record read that it finds a fresh run whatever came before; or where that event is `run.started`, unless a
    verdict says that it began earlier.

    Attributes:
        begun: Append time (ms) of the first event of each run.
        not_whole: The runs that are not seen whole, and why.
    """

    def __init__(self, whole_log: bool) -> None:
        """`whole_log`: offset 0 is read."""
        self.begun: dict[str, int] = {}
        self.not_whole: dict[str, Why] = {}
        self.policy_known = True
        """To be set to False where nobody knows which policy is in force, until one is seen to be applied."""
        self._by_their_word: set[str] = set()
        self._awaited: dict[str, int] = {}
        self._certain_after: int | None = -1 if whole_log else None

    def start(self, append_time: int) -> None:
        """Take the append time of the first record that is read, whatever it holds."""
        if self._certain_after is None:
            self._certain_after = append_time + IDLE_MS

    def see(self, event: EventOfRun) -> None:
        """Take an event that the judge took. Only a run's first one matters."""
        if event.run_id in self.begun:
            return
        self.begun[event.run_id] = event.append_time
        if self._certain_after is None or event.append_time <= self._certain_after:
            if type(event) is RunStarted:
                self._by_their_word.add(event.run_id)
            else:
                self.not_whole[event.run_id] = "truncated"
                return
        if not self.policy_known:
            self.not_whole[event.run_id] = "policy_unknown"

    def expect(self, run_id: str, events: int) -> None:
        """Take that a file says it holds so many events of a run: until they all came it is not seen whole."""
        self._awaited[run_id] = self._awaited.get(run_id, 0) + events
        if self._awaited[run_id] > 0:
            self.not_whole.setdefault(run_id, "cut_short")

    def came(self, run_id: str) -> None:
        """Take that an event of a run came from a file, whether or not the judge takes it."""
        if run_id in self._awaited:
            self._awaited[run_id] -= 1
            if not self._awaited[run_id] and self.not_whole.get(run_id) == "cut_short":
                del self.not_whole[run_id]

    def see_recorded(self, run_id: str, begun: int) -> None:
        """Take the append time at which a run began by a verdict that was published, once all events are seen."""
        if run_id in self._by_their_word and begun < self.begun[run_id]:
            self.not_whole[run_id] = "truncated"

    def may_count_on(self, run_id: str) -> bool:
        """Whether a run's verdicts may have a higher number than here: its `run.started` may not be its first one."""
        return run_id in self._by_their_word
