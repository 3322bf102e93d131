"""The guard: verdicts of any number of runs, followed by one consumer, and answered from memory."""

from __future__ import annotations

import logging
import os
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from loopwarden.client.settings import Connection
from loopwarden.gateway import AsyncGateway, AsyncRun, Gateway, Receipt, Run
from loopwarden.gateway.payloads import as_read, safe_name, safe_tool
from loopwarden.runner.answers import Answer
from loopwarden.runner.ended import Ends
from loopwarden.runner.guarded_run import GuardedRun
from loopwarden.runner.reader import Reader

OnUncertain: TypeAlias = Literal["allow", "block"]

_CLOSE_S: Final = 5.0

_MAX_ENDED: Final = 10_000
"""Runs whose end is remembered, in case that their id is used again."""

logger = logging.getLogger("loopwarden.runner")


@dataclass(frozen=True)
class GuardStats:
    """What a guard has answered so far.

    Attributes:
        runs: Runs that are guarded now.
        allowed, warned, blocked, aborted: Answers by their action.
        uncertain: Answers for which certainty was asked and not there in time.
        connected: Whether the broker is there, as far as is known.
    """

    runs: int
    allowed: int
    warned: int
    blocked: int
    aborted: int
    uncertain: int
    connected: bool


class RunGuard:
    """Guards runs: follows their verdicts in one thread, with one consumer, and only on their partitions.

    What is certain when: without `certain` an answer is as new as the last verdict read, usually some milliseconds
    behind the events, so that a call made right after another may escape a block. With `certain` and a gateway, and an
    answer that says `certain`, everything that this process had sent for the run before it asked was judged: of calls
    that are made one after another, each asked about when the one before has finished, not one escapes. Of calls that
    are asked about at the same time none knows of the others. Events that another process sends for the same run are
    not waited for, and what the gateway dropped is never judged.

    An id that is used again: orders end with their run. This process knows which runs its own gateway finished. Where
    another process did, a `run.started` of ours lets the run's own events be read back, to see whether an end lies
    between its last order and that; a runner that must not read `agent-events` takes the orders found as holding, and
    logs it once. So does, with or without that right, a run that is joined by its id alone, without a `run.started`.

    It goes on while the broker is away, with the orders it has, and takes up where it was when the broker is back. In a
    process that was forked it begins anew, with a thread and a consumer of its own, as soon as it is used there.
    """

    def __init__(
        self,
        connection: Connection | None = None,
        *,
        gateway: Gateway | AsyncGateway | None = None,
        bootstrap_servers: str | None = None,
        prefix: str | None = None,
        certain: float | None = None,
        on_uncertain: OnUncertain = "allow",
    ) -> None:
        """Begin; the broker need not be there.

        Args:
            connection: Default: the gateway's; else as for `Gateway`.
            gateway: Which sends the events of these runs. With it a guard knows how far they are, can wait for
                certainty, and publishes its refusals.
            certain: The default of `GuardedRun.before_call`, in seconds.
            on_uncertain: The answer where certainty was asked and not there in time.

        Raises:
            ValueError: a setting is none; `WrongSetting` for the connection.
        """
        if on_uncertain not in ("allow", "block"):
            raise ValueError(f'on_uncertain: must be "allow" or "block", got {on_uncertain!r}')
        if certain is not None and gateway is None:
            raise ValueError("certain: must come with the gateway whose events are to be judged, got none")
        self.gateway = gateway.gateway if isinstance(gateway, AsyncGateway) else gateway
        self.certain = certain
        self.on_uncertain = on_uncertain
        if connection is None:
            known = self.gateway is not None and bootstrap_servers is None and prefix is None
            connection = self.gateway.connection if self.gateway and known else None
        self._connection = connection or Connection.given(bootstrap_servers, prefix)
        self._reader = Reader(self._connection)
        self.ends = Ends(self._connection)
        self._runs: dict[str, tuple[GuardedRun, ...]] = {}
        self._ended: OrderedDict[str, Receipt] = OrderedDict()
        self._answers = {"allow": 0, "warn": 0, "block": 0, "abort": 0}
        self._uncertain = 0
        self._reader.start()
        if self.gateway is not None:
            self.gateway.listen(self._note_event)
        _guards.add(self)

    @property
    def reader(self) -> Reader:
        """Reads for it; begun where it is not, as in a process that was forked."""
        reader = self._reader
        if not reader.is_started:
            reader.start()
        return reader

    @property
    def stats(self) -> GuardStats:
        """What was answered so far."""
        allowed, warned, blocked, aborted = self._answers.values()
        connected = self._reader.connected
        return GuardStats(len(self._runs), allowed, warned, blocked, aborted, self._uncertain, connected)

    def run(self, run: Run | AsyncRun | str, *, since: int | None = None) -> GuardedRun:
        """Guard a run, from its beginning or from its middle.

        A gateway's run with an id of its own making began with its `run.started`. Any other may have begun elsewhere:
        its orders are read back, an abort included. A day is read back, by our clock or by the newest verdict there,
        whichever is earlier; where the verdicts found say that the run began earlier, from there (`begun`). So the
        orders are complete as soon as `joined` is true (a second or so), but for one case: a run older than a day that
        had no verdict within a day; pass `since` for it.

        Args:
            run: The gateway's, or the run's id. With the gateway's run, `GuardedRun.call` is at hand.
            since: Append time in milliseconds: verdicts about earlier events do not count, and nothing before is read.
                0 reads all that there is. (An id that is used again by a new run: the time when that begins.)

        Returns:
            One of its own each time: a run that is guarded twice is guarded by both.
        """
        if isinstance(run, AsyncRun):
            run = run.run
        known = run if isinstance(run, Run) else None
        run_id = safe_name(run.run_id if isinstance(run, Run) else run)
        if run_id is None:
            raise ValueError("run: must name a run, got none")
        guarded = GuardedRun(self, run_id, known, since)
        ended, started = self._ended.get(run_id), None if known is None else known.started
        events = [("run.finished", ended), ("run.started", started)]
        # The end is this run's own, or that of one before it with its id.
        for kind, receipt in events[::-1] if known is not None and known.finished else events:
            if receipt is not None:
                guarded.note_event(kind, receipt)
        if known is not None and known.last is not None and known.last not in (ended, started):
            guarded.note_event("", known.last)
        reader = self.reader
        with reader.moved:
            self._runs[run_id] = (*self._runs.get(run_id, ()), guarded)
            reader.follow(guarded)
        return guarded

    def leave(self, run: GuardedRun) -> None:
        """Guard a run no longer. (`GuardedRun.close` calls it.)"""
        reader = self._reader
        with reader.moved:
            left = tuple(each for each in self._runs.get(run.run_id, ()) if each is not run)
            if left:
                self._runs[run.run_id] = left
            else:
                self._runs.pop(run.run_id, None)
            reader.leave(run)

    def close(self) -> None:
        """End. The gateway is left as it is."""
        _guards.discard(self)
        if self.gateway is not None:
            self.gateway.unlisten(self._note_event)
        self._reader.close(_CLOSE_S)

    def __enter__(self) -> RunGuard:
        return self

    def __exit__(self, *ending: object) -> None:
        self.close()

    def signature(self, tool: str, args: object) -> tuple[str, str]:
        """The tool's name and the `args_hash` of a call, as its events will say them: redacted before it is hashed."""
        if self.gateway is not None:
            return self.gateway.signature(tool, args)
        return safe_tool(tool), as_read(args).digest

    def count(self, answer: Answer) -> Answer:
        """Count an answer, and return it."""
        self._answers[answer.action] += 1
        return answer

    def count_uncertain(self) -> None:
        """Count an answer that could not be certain."""
        self._uncertain += 1

    def begin_in_child(self) -> None:
        """Begin anew in a process that was forked: the thread and its connections are the parent's."""
        self._reader = Reader(self._connection)
        self.ends = Ends(self._connection)
        # What is on its way is the parent's: it never settles here.
        self._ended = OrderedDict((run_id, receipt) for run_id, receipt in self._ended.items() if receipt.done)
        for run_id, runs in self._runs.items():
            for run in runs:
                run.begin_in_child(self._ended.get(run_id))
                self._reader.follow(run)

    def _note_event(self, kind: str, run_id: str, receipt: Receipt) -> None:
        if kind == "run.finished":
            self._ended[run_id] = receipt
            self._ended.move_to_end(run_id)
            if len(self._ended) > _MAX_ENDED:
                self._ended.popitem(last=False)
        for run in self._runs.get(run_id, ()):
            run.note_event(kind, receipt)


_guards: weakref.WeakSet[RunGuard] = weakref.WeakSet()


def _begin_in_child() -> None:
    for guard in tuple(_guards):
        guard.begin_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)
