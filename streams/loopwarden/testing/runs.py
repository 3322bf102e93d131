"""Runs told step by step: the events that a gateway would have published."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import UNSET, UnsetType

_BEGINS_MS: Final = 1_700_000_000_000
"""Any time does: what is judged are differences, and equal stories shall have equal verdicts."""

_HOUR_MS: Final = 3_600_000


class ToldRun:
    """A run and its events so far. Made by `run`; each method adds to it and returns it.

    Attributes:
        run_id: The run.
        events: As the wire has them, oldest first. A second passes from one to the next, unless `wait` says more.
        now: The newest one's time, in milliseconds since the epoch: for `until` of `override`.
    """

    def __init__(self, run_id: str, agent_id: str | None = None, session_id: str | None = None) -> None:
        """See `run`."""
        self.run_id = run_id
        self.events: list[dict[str, Any]] = []
        self._common = {"agent_id": agent_id, "session_id": session_id}
        self.now = _BEGINS_MS
        self._calls = 0
        self._again: Callable[[], ToldRun] | None = None
        self._made = 0

    def call(
        self,
        tool: str,
        args: Any = None,
        *,
        result: Any | UnsetType = UNSET,
        error: Any | UnsetType = UNSET,
        known_poll: bool = False,
    ) -> ToldRun:
        """A call and its outcome; without either of `result` and `error` it returned nothing.

        `args`, `result` and `error` may be functions: they are called with 1 for this call, 2 for the first that
        `repeat` makes, and so on.
        """

        def make() -> ToldRun:
            self._made += 1
            number = self._made
            outcome = {} if result is UNSET else {"result": _of(result, number)}
            outcome = outcome if error is UNSET else {"error": _of(error, number)}
            self._calls += 1
            poll = {"known_poll": True} if known_poll else {}
            call = {"call_id": f"call-{self._calls}", "tool": tool, "args": _of(args, number), **poll}
            return self.event("tool_call.started", **call).event("tool_call.finished", **call, **outcome)

        self._again, self._made = make, 0
        return make()

    def refused(self, tool: str, args: Any = None) -> ToldRun:
        """A call that the runner refused, as an order said."""

        def make() -> ToldRun:
            self._made += 1
            self._calls += 1
            call = {"call_id": f"call-{self._calls}", "tool": tool, "args": _of(args, self._made)}
            return self.event("tool_call.blocked", **call)

        self._again, self._made = make, 0
        return make()

    def repeat(self, times: int) -> ToldRun:
        """The last call once more, and again, until it was made so many times in all.

        Raises:
            ValueError: there is no call before, or it was made more often already.
        """
        if self._again is None:
            raise ValueError("repeat: must follow a call, which it makes again")
        if times < self._made:
            raise ValueError(
                f"repeat: must be at least {self._made}, as often as the call was made already, got {times}"
            )
        while self._made < times:
            self._again()
        return self

    def compaction(self, trigger: str = "overflow", succeeded: bool = True) -> ToldRun:
        """The run's context was compacted."""
        return self.event("compaction", trigger=trigger, succeeded=succeeded)

    def override(self, action: str, **fields: Any) -> ToldRun:
        """A person decided: `allow`, `release` or `abort`; `fields` are `tool`, `until`."""
        return self.event("operator.override", action=action, **{"by": "test", "why": "test", **fields})

    def begin(self, **fields: Any) -> ToldRun:
        """`run.started`, which need not be told, with any of `policy`, `cause`, `parent_run_id`."""
        return self.event("run.started", **fields)

    def finish(self, reason: str = "done") -> ToldRun:
        """`run.finished`."""
        return self.event("run.finished", reason=reason)

    def wait(self, *, hours: float = 0.0, seconds: float = 0.0) -> ToldRun:
        """Nothing happens for so long."""
        self.now += int(hours * _HOUR_MS + seconds * 1000)
        return self

    def event(self, type: str, **fields: Any) -> ToldRun:
        """Any event of the contract, by its fields; ids and times are filled in where they are not given."""
        self.now += 1000
        event_id = f"{self.run_id}-{len(self.events) + 1}"
        common = {"schema": 1, "type": type, "event_id": event_id, "run_id": self.run_id, "ts": self.now}
        given = {**common, **self._common, **fields}
        self.events.append({name: value for name, value in given.items() if value is not None or name in _NULLS})
        return self


_NULLS: Final = ("args", "result", "error")


def run(run_id: str = "run", *, agent_id: str | None = None, session_id: str | None = None) -> ToldRun:
    """Begin to tell a run.

    Args:
        run_id: Its id; different ones for runs that are judged together.
        agent_id: Chooses the agent's overlay of the policy.
        session_id: The conversation.
    """
    return ToldRun(run_id, agent_id, session_id)


def _of(value: Any, number: int) -> Any:
    return value(number) if callable(value) else value
