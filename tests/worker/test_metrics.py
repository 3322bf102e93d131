"""What a worker counts, and what it tells of the moment, as Prometheus reads it."""

from __future__ import annotations

import urllib.request
from typing import Any, get_args

from prometheus_client.parser import text_string_to_metric_families

from loopwarden.broker.ports import free_port
from loopwarden.worker.metrics import Metrics
from loopwarden_schemas.structs import Reason

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(port: int) -> Samples:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    families = text_string_to_metric_families(text)
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value for each in families for sample in each.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float | None:
    return samples.get((name, frozenset(labels.items())))


def total(samples: Samples, name: str) -> float:
    return sum(value for (found, _), value in samples.items() if found == name)


def test_without_a_port_nothing_is_served_and_all_is_counted() -> None:
    assert Metrics().registry.get_sample_value("loopwarden_calls_refused_total") == 0


def test_what_was_never_counted_is_there_as_zero_so_that_its_first_increase_is_one() -> None:
    metrics = Metrics()
    registry = metrics.registry
    for reason in get_args(Reason):
        assert registry.get_sample_value("loopwarden_dead_letters_total", {"reason": reason}) == 0
    assert registry.get_sample_value("loopwarden_judge_failures_total") == 0
    metrics.judged(0, events=3, seconds=0.1, verdicts={}, rejected={"judge_failed": 2, "misrouted": 1})
    assert registry.get_sample_value("loopwarden_judge_failures_total") == 2
    assert registry.get_sample_value("loopwarden_dead_letters_total", {"reason": "judge_failed"}) == 2
    assert registry.get_sample_value("loopwarden_events_total", {"partition": "0"}) == 3


def test_a_worker_tells_what_it_judged_and_which_verdicts_were_obeyed(
    installation: Any, strict: Any, repeated_call: Any
) -> None:
    port = free_port()
    installation.apply(strict)
    installation.start_worker(LOOPWARDEN_METRICS_PORT=str(port))
    for number in range(4):
        for event in repeated_call("run-7", number):
            installation.publish(event)
    started, finished = repeated_call("run-7", 4)
    installation.publish(started)
    refused = {**repeated_call("run-7", 5)[0], "type": "tool_call.blocked", "event_id": "b", "verdict_id": "v"}
    installation.publish(refused)
    installation.publish(finished)
    installation.publish_bytes(b"not an event", key=b"run-7", partition=installation.partition("run-7"))
    installation.wait_until_judged()
    published = len(installation.verdicts())
    samples = scrape(port)
    assert value(samples, "loopwarden_calls_refused_total") == 1
    assert value(samples, "loopwarden_calls_disobeying") == 1
    assert value(samples, "loopwarden_verdicts_delivered_total") == 1
    assert value(samples, "loopwarden_verdicts_total", action="block", phase="attempt", detector="generic_repeat") == 1
    assert total(samples, "loopwarden_verdicts_total") == published
    # The policy is an event of each of the two partitions.
    assert total(samples, "loopwarden_events_total") == 2 + 4 * 2 + 3 + 1
    [dead_letter] = installation.dead_letters()
    reason = dict(dead_letter.headers)["reason"].decode()
    assert value(samples, "loopwarden_dead_letters_total", reason=reason) == 1
    assert total(samples, "loopwarden_dead_letters_total") == 1
    assert total(samples, "loopwarden_judge_seconds_sum") > 0

    def settled() -> bool:
        samples = scrape(port)
        return (
            value(samples, "loopwarden_ready") == 1
            and all(value(samples, "loopwarden_lag_records", partition=each) == 0 for each in "01")
            and all(value(samples, "loopwarden_lag_seconds", partition=each) == 0 for each in "01")
            and value(samples, "loopwarden_checkpoint_age_seconds") == 0
            and total(samples, "loopwarden_runs_held") == 1
        )

    installation.until(settled)
    samples = scrape(port)
    assert value(samples, "loopwarden_detectors_on") == 1
    assert value(samples, "loopwarden_recovery_remaining_records") == 0
    assert total(samples, "loopwarden_rebalances_total") >= 1
    assert total(samples, "loopwarden_checkpoint_seconds_count") >= 1
