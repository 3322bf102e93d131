"""One guarded run: the answer to "may this call be made?", from memory, and what follows from it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from loopwarden.gateway import Call, Receipt, Run
from loopwarden.gateway.ids import new_id
from loopwarden.runner.answers import Action, Answer
from loopwarden.runner.orders import Orders
from loopwarden_schemas.digests import normalise_tool
from loopwarden_schemas.structs import Verdict

if TYPE_CHECKING:
    from loopwarden.runner.guard import RunGuard

UNCERTAIN: Final = "uncertain"
_UNCERTAIN_MESSAGE: Final = (
    "This call was not made: what was done before it could not be judged in time. Wait a moment before trying again."
)


@dataclass(frozen=True)
class Lag:
    """How far the verdicts of a run are behind.

    Attributes:
        unjudged: Events of the run's partition, up to the newest that this process sent for the run, that are not
            judged yet; None where that is not known (nothing acknowledged, no progress read, no gateway).
        unread: Verdicts there that are published and were not read yet; None where that is not known.
        joined: Whether the verdicts that were there when the run joined have been read.
        connected: Whether the broker is there.
    """

    unjudged: int | None
    unread: int | None
    joined: bool
    connected: bool


class GuardedRun:
    """Made by `RunGuard.run`; as a context manager it is left (`close`) at the end. Safe for several threads.

    Attributes:
        run_id: The run.
        joined: Whether the verdicts that were there when it joined have been read. Until then every call is allowed,
            unless `certain` asks to wait.
    """

    def __init__(self, guard: RunGuard, run_id: str, run: Run | None, since: int | None, not_before: int) -> None:
        self.run_id = run_id
        self.joined = False
        self.since = since
        self._guard = guard
        self._reader = guard.reader
        self._run = run
        self._not_before = not_before
        self._orders = Orders()
        self._last: Receipt | None = None
        self._orders.active(time.time())

    def before_call(
        self, tool: str, args: Any = None, *, call_id: str | None = None, certain: float | None = None
    ) -> Answer:
        """Say whether a call may be made. A refusal is published as `tool_call.blocked`, if there is a gateway.

        Args:
            tool: Its name.
            args: Its arguments, as they will be on its events.
            call_id: The call's; default: a random one (see `Answer.call_id`).
            certain: Wait at most so many seconds until everything that this process sent for the run is judged and the
                verdicts are here. In time: no call escapes a block. Not in time: what the guard's `on_uncertain` says,
                counted. None: the guard's `certain`; 0: as it is now.
        """
        guard, orders = self._guard, self._orders
        now = time.time()
        timeout = guard.certain if certain is None else certain
        is_certain = timeout is not None and self._wait(timeout)
        call_id = call_id or new_id()
        # Without the reader's lock, which it may hold while it waits for the interpreter: what is read here changes at
        # once or not at all.
        orders.active(now)
        verdict = orders.aborted() if self.joined else None
        action: Action = "abort"
        if verdict is None and self.joined and orders.has_blocks:
            action = "block"
            name, args_hash = guard.signature(tool, args)
            verdict = orders.blocking(normalise_tool(name), args_hash)
        warning = orders.warning() if verdict is None else None
        if verdict is not None:
            return guard.count(self._refuse(action, verdict, tool, args, call_id, is_certain))
        if timeout is not None and not is_certain:
            guard.count_uncertain()
            if guard.on_uncertain == "block":
                return guard.count(Answer("block", call_id, _UNCERTAIN_MESSAGE, None, UNCERTAIN, False))
        if warning is not None:
            answer = Answer("warn", call_id, warning.message, warning.verdict_id, warning.reason, is_certain)
            return guard.count(answer)
        return guard.count(Answer("allow", call_id, certain=is_certain))

    async def before_call_async(
        self, tool: str, args: Any = None, *, call_id: str | None = None, certain: float | None = None
    ) -> Answer:
        """`before_call` for asyncio: only the task waits for certainty."""
        timeout = self._guard.certain if certain is None else certain
        if timeout is None:
            return self.before_call(tool, args, call_id=call_id)
        return await asyncio.to_thread(self.before_call, tool, args, call_id=call_id, certain=timeout)

    @contextmanager
    def call(
        self, tool: str, args: Any = None, *, call_id: str | None = None, certain: float | None = None
    ) -> Iterator[Call]:
        """Ask, then make the call: `Run.call` that is refused by an exception.

        Raises:
            CallBlocked, RunAborted: it must not be made.
            ValueError: the guard was not given the gateway's `Run`.
        """
        if self._run is None:
            raise ValueError("guard.run: must be given the gateway's Run for this, got only its id")
        answer = self.before_call(tool, args, call_id=call_id, certain=certain).raise_for()
        with self._run.call(tool, args, call_id=answer.call_id) as call:
            yield call

    def note_after(self, call: Call | str, *, certain: float | None = None) -> str | None:
        """Return the warning to append to a call's result for the model, once; None where there is none.

        Ask before the result is published: `tool_call.finished` then says that the warning was shown. A warning that
        comes too late for its own call comes with the next.

        Args:
            call: The gateway's call, or its id.
            certain: Wait at most so many seconds until the call itself is judged; default: do not wait.
        """
        if certain is not None:
            self._wait(certain)
        with self._reader.moved:
            warnings = self._orders.take_warnings(call if isinstance(call, str) else call.call_id)
        if not warnings:
            return None
        if not isinstance(call, str):
            call.verdict_id = warnings[-1].verdict_id
        return "\n".join(warning.message for warning in warnings)

    @property
    def aborted(self) -> Verdict | None:
        """The verdict that ended the run; None while it goes on."""
        with self._reader.moved:
            return self._orders.aborted() if self.joined else None

    def lag(self) -> Lag:
        """How far the verdicts are behind."""
        reader, last = self._reader, self._last
        with reader.moved:
            unjudged = unread = None
            if last is not None and last.partition is not None and last.offset is not None:
                judged = reader.judged.get(last.partition)
                unjudged = None if judged is None else max(0, last.offset + 1 - judged)
            partition = reader.partition(self.run_id)
            if partition in reader.verdicts:
                unread = max(0, reader.verdicts[partition] - reader.read.get(partition, 0))
            return Lag(unjudged, unread, self.joined, reader.connected)

    def close(self) -> None:
        """Guard the run no longer."""
        self._guard.leave(self)

    def __enter__(self) -> GuardedRun:
        return self

    def __exit__(self, *ending: object) -> None:
        self.close()

    def apply(self, verdict: Verdict, cause_offset: int, cause_time: int) -> bool:
        """Take a verdict. (The reader's.)"""
        if cause_time < self._not_before:
            return True
        is_first = verdict.begun > self._orders.last[0]
        if not self.joined and self.since is not None and is_first and verdict.n > 1 and verdict.begun < self.since:
            # The run began before what was read, and orders may be older: they begin where the run did.
            self.since = verdict.begun
            self._orders.read_again()
            return False
        self._orders.apply(verdict, cause_offset)
        return True

    def note_joined(self) -> None:
        """All that was there has been read. (The reader's.)"""
        if self.since is not None:
            self._orders.drop_warnings()  # those were for calls that are over
        self.joined = True

    def note_event(self, kind: str, receipt: Receipt) -> None:
        """An event of the run was sent. (The gateway's.)"""
        self._last = receipt
        self._orders.active(time.time())
        if kind == "run.started":
            with self._reader.moved:
                self._orders.run_started(receipt)
        elif kind == "run.finished":
            with self._reader.moved:
                self._orders.run_finished(receipt)

    def _wait(self, timeout: float) -> bool:
        """Wait until all that was sent is judged, and its verdicts are here; return whether it is so."""
        reader, last = self._reader, self._last
        deadline = time.monotonic() + timeout
        if last is not None and not (last.wait(timeout) and last.error is None and last.offset is not None):
            return False
        with reader.moved:
            return reader.moved.wait_for(lambda: self._is_judged(last), max(0.0, deadline - time.monotonic()))

    def _is_judged(self, last: Receipt | None) -> bool:
        if not self.joined:
            return False
        if last is None or last.partition is None or last.offset is None:
            return True
        return self._reader.is_judged(last.partition, last.offset)

    def _refuse(self, action: Action, verdict: Verdict, tool: str, args: Any, call_id: str, is_certain: bool) -> Answer:
        if self._run is not None:
            self._run.blocked(tool, args, verdict_id=verdict.verdict_id, call_id=call_id)
        elif self._guard.gateway is not None:
            self._guard.gateway.blocked(
                self.run_id, tool, args, verdict_id=verdict.verdict_id, call_id=call_id, agent_id=verdict.agent_id
            )
        return Answer(action, call_id, verdict.message, verdict.verdict_id, verdict.reason, is_certain)
