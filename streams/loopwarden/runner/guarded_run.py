"""One guarded run: the answer to "may this call be made?", from memory, and what follows from it."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from loopwarden.gateway import Call, Receipt, Run
from loopwarden.gateway.asynchronous import AsyncCall
from loopwarden.gateway.ids import new_id
from loopwarden.runner.answers import Action, Answer
from loopwarden.runner.ended import Question
from loopwarden.runner.orders import Orders
from loopwarden.runner.read_back import read_back_from
from loopwarden.runner.sent import Sent
from loopwarden_schemas.digests import normalise_tool
from loopwarden_schemas.structs import Verdict

if TYPE_CHECKING:
    from loopwarden.runner.guard import RunGuard

UNCERTAIN: Final = "uncertain"
_UNCERTAIN_MESSAGE: Final = (
    "This call was not made: what was done before it could not be judged in time. Wait a moment before trying again."
)

logger = logging.getLogger("loopwarden.runner")


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

    Nothing of ours is raised at an agent, whatever its tools and arguments are: what cannot even be looked at counts as
    a call that no order covers, without certainty, and is logged.

    Attributes:
        run_id: The run.
        joined: Whether the verdicts that were there when it joined have been read, and it is known which of them still
            hold. Until then every call is allowed, unless `certain` asks to wait.
        since, since_is_guessed: From where its verdicts are read. (The reader's.)
    """

    def __init__(self, guard: RunGuard, run_id: str, run: Run | None, since: int | None) -> None:
        self.run_id = run_id
        self._guard = guard
        self._run = run
        self._given_since = since
        self._begin()

    def _begin(self) -> None:
        self.joined = False
        if self._given_since is None:
            self.since, self.since_is_guessed = read_back_from(self._run, int(time.time() * 1000))
        else:
            self.since, self.since_is_guessed = self._given_since, False
        self._orders = Orders()
        self._orders.active(_elapsed())
        self._sent = Sent()
        self._watched: Receipt | None = None
        """The receipt whose settling wakes tasks."""
        self._end_known: tuple[Receipt, int] | None = None
        """An event that is in the log at an offset that is not known, and an offset that it lies below."""
        self._end_asked: Receipt | None = None
        self._started: Receipt | None = None
        self._is_decided = True
        """Whether it is known which orders hold after the newest `run.started`."""
        self._asked_about: Receipt | None = None
        self._answered_about: Receipt | None = None

    def begin_in_child(self, ended: Receipt | None) -> None:
        """Begin anew in a process that was forked, where a run of this id had ended before it was. (The guard's.)"""
        started = self._started
        self._begin()
        self._started = started if started is not None and started.done else None
        if ended is not None:
            self._orders.run_finished(ended)

    def before_call(
        self, tool: str, args: Any = None, *, call_id: str | None = None, certain: float | None = None
    ) -> Answer:
        """Say whether a call may be made. A refusal is published as `tool_call.blocked`, if there is a gateway.

        Args:
            tool: Its name.
            args: Its arguments, as they will be on its events.
            call_id: The call's; default: a random one (see `Answer.call_id`).
            certain: Wait at most so many seconds until everything that this process sent for the run before is judged
                and the verdicts are here. In time: no call escapes a block, of calls made one after another. Not in
                time: what the guard's `on_uncertain` says, counted. None: the guard's `certain`; 0: as it is now.
        """
        timeout = self._guard.certain if certain is None else certain
        return self._answer(tool, args, call_id, timeout, timeout is not None and self._wait(timeout))

    async def before_call_async(
        self, tool: str, args: Any = None, *, call_id: str | None = None, certain: float | None = None
    ) -> Answer:
        """`before_call` for asyncio: only the task waits for certainty, and no thread does."""
        timeout = self._guard.certain if certain is None else certain
        is_certain = timeout is not None and await self._wait_async(timeout)
        return self._answer(tool, args, call_id, timeout, is_certain)

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

    def note_after(self, call: Call | AsyncCall | str, *, certain: float | None = None) -> str | None:
        """Return the warning to append to a call's result for the model, once; None where there is none.

        Ask before the result is published: `tool_call.finished` then says that the warning was shown. A warning that
        comes too late for its own call comes with the next.

        Args:
            call: The gateway's call, or its id.
            certain: Wait at most so many seconds until the call itself is judged; default: do not wait.
        """
        if certain is not None:
            self._wait(certain)
        return self._note(call)

    async def note_after_async(self, call: Call | AsyncCall | str, *, certain: float | None = None) -> str | None:
        """`note_after` for asyncio: only the task waits."""
        if certain is not None:
            await self._wait_async(certain)
        return self._note(call)

    @property
    def aborted(self) -> Verdict | None:
        """The verdict that ended the run; None while it goes on."""
        with self._guard.reader.moved:
            self._orders.settle()
            return self._orders.aborted() if self.joined else None

    def lag(self) -> Lag:
        """How far the verdicts are behind."""
        reader, last = self._guard.reader, self._sent.newest()
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
        if self._given_since is not None and cause_time < self._given_since:
            return True
        is_first = verdict.begun > self._orders.last[0]
        if not self.joined and self.since is not None and is_first and verdict.n > 1 and verdict.begun < self.since:
            # The run began before what was read, and orders may be older: they begin where the run did.
            self.since, self.since_is_guessed = verdict.begun, False
            self._orders.read_again()
            return False
        self._orders.apply(verdict, cause_offset)
        return True

    def note_joined(self) -> None:
        """All that was there has been read. (The reader's.)"""
        if self.since is not None:
            self._orders.drop_warnings()  # those were for calls that are over
        self._is_decided = False

    def decide(self) -> bool:
        """Settle whether the orders found ended before the run was begun anew. (The reader's.)

        A `run.started` alone does not tell: sent in the middle of a run it changes nothing.
        """
        self._orders.settle()
        started = self._started
        if started is not None and not started.done:
            return False
        if started is not None and started.offset is not None and started.partition is not None:
            cause = self._orders.newest_cause
            if cause is not None and cause < started.offset and self._answered_about is not started:
                if self._asked_about is not started:
                    self._asked_about = started
                    self._ask(started, started.partition, cause, started.offset)
                return False
        self.joined = self._is_decided = True
        return True

    def note_event(self, kind: str, receipt: Receipt) -> None:
        """An event of the run was sent. (The gateway's.)"""
        self._sent.note(receipt)
        self._orders.active(_elapsed())
        if kind not in ("run.started", "run.finished"):
            return
        reader = self._guard.reader
        with reader.moved:
            if kind == "run.finished":
                self._orders.run_finished(receipt)
                return
            self._started = receipt
            self._orders.run_started(receipt)
            if self.joined and self._orders.newest_cause is not None:
                self._is_decided = False
                reader.reconsider(self)

    def _answer(self, tool: str, args: Any, call_id: str | None, timeout: float | None, is_certain: bool) -> Answer:
        guard = self._guard
        verdict = warning = None
        action: Action = "abort"
        try:
            call_id = call_id or new_id()
            # Without the reader's lock, which it may hold while it waits for the interpreter: what is read here changes
            # at once or not at all.
            orders = self._orders
            if orders.unsettled:
                with guard.reader.moved:
                    orders.settle()
            orders.active(_elapsed())
            verdict = orders.aborted() if self.joined else None
            if verdict is None and self.joined and orders.has_blocks:
                action = "block"
                name, args_hash = guard.signature(tool, args)
                verdict = orders.blocking(normalise_tool(name), args_hash)
            warning = orders.warning() if verdict is None else None
        except Exception as error:
            is_certain, call_id = False, call_id if type(call_id) is str else new_id()
            logger.warning("a call of run %s could not be looked at: %s", self.run_id, type(error).__name__)
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

    def _note(self, call: Call | AsyncCall | str) -> str | None:
        made = call.call if isinstance(call, AsyncCall) else call
        with self._guard.reader.moved:
            self._orders.settle()
            warnings = self._orders.take_warnings(made if isinstance(made, str) else made.call_id)
        if not warnings:
            return None
        if not isinstance(made, str):
            made.verdict_id = warnings[-1].verdict_id
        return "\n".join(warning.message for warning in warnings)

    def _wait(self, timeout: float) -> bool:
        """Wait until all that was sent before is judged, and its verdicts are here; return whether it is so."""
        reader, asked = self._guard.reader, self._sent.newest()
        deadline = time.monotonic() + timeout
        newest = asked
        while newest is not None and not newest.done:
            if not newest.wait(max(0.0, deadline - time.monotonic())):
                return False
            if newest.error is not None:
                newest = self._sent.newest()
        with reader.moved:
            return reader.moved.wait_for(lambda: self._is_judged(asked), max(0.0, deadline - time.monotonic()))

    async def _wait_async(self, timeout: float) -> bool:
        waiters, asked = self._guard.reader.waiters, self._sent.newest()
        return await waiters.wait_for(lambda: self._is_judged(asked, watch=True), timeout)

    def _is_judged(self, asked: Receipt | None, *, watch: bool = False) -> bool:
        """Whether everything up to an event is judged; with `watch`, settling of its receipt wakes tasks."""
        reader = self._guard.reader
        if not self.joined or not self._is_decided:
            return False
        if asked is not None and asked.done and asked.error is not None:
            # What was dropped is never judged; what counts is the newest that is in the log.
            asked = self._sent.newest()
        if asked is None:
            return True
        if not asked.done:
            if watch and self._watched is not asked:
                self._watched = asked
                asked.on_done(reader.waiters.wake)
            return False
        if asked.partition is None:
            return False
        if asked.offset is not None:
            return reader.is_judged(asked.partition, asked.offset)
        known = self._end_known
        if known is not None and known[0] is asked:
            return reader.is_judged(asked.partition, known[1] - 1)
        if self._end_asked is not asked:
            # The broker has it, and did not say where: somewhere below the end as it is now.
            self._end_asked = asked
            reader.ask_end(asked.partition, lambda end: self._note_end(asked, end))
        return False

    def _note_end(self, event: Receipt, end: int) -> None:
        self._end_known = event, end

    def _ask(self, started: Receipt, partition: int, start: int, stop: int) -> None:
        def answer(end: int | None) -> None:
            with self._guard.reader.moved:
                if end is not None:
                    self._orders.ended(end)
                self._answered_about = started

        self._guard.ends.ask(Question(self.run_id, partition, start, stop, answer))

    def _refuse(self, action: Action, verdict: Verdict, tool: str, args: Any, call_id: str, is_certain: bool) -> Answer:
        if self._run is not None:
            self._run.blocked(tool, args, verdict_id=verdict.verdict_id, call_id=call_id)
        elif self._guard.gateway is not None:
            self._guard.gateway.blocked(
                self.run_id, tool, args, verdict_id=verdict.verdict_id, call_id=call_id, agent_id=verdict.agent_id
            )
        return Answer(action, call_id, verdict.message, verdict.verdict_id, verdict.reason, is_certain)


def _elapsed() -> float:
    """Seconds, untouched by whoever sets the clock; where that is to be had, those count in which the machine slept."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
