"""What the worker counts for Prometheus. `LOOPWARDEN_METRICS_PORT` serves it at `/metrics`; without it nothing listens.

Named by Prometheus' rules: the prefix, the unit, `_total` for what only grows. No label has a run's id, so that the
number of series does not grow with the runs. Counted for a batch of one partition, never for an event: a call into the
client costs a microsecond, judging an event twenty.

Counted from the log by this worker: after a crash, what is judged again is counted again. What is so at a moment
(lag, age of the checkpoint) is not counted here but in `gauges`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from loopwarden.judge import RunState
from loopwarden_schemas.structs import Reason

VerdictKind = tuple[str, str, str | None]
"""Action, phase and detector (None for a `clear`)."""

# From one event alone to a full poll of a busy partition.
_BATCH_SECONDS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_CHECKPOINT_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


class Followed(NamedTuple):
    """What became of the verdicts of one run so far."""

    delivered: int = 0
    obeyed: int = 0
    disobeyed: int = 0


def followed(state: RunState | None) -> Followed:
    """Return what a run's state knows of its verdicts."""
    if state is None:
        return Followed()
    return Followed(state.enforcement.delivered, state.enforcement.obeyed, state.enforcement.disobeyed)


class Metrics:
    """The counters of one worker."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        events = Counter(
            "loopwarden_events", "Events read, dead letters included.", ("partition",), registry=self.registry
        )
        self._judge_seconds = Histogram(
            "loopwarden_judge_seconds",
            "Time from a batch of one partition's records to its verdicts, before they are sent.",
            buckets=_BATCH_SECONDS,
            registry=self.registry,
        )
        verdicts = Counter(
            "loopwarden_verdicts",
            "Verdicts published; a clear has no detector.",
            ("action", "phase", "detector"),
            registry=self.registry,
        )
        self._dead_letters = Counter(
            "loopwarden_dead_letters", "Events that went to the dead letters.", ("reason",), registry=self.registry
        )
        for reason in get_args(Reason):
            # There from the start: to Prometheus, a series that begins at 1 has not increased.
            self._dead_letters.labels(reason)
        self._judge_failures = Counter(
            "loopwarden_judge_failures",
            "Events that the judge failed on: bugs of Loopwarden's. They are dead letters, too.",
            registry=self.registry,
        )
        self._checkpoint_seconds = Histogram(
            "loopwarden_checkpoint_seconds",
            "Time that a checkpoint took, from its freeze until the changelog had it.",
            buckets=_CHECKPOINT_SECONDS,
            registry=self.registry,
        )
        self._delivered = Counter(
            "loopwarden_verdicts_delivered", "Events that named the verdict they followed.", registry=self.registry
        )
        self._obeyed = Counter(
            "loopwarden_calls_refused", "Calls that runners refused: blocks that were obeyed.", registry=self.registry
        )
        # Not a counter: a blocked call that started may still turn out refused.
        self._disobeyed = Gauge(
            "loopwarden_calls_disobeying", "Blocked calls that were made all the same.", registry=self.registry
        )

        # Asking the client for a series costs three times what counting does.
        self._events_of = cache(events.labels)
        self._verdicts_of = cache(verdicts.labels)

    def judged(
        self,
        partition: int,
        *,
        events: int,
        seconds: float,
        verdicts: Mapping[VerdictKind, int],
        rejected: Mapping[str, int],
    ) -> None:
        """Count a batch of one partition: its events, verdicts by kind and dead letters by reason."""
        self._events_of(str(partition)).inc(events)
        self._judge_seconds.observe(seconds)
        for (action, phase, detector), count in verdicts.items():
            self._verdicts_of(action, phase, detector or "").inc(count)
        for reason, count in rejected.items():
            self._dead_letters.labels(reason).inc(count)
            if reason == "judge_failed":
                self._judge_failures.inc(count)

    def checkpoint_took(self, seconds: float) -> None:
        """Count a checkpoint that was completed."""
        self._checkpoint_seconds.observe(seconds)

    def follow(self, before: Followed, state: RunState) -> Followed:
        """Count what became of a run's verdicts since `before`; return how it stands now."""
        now = followed(state)
        if now == before:
            return now
        # A run that began anew counts from zero.
        if now.obeyed < before.obeyed or now.delivered < before.delivered:
            before = Followed()
        self._delivered.inc(now.delivered - before.delivered)
        self._obeyed.inc(now.obeyed - before.obeyed)
        self._disobeyed.inc(now.disobeyed - before.disobeyed)
        return now
