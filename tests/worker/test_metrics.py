"""What became of verdicts is counted, and served where a port says so."""

from __future__ import annotations

import socket
import urllib.request
from typing import Any

from loopwarden.worker.metrics import Metrics


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_without_a_port_nothing_is_served_and_all_is_counted() -> None:
    assert Metrics().registry.get_sample_value("loopwarden_calls_refused_total") == 0


def test_a_worker_tells_which_verdicts_were_obeyed(installation: Any, strict: Any, repeated_call: Any) -> None:
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
    installation.wait_until_judged()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    assert "loopwarden_calls_refused_total 1.0" in lines
    assert "loopwarden_calls_disobeying 1.0" in lines
    assert "loopwarden_verdicts_delivered_total 1.0" in lines
    assert 'loopwarden_verdicts_total{action="block",phase="attempt",reason="generic_repeat"} 1.0' in lines
