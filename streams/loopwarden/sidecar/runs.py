"""The runs that agents have spoken of: each guarded from its first request on."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from typing import Any, Final

from starlette.exceptions import HTTPException

from loopwarden.gateway import Gateway, Run
from loopwarden.runner import GuardedRun, RunGuard
from loopwarden.sidecar.bodies import Accepted, Answer, Call, Health, Note, Outcome, RunNow
from loopwarden_schemas.events import RunEvent, RunFinished

MAX_RUNS: Final = 4096
"""Guarded at a time. A run that is asked about again after it was left is joined again, as if in its middle."""


class GuardedRuns:
    """Answers requests about any number of runs, in one event loop."""

    def __init__(self, gateway: Gateway, guard: RunGuard) -> None:
        self._gateway = gateway
        self._guard = guard
        self._runs: OrderedDict[str, tuple[Run, GuardedRun]] = OrderedDict()

    def publish(self, event: RunEvent) -> Accepted:
        """Publish an event as it is."""
        run, _ = self._run(event.run_id, event.agent_id, event.session_id)
        fields = event.model_dump(by_alias=True, exclude_unset=True)
        self._gateway.send({"agent_id": run.agent_id, "session_id": run.session_id, **fields})
        if isinstance(event, RunFinished):
            self._leave(event.run_id)
        return Accepted(event_id=event.event_id, run_id=event.run_id)

    async def before(self, call: Call) -> Answer:
        """Say whether a call may be executed, and publish that it starts or that it was refused."""
        run, guarded = self._run(call.run_id, call.agent_id, call.session_id)
        answer = await guarded.before_call_async(
            call.tool, call.args, call_id=call.call_id, certain=call.certain or None
        )
        if answer.action in ("allow", "warn"):
            run.send("tool_call.started", tool=call.tool, args=call.args, call_id=answer.call_id)
        return Answer(
            action=answer.action,
            message=answer.message or None,
            verdict_id=answer.verdict_id,
            call_id=answer.call_id,
            certain=answer.certain,
            joined=guarded.joined,
        )

    async def after(self, outcome: Outcome) -> Note:
        """Return the note for a call's result, and publish the outcome."""
        run, guarded = self._run(outcome.run_id, outcome.agent_id, outcome.session_id)
        call = run.call(outcome.tool, outcome.args, call_id=outcome.call_id)
        note = await guarded.note_after_async(call, certain=outcome.certain or None)
        fields: dict[str, Any] = {name: getattr(outcome, name) for name in _OUTCOME & outcome.model_fields_set}
        if outcome.usage is not None:
            fields["usage"] = outcome.usage.model_dump(exclude_none=True)
        named = {"tool": outcome.tool, "args": outcome.args, "call_id": outcome.call_id}
        run.send("tool_call.finished", **named, verdict_id=call.verdict_id, **fields)
        return Note(note=note, verdict_id=call.verdict_id)

    def now(self, run_id: str) -> RunNow:
        """Say how a run stands.

        Raises:
            HTTPException: nothing is known of it.
        """
        known = self._runs.get(run_id)
        if known is None:
            raise HTTPException(404, f"this sidecar was told nothing of run {run_id!r:.80}, or it has finished")
        _, guarded = known
        verdict, lag = guarded.aborted, guarded.lag()
        return RunNow(
            run_id=run_id,
            aborted=verdict is not None,
            message=None if verdict is None else verdict.message,
            verdict_id=None if verdict is None else verdict.verdict_id,
            joined=lag.joined,
            unjudged=lag.unjudged,
        )

    def health(self) -> Health:
        """Say how the sidecar is."""
        guard = dataclasses.asdict(self._guard.stats)
        connected = guard.pop("connected")
        return Health(
            status="ok" if connected else "broker_away",
            gateway=dataclasses.asdict(self._gateway.stats),
            guard=guard,
        )

    def _run(self, run_id: str, agent_id: str | None, session_id: str | None) -> tuple[Run, GuardedRun]:
        known = self._runs.get(run_id)
        if known is None:
            run = self._gateway.run(run_id, agent_id=agent_id, session_id=session_id)
            known = self._runs[run_id] = run, self._guard.run(run)
            if len(self._runs) > MAX_RUNS:
                self._leave(next(iter(self._runs)))
            return known
        self._runs.move_to_end(run_id)
        run, _ = known
        run.agent_id, run.session_id = run.agent_id or agent_id, run.session_id or session_id
        return known

    def _leave(self, run_id: str) -> None:
        _, guarded = self._runs.pop(run_id)
        guarded.close()


_OUTCOME: Final = {"result", "error", "duration_ms"}
