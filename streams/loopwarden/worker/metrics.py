"""What was published and what became of it, for Prometheus. `LOOPWARDEN_METRICS_PORT` serves it at `/metrics`.

Counted from the log by this worker: after a crash, what is judged again is counted again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server

from loopwarden.judge import RunState
from loopwarden.worker.errors import SettingsError
from loopwarden_schemas.structs import Verdict


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
        self._verdicts = Counter(
            "loopwarden_verdicts",
            "Verdicts published.",
            ("action", "phase", "reason"),
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

    def published(self, verdicts: Iterable[Verdict]) -> None:
        """Count verdicts."""
        for verdict in verdicts:
            self._verdicts.labels(verdict.action, verdict.phase, verdict.reason).inc()

    def follow(self, before: Followed, state: RunState) -> Followed:
        """Count what became of a run's verdicts since `before`; return how it stands now."""
        now = followed(state)
        # A run that began anew counts from zero.
        if now.obeyed < before.obeyed or now.delivered < before.delivered:
            before = Followed()
        self._delivered.inc(now.delivered - before.delivered)
        self._obeyed.inc(now.obeyed - before.obeyed)
        self._disobeyed.inc(now.disobeyed - before.disobeyed)
        return now

    def serve(self, address: str, port: int) -> None:
        """Serve them over HTTP, in a thread of its own that ends with the process.

        Raises:
            SettingsError: the port cannot be listened on.
        """
        try:
            start_http_server(port, address, self.registry)
        except OSError as error:
            raise SettingsError(
                f"LOOPWARDEN_METRICS_PORT: must be a free port of {address}, got {port}: {error}"
            ) from None
