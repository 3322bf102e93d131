"""A run told event by event, under a policy whose thresholds are soon reached, for stories about the judge."""

from __future__ import annotations

from typing import Any

from loopwarden.judge import RunState, freeze, judge, thaw
from loopwarden.testing import run as told
from loopwarden_schemas.codec import event_from_value
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.structs import PolicyApplied, Rejected, Verdict

MINUTE = 60_000
STRICT = {
    "enabled": True,
    "warningThreshold": 2,
    "criticalThreshold": 3,
    "unknownToolThreshold": 2,
    # With such a low threshold any two calls would alternate.
    "detectors": {"pingPong": False},
}


class StrictRun:
    """Run `r`, warned about at the second repetition and blocked at the fourth; a second passes between two events.

    Between two events the state is only its record, as a worker may keep it.
    """

    def __init__(self, abort_after_blocks: int | None = None) -> None:
        own = {} if abort_after_blocks is None else {"loopwarden": {"abortAfterBlocks": abort_after_blocks}}
        self.policy = PolicyDocument.from_value({"tools": {"loopDetection": STRICT, **own}})
        self.told = told("r")
        self._record: bytes | None = None

    @property
    def now(self) -> int:
        return self.told.now

    @now.setter
    def now(self, now: int) -> None:
        self.told.now = now

    @property
    def state(self) -> RunState:
        assert self._record is not None
        return thaw(self._record)

    def tell(self, kind: str, **fields: Any) -> list[Verdict]:
        """Judge one event and return its verdicts."""
        event = event_from_value(self.told.event(kind, **fields).events[-1])
        assert not isinstance(event, (Rejected, PolicyApplied)), event
        judged = judge(None if self._record is None else thaw(self._record), event, self.policy)
        self._record = freeze(judged.state)
        return judged.verdicts

    def start(self, call_id: str, tool: str = "read", **fields: Any) -> list[Verdict]:
        return self.tell("tool_call.started", call_id=call_id, tool=tool, args={"path": "x"}, **fields)

    def refuse(self, call_id: str, tool: str = "read", **fields: Any) -> list[Verdict]:
        return self.tell("tool_call.blocked", call_id=call_id, tool=tool, args={"path": "x"}, **fields)

    def finish(self, call_id: str, tool: str = "read", result: Any = "same", **fields: Any) -> list[Verdict]:
        return self.tell("tool_call.finished", call_id=call_id, tool=tool, args={"path": "x"}, result=result, **fields)

    def override(self, action: str, **fields: Any) -> list[Verdict]:
        return self.tell("operator.override", action=action, by="ada", why="because", **fields)

    def loop(self, tool: str = "read", times: int = 3) -> list[Verdict]:
        """Make the same call again and again; return the verdicts of the last outcome."""
        verdicts: list[Verdict] = []
        for number in range(times):
            call_id = f"{tool}-{len(self.told.events)}-{number}"
            self.start(call_id, tool)
            verdicts = self.finish(call_id, tool)
        return verdicts


def said(verdicts: list[Verdict]) -> list[tuple[str, str, str]]:
    """Return action, phase and reason of each verdict."""
    return [(verdict.action, verdict.phase, verdict.reason) for verdict in verdicts]
