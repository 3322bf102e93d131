"""What is so at a moment, for Prometheus: how far behind, how old the last checkpoint, how much is held."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from loopwarden.worker import health
from loopwarden.worker.standing import Standing
from loopwarden_schemas.verdicts import RULES_VERSION


class Gauges(Collector):
    """Reads the worker's newest standing whenever Prometheus asks."""

    def __init__(self, standing: Callable[[], Standing]) -> None:
        self._standing = standing

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        standing, now = self._standing(), time.monotonic()
        yield _gauge("loopwarden_ready", "1 where /readyz says so.", not health.not_ready(standing, now))
        yield _gauge(
            "loopwarden_event_loop_age_seconds", "Time since the event loop last came round.", now - standing.at
        )
        unsaved = 0.0 if standing.unsaved_since is None else now - standing.unsaved_since
        yield _gauge(
            "loopwarden_checkpoint_age_seconds",
            "Time since which something is judged and not durable; 0 where all is.",
            unsaved,
        )
        yield _gauge(
            "loopwarden_recovery_remaining_records",
            "Records of the changelog that are to be read before events are judged.",
            standing.recovery_remaining,
        )
        rebalances = CounterMetricFamily("loopwarden_rebalances", "How often partitions came and went.")
        rebalances.add_metric([], standing.rebalances)
        yield rebalances
        if standing.detectors_on is not None:
            yield _gauge(
                "loopwarden_detectors_on", "1 where the policy in force turns loop detectors on.", standing.detectors_on
            )
        rules = GaugeMetricFamily("loopwarden_rules_info", "Which rules it judges by.", labels=["rules_version"])
        rules.add_metric([str(RULES_VERSION)], 1)
        yield rules
        yield from _of_partitions(standing)


def _of_partitions(standing: Standing) -> Iterable[Metric]:
    lag = _by_partition("loopwarden_lag_records", "Records that wait to be judged, as far as the broker told.")
    lag_seconds = _by_partition(
        "loopwarden_lag_seconds", "How long the oldest record that is not judged waits, or may wait."
    )
    held = _by_partition("loopwarden_runs_held", "Runs kept decoded in memory.")
    for lane in standing.lanes:
        labels = [str(lane.partition)]
        if lane.lag is not None:
            lag.add_metric(labels, lane.lag)
            waiting = 0.0 if lane.behind_since is None else max(0.0, time.time() - lane.behind_since)
            lag_seconds.add_metric(labels, waiting)
        held.add_metric(labels, lane.runs_held)
    return [lag, lag_seconds, held]


def _gauge(name: str, words: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, words, value=float(value))


def _by_partition(name: str, words: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, words, labels=["partition"])
