"""What the adapters inside a process share: runs whose calls are asked about, made, and told."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from typing import Any, Final

from msgspec import UNSET, UnsetType

from loopwarden.gateway import Call, Gateway, Run
from loopwarden.runner import RunGuard
from loopwarden_schemas.structs import Verdict

MAX_RUNS: Final = 4096
"""Watched at a time. One that is asked about after it was left is joined again, as if in its middle."""


class WatchedRun:
    """A run of an agent: what it does is told, and what is said about it is obeyed. Safe for several threads."""

    def __init__(self, guard: RunGuard, run: Run) -> None:
        self.run = run
        self.guarded = guard.run(run)
        self._certain = guard.certain

    @property
    def aborted(self) -> Verdict | None:
        """The verdict that ended the run; None while it goes on."""
        return self.guarded.aborted

    def start(self, tool: str, args: Any, call_id: str | None = None) -> Call:
        """Ask, then say that the call starts; return it, to be made and then finished.

        Raises:
            CallBlocked, RunAborted: it must not be made. What they say is for the model.
        """
        answer = self.guarded.before_call(tool, args, call_id=call_id).raise_for()
        call = self.run.call(tool, args, call_id=answer.call_id)
        call.start()
        return call

    async def start_async(self, tool: str, args: Any, call_id: str | None = None) -> Call:
        """`start` for asyncio: only the task waits for certainty."""
        answer = (await self.guarded.before_call_async(tool, args, call_id=call_id)).raise_for()
        call = self.run.call(tool, args, call_id=answer.call_id)
        call.start()
        return call

    def note(self, call: Call) -> str | None:
        """Return the warning that goes to the model with this call's result. Ask before `finish`.

        A guard with `certain` waits for what is said about the call itself; else it may come with the next result.
        """
        return self.guarded.note_after(call, certain=self._certain)

    async def note_async(self, call: Call) -> str | None:
        """`note` for asyncio."""
        return self.note(call) if self._certain is None else await asyncio.to_thread(self.note, call)

    def finish(self, call: Call, result: Any | UnsetType = UNSET, error: Any | UnsetType = UNSET) -> None:
        """Say what the call returned."""
        call.finish(result, error)

    def leave(self, reason: str | None = None) -> None:
        """Watch it no longer. With a reason the run is over, and that is said."""
        if reason is not None:
            self.run.finish(reason if self.aborted is None else "aborted")
        self.guarded.close()


class WatchedRuns:
    """The runs that an adapter has seen, by their ids."""

    def __init__(self, guard: RunGuard | None) -> None:
        """Begin.

        Args:
            guard: With a gateway; None: one of its own, on the broker that the environment names.

        Raises:
            ValueError: the guard has no gateway.
        """
        if guard is not None and guard.gateway is None:
            raise ValueError("guard: must come with the gateway that tells the runs' events: RunGuard(gateway=...)")
        self._guard = guard or RunGuard(gateway=Gateway())
        self._runs: OrderedDict[str, WatchedRun] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, run_id: str | None = None, **fields: Any) -> WatchedRun:
        """Begin a run: `run.started` is sent. See `Gateway.run` for the fields."""
        watched = WatchedRun(self._guard, self._gateway.run(run_id, **fields))
        watched.run.begin()
        self._keep(watched)
        return watched

    def known(self, run_id: str, **fields: Any) -> WatchedRun:
        """Return the run with this id, which may have begun elsewhere."""
        with self._lock:
            watched = self._runs.get(run_id)
            if watched is not None:
                self._runs.move_to_end(run_id)
        if watched is None:
            watched = WatchedRun(self._guard, self._gateway.run(run_id, **fields))
            self._keep(watched)
        return watched

    def end(self, run_id: str, reason: str) -> None:
        """The run is over; of one that is not known nothing is said."""
        with self._lock:
            watched = self._runs.pop(run_id, None)
        if watched is not None:
            watched.leave(reason)

    @property
    def _gateway(self) -> Gateway:
        gateway = self._guard.gateway
        assert gateway is not None, "a guard is taken only with its gateway"
        return gateway

    def _keep(self, watched: WatchedRun) -> None:
        with self._lock:
            self._runs[watched.run.run_id] = watched
            left = self._runs.popitem(last=False)[1] if len(self._runs) > MAX_RUNS else None
        if left is not None:
            left.leave()
