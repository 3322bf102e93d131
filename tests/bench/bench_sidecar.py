"""Milliseconds that a sidecar takes to answer, over loopback and one kept connection: before a call, and after it.

    python tests/bench/bench_sidecar.py [--calls N]

It starts a broker and a worker of its own, and measures `certain` as well; the last line is JSON. For
scale: a bare `GET` that answers the document from memory is measured in the same run.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HANG_S = 60


@contextlib.contextmanager
def sidecar(servers: str, prefix: str) -> Iterator[http.client.HTTPConnection]:
    command = [sys.executable, "-m", "loopwarden.cli", "sidecar", "--port", "0", "--broker", servers]
    process = subprocess.Popen([*command, "--prefix", prefix], stderr=subprocess.PIPE, text=True, env=os.environ)
    assert process.stderr is not None
    try:
        place = next(line for line in process.stderr if "listening on " in line).split("http://")[1].strip()
        yield http.client.HTTPConnection(place, timeout=HANG_S)
    finally:
        process.terminate()
        process.wait(HANG_S)


def measured(calls: int, act: Callable[[int], None]) -> dict[str, float]:
    """Milliseconds: p50 and p99."""
    for number in range(calls // 10):
        act(-1 - number)
    took = []
    for number in range(calls):
        start = time.perf_counter()
        act(number)
        took.append((time.perf_counter() - start) * 1000)
    cuts = statistics.quantiles(took, n=100)
    return {"p50": round(cuts[49], 3), "p99": round(cuts[98], 3)}


def bench(connection: http.client.HTTPConnection, calls: int) -> dict[str, dict[str, float]]:
    def ask(method: str, path: str, body: dict[str, Any] | None = None) -> None:
        headers = {"Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        answer = response.read()
        assert response.status < 300, answer

    def call(number: int, **more: Any) -> dict[str, Any]:
        args = {"command": f"grep -rn loop src/{number}", "timeout": 30}
        return {"run_id": "bench", "tool": "exec", "args": args, "call_id": f"c{number}", **more}

    def pair(number: int) -> None:
        ask("POST", "/v1/calls/before", call(number, certain=2))
        ask("POST", "/v1/calls/after", call(number, result=f"result {number}"))

    ask("POST", "/v1/events", {"type": "run.started", "run_id": "bench"})
    return {
        "GET /healthz": measured(calls, lambda number: ask("GET", "/healthz")),
        "before": measured(calls, lambda number: ask("POST", "/v1/calls/before", call(number))),
        "after": measured(
            calls, lambda number: ask("POST", "/v1/calls/after", call(number, result=f"result {number}"))
        ),
        "before (certain) and after": measured(calls // 4, pair),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2000)
    options = parser.parse_args()

    from loopwarden.broker import LocalBroker, create_topics
    from loopwarden.cli.local_worker import LocalWorker
    from loopwarden.client import Connection
    from loopwarden_schemas.topics import declared_topics

    with tempfile.TemporaryDirectory() as folder, LocalBroker(Path(folder) / "broker", port=0) as broker:
        topics = declared_topics("bench-", partitions=2)
        create_topics(broker.bootstrap_servers, topics)
        worker = LocalWorker(Connection(broker.bootstrap_servers, topics.prefix), Path(folder))
        worker.start(lambda: None)
        try:
            with sidecar(broker.bootstrap_servers, topics.prefix) as connection:
                found = bench(connection, options.calls)
        finally:
            worker.stop()
    for name, took in found.items():
        print(f"{name:28} p50 {took['p50']:8.3f} ms   p99 {took['p99']:8.3f} ms")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
