"""Whether a call may be made: `RunGuard` follows the verdicts and answers from memory. (design.md, "Verdicts".)

guard = RunGuard(gateway=gateway, certain=0.2)
with gateway.run(agent_id="docs") as run, guard.run(run) as guarded:
    with guarded.call("read", {"path": "/etc/hosts"}) as call:  # CallBlocked, RunAborted
        call.result(read("/etc/hosts"))
        note = guarded.note_after(call)
"""

from loopwarden.runner.answers import Action, Answer, CallBlocked, Refusal, RunAborted
from loopwarden.runner.guard import GuardStats, RunGuard
from loopwarden.runner.guarded_run import GuardedRun, Lag

__all__ = [
    "Action",
    "Answer",
    "CallBlocked",
    "GuardStats",
    "GuardedRun",
    "Lag",
    "Refusal",
    "RunAborted",
    "RunGuard",
]
