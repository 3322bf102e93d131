"""A scripted agent that loops: it is warned, then blocked, and goes on all the same until its run is aborted.

    loopwarden up     # broker and worker on this machine; the rest in another terminal
    loopwarden policy apply infra/examples/looping-policy.json5 --why "an example"
    python infra/examples/looping_agent.py

It stands for a model that does not listen, which real ones are known to do. Its policy: a warning after 3 equal calls,
a block after 5, and the end of the run after 3 attempts of blocked calls.
"""

from __future__ import annotations

import sys

from loopwarden.gateway import Gateway
from loopwarden.runner import CallBlocked, GuardedRun, RunAborted, RunGuard

CERTAIN_S = 10.0
"""How long a call may wait for certainty: far longer than it takes, so that the example ends the same each time."""


def read(path: str) -> str:
    """The tool. The model hopes that the file says something else next time."""
    return "127.0.0.1 localhost"


def turn(guarded: GuardedRun) -> str:
    """One turn of the agent's loop, with what a runner adds to it; returns what became of the call."""
    try:
        with guarded.call("read", {"path": "/etc/hosts"}) as call:
            result = read("/etc/hosts")
            call.result(result)
            note = guarded.note_after(call, certain=CERTAIN_S)  # for the model, after the tool's result
    except CallBlocked as blocked:
        return f"blocked  {blocked}"  # the model gets this instead of a result
    return f"made     {result}" if note is None else f"warned   {note}"


def main() -> None:
    with (
        Gateway() as gateway,  # LOOPWARDEN_BOOTSTRAP_SERVERS and LOOPWARDEN_TOPIC_PREFIX say where
        RunGuard(gateway=gateway, certain=CERTAIN_S) as guard,
        gateway.run(agent_id="looping") as run,
        guard.run(run) as guarded,
    ):
        try:
            for number in range(1, 21):
                print(f"{number:2} {turn(guarded)}")
        except RunAborted as aborted:
            print(f"   aborted  {aborted}")
            sys.exit(3)
    print("   done")


if __name__ == "__main__":
    main()
