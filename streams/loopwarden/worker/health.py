"""Whether the worker is alive, and whether it is ready: what `/healthz` and `/readyz` answer.

Alive: its event loop moves. Only a restart mends one that does not, so Kubernetes may kill a worker that is not alive.
A broker that is away does not make it fail: a restart would bring nothing.

Ready: its runs are read back and it judges, also where it has no partition because the others are enough. Not ready
while it waits, recovers or stops, and not when it is stuck: the poll loop does not come round, the broker answers no
fetch, or what was judged does not become durable.
"""

from __future__ import annotations

from typing import Final

from loopwarden.worker.standing import Phase, Standing

STUCK_S: Final = 30.0
"""Nothing that works takes the event loop or the poll loop so long: the slowest is a full poll, a third of a second."""

UNSAVED_S: Final = 90.0
"""A checkpoint comes at least each minute (`LOOPWARDEN_CHECKPOINT_SECONDS` is at most 60) and takes seconds."""


def not_alive(standing: Standing, now: float) -> list[str]:
    """Return why the worker is not alive, or nothing. `now` is of `time.monotonic`."""
    age = now - standing.at
    if age > STUCK_S:
        return [f"the event loop has not moved for {age:.0f} s (limit {STUCK_S:.0f} s)"]
    return []


def not_ready(standing: Standing, now: float) -> list[str]:
    """Return why the worker is not ready, or nothing. `now` is of `time.monotonic`."""
    reasons = not_alive(standing, now)
    if standing.phase is not Phase.judging:
        reasons.append(f"{standing.phase.value}, for {now - standing.phase_since:.0f} s now")
        if standing.phase is Phase.recovering:
            reasons.append(f"{standing.recovery_remaining} records of the changelog are to be read")
        return reasons
    if standing.polled_at is not None and now - standing.polled_at > STUCK_S:
        reasons.append(f"no poll for {now - standing.polled_at:.0f} s (limit {STUCK_S:.0f} s)")
    told_at = standing.phase_since if standing.told_at is None else standing.told_at
    if standing.lanes and now - told_at > STUCK_S:
        reasons.append(f"the broker has answered no fetch for {now - told_at:.0f} s (limit {STUCK_S:.0f} s)")
    if standing.unsaved_since is not None and now - standing.unsaved_since > UNSAVED_S:
        reasons.append(
            f"what was judged {now - standing.unsaved_since:.0f} s ago is not durable yet (limit {UNSAVED_S:.0f} s)"
        )
    return reasons
