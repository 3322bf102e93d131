"""The guard: verdicts of any number of runs, followed by one consumer, and answered from memory."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from loopwarden.client.settings import Connection
from loopwarden.gateway import AsyncGateway, AsyncRun, Gateway, Receipt, Run
from loopwarden.gateway.payloads import as_read, safe_name, safe_tool
from loopwarden.runner.answers import Answer
from loopwarden.runner.guarded_run import GuardedRun
from loopwarden.runner.reader import Reader

OnUncertain: TypeAlias = Literal["allow", "block"]

READ_BACK_MS: Final = 25 * 3600 * 1000
"""A run is idle after 24 hours; an hour more for clocks and a worker that was behind."""

_CLOSE_S: Final = 5.0

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
    answer that says `certain`, everything that this process sent for the run was judged, and not one call escapes.
    Events that another process sends for the same run are not waited for.

    It goes on while the broker is away, with the orders it has, and takes up where it was when the broker is back.
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
        self.reader = Reader(connection or Connection.given(bootstrap_servers, prefix))
        self._runs: dict[str, GuardedRun] = {}
        self._answers = {"allow": 0, "warn": 0, "block": 0, "abort": 0}
        self._uncertain = 0
        self.reader.start()
        if self.gateway is not None:
            self.gateway.listen(self._note_event)

    @property
    def stats(self) -> GuardStats:
        """What was answered so far."""
        allowed, warned, blocked, aborted = self._answers.values()
        connected = self.reader.connected
        return GuardStats(len(self._runs), allowed, warned, blocked, aborted, self._uncertain, connected)

    def run(self, run: Run | AsyncRun | str, *, since: int | None = None) -> GuardedRun:
        """Guard a run, from its beginning or from its middle.

        A gateway's run with an id of its own making begins now. Any other may have begun elsewhere: its orders are read
        back, an abort included. A day is read back; where the verdicts found there say that the run began earlier, from
        there (`begun`). So the orders are complete as soon as `joined` is true (a second or so), but for one case: a
        run older than a day that had no verdict within a day; pass `since` for it.

        Args:
            run: The gateway's, or the run's id. With the gateway's run, `GuardedRun.call` is at hand.
            since: Append time in milliseconds: verdicts about earlier events do not count, and nothing before is read.
                0 reads all that there is. (An id that is used again by a new run: the time when that begins.)
        """
        if isinstance(run, AsyncRun):
            run = run.run
        known = run if isinstance(run, Run) else None
        run_id = safe_name(run.run_id if isinstance(run, Run) else run)
        if run_id is None:
            raise ValueError("run: must name a run, got none")
        is_new = known is not None and known.is_new and since is None
        start = None if is_new else since if since is not None else int(time.time() * 1000) - READ_BACK_MS
        guarded = GuardedRun(self, run_id, known, start, since or 0)
        with self.reader.moved:
            self._runs[run_id] = guarded
            for kind, receipt in () if known is None else (("run.started", known.started), ("", known.last)):
                if receipt is not None:
                    guarded.note_event(kind, receipt)
            self.reader.follow(guarded)
        return guarded

    def leave(self, run: GuardedRun) -> None:
        """Guard a run no longer. (`GuardedRun.close` calls it.)"""
        with self.reader.moved:
            if self._runs.get(run.run_id) is run:
                del self._runs[run.run_id]
            self.reader.leave(run)

    def close(self) -> None:
        """End. The gateway is left as it is."""
        if self.gateway is not None:
            self.gateway.unlisten(self._note_event)
        self.reader.close(_CLOSE_S)

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

    def _note_event(self, kind: str, run_id: str, receipt: Receipt) -> None:
        run = self._runs.get(run_id)
        if run is not None:
            run.note_event(kind, receipt)
