"""A run and its calls as context managers: what goes in and out of them becomes the events of the contract."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType

from loopwarden.gateway.ids import new_id
from loopwarden.gateway.payloads import safe_name
from loopwarden.gateway.receipts import Receipt
from loopwarden.gateway.writer import Arguments

if TYPE_CHECKING:
    from loopwarden.gateway.gateway import Gateway


def is_interrupt(error: BaseException | None) -> bool:
    """Whether somebody wants to get out, by Ctrl-C, `sys.exit` or cancelling: then nothing waits for the broker."""
    return error is not None and not isinstance(error, Exception)


class Run:
    """One agent execution. As a context manager it begins and finishes the run; made by `Gateway.run`.

    Attributes:
        run_id: The run's id: the key of its events.
        agent_id: Chooses the agent's overlay of the policy; on every event.
        session_id: The conversation; on every event.
        finished: Whether `run.finished` was sent.
        is_new: Whether the id was made for it, so that nobody can have sent anything before.
        started: Receipt of `run.started`; None before.
        last: Receipt of the newest event sent through it.
    """

    def __init__(
        self,
        gateway: Gateway,
        run_id: str,
        agent_id: str | None = None,
        session_id: str | None = None,
        parent_run_id: str | None = None,
        cause: str | None = None,
        policy: Any = None,
        *,
        is_new: bool = False,
    ) -> None:
        self.gateway = gateway
        self.is_new = is_new
        self.started: Receipt | None = None
        self.last: Receipt | None = None
        self.run_id = run_id
        self.agent_id = agent_id
        self.session_id = session_id
        self.finished = False
        self._beginning = {"parent_run_id": parent_run_id, "cause": cause, "policy": policy}

    def begin(self) -> Receipt:
        """Send `run.started`."""
        self.started = self.send("run.started", **self._beginning)
        return self.started

    def call(self, tool: str, args: Any = None, *, call_id: str | None = None, known_poll: bool | None = None) -> Call:
        """Return a call. Nothing is sent before it is entered.

        Args:
            tool: Its name.
            args: Its arguments, which may hold anything.
            call_id: One that the agent knows; else a random one.
            known_poll: True: it only asks for news, which the judge would not know of this tool.
        """
        return Call(self, tool, args, safe_name(call_id) or new_id(), known_poll)

    def blocked(
        self, tool: str, args: Any = None, *, verdict_id: str | None = None, call_id: str | None = None
    ) -> Receipt:
        """Send `tool_call.blocked`: a call was refused. (`RunGuard` does it.)"""
        call_id = safe_name(call_id) or new_id()
        return self.send("tool_call.blocked", tool=tool, args=args, call_id=call_id, verdict_id=verdict_id)

    def compaction(self, trigger: str = "overflow", succeeded: bool = True) -> Receipt:
        """Send `compaction`: the run's context was compacted (overflow, timeout, continuation, in_attempt, manual)."""
        return self.send("compaction", trigger=trigger, succeeded=succeeded)

    def finish(self, reason: str = "done", *, wait: bool = True) -> Receipt | None:
        """Send `run.finished`, once: no call of this run follows. `wait` as for `Gateway.send`."""
        if self.finished:
            return None
        self.finished = True
        return self.send("run.finished", reason=reason, wait=wait)

    def send(self, kind: str, arguments: Arguments | None = None, *, wait: bool = True, **fields: Any) -> Receipt:
        """Send an event of this run. `wait` as for `Gateway.send`."""
        fields.update(type=kind, run_id=self.run_id, agent_id=self.agent_id, session_id=self.session_id)
        self.last = self.gateway.send(fields, arguments, wait=wait)
        return self.last

    def __enter__(self) -> Run:
        self.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.finish("done" if kind is None else kind.__name__, wait=not is_interrupt(error))


class Call:
    """One tool call: entering sends `tool_call.started`, leaving `tool_call.finished`. Made by `Run.call`.

    An exception in the block becomes the call's error, and goes on. Without `result` and without an exception the call
    returned nothing (a void result).

    Attributes:
        run, call_id, tool, args: As given.
        verdict_id: The warning that was shown to the model with this call's result; on `tool_call.finished`.
        started: Receipt of `tool_call.started`; None before.
        finished: Receipt of `tool_call.finished`; None before.
    """

    def __init__(self, run: Run, tool: str, args: Any, call_id: str, known_poll: bool | None) -> None:
        self.run = run
        self.tool = tool
        self.args = args
        self.call_id = call_id
        self.verdict_id: str | None = None
        self.started: Receipt | None = None
        self.finished: Receipt | None = None
        self._known_poll = known_poll
        self._arguments: Arguments | None = None
        self._outcome: dict[str, Any] = {}
        self._usage: dict[str, Any] | None = None
        self._entered_at = 0.0

    def result(self, value: Any) -> None:
        """Say what the call returned; None is an outcome, too."""
        self._outcome = {"result": value}

    def error(self, error: Any) -> None:
        """Say how the call failed: an exception, or what the tool said."""
        self._outcome = {"error": error}

    def usage(
        self, *, input_tokens: int | None = None, output_tokens: int | None = None, cost_usd: float | None = None
    ) -> None:
        """Say what the step cost: shown and summed, never judged."""
        self._usage = {"input_tokens": input_tokens, "output_tokens": output_tokens, "cost_usd": cost_usd}

    def start(self) -> Receipt:
        """Send `tool_call.started`."""
        # What the arguments are now, and only once: a tool may change them, and both events must say the same.
        self._arguments = self.run.gateway.arguments(self.tool, self.args, self._known_poll)
        self.started = self._send("tool_call.started")
        self._entered_at = time.monotonic()
        return self.started

    def finish(self, result: Any | UnsetType = UNSET, error: Any | UnsetType = UNSET, *, wait: bool = True) -> Receipt:
        """Send `tool_call.finished`. `wait` as for `Gateway.send`."""
        if error is not UNSET:
            self.error(error)
        elif result is not UNSET:
            self.result(result)
        duration_ms = (time.monotonic() - self._entered_at) * 1000
        more = {"verdict_id": self.verdict_id, "usage": self._usage, "duration_ms": duration_ms}
        self.finished = self._send("tool_call.finished", **self._outcome, **more, wait=wait)
        return self.finished

    def __enter__(self) -> Call:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self.error(error)
        self.finish(wait=not is_interrupt(error))

    def _send(self, kind: str, **fields: Any) -> Receipt:
        if self._arguments is None:
            fields["args"] = self.args
        return self.run.send(kind, self._arguments, tool=self.tool, call_id=self.call_id, **fields)
