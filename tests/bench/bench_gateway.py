"""`make bench-gateway`: what a gateway and a guard add to a call, and what certainty costs.

The calls of one run at a steady pace, against a real broker and worker: the time the agent's thread spends in the
gateway (started and finished together), in `before_call` without and with `certain`, and the processor time of the
whole process per call, the gateway's own thread included. After each pause the caches are cold, the more so on a busy
machine: hence the calls back to back, and the baseline (the result to JSON and back) in both ways.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from loopwarden.broker import LocalBroker
from loopwarden.client import Connection, apply_policy, create_topics
from loopwarden.gateway import Gateway, Run
from loopwarden.runner import GuardedRun, RunGuard
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.topics import declared_topics

CALLS = int(os.environ.get("BENCH_CALLS", "1000"))
PAUSE_S = 0.005
"""Between two calls, as a very busy agent would make them."""

CERTAIN_S = 1.0
STEADY_S = 20
POLICY = {"tools": {"loopDetection": {"enabled": True}}}
RESULT = {"content": [{"type": "text", "text": "line of text\n" * 80}], "details": {"status": "ok", "lines": 80}}


def paced(measured: Callable[[int], float], pause: float = PAUSE_S) -> list[float]:
    """Seconds of each of so many calls, the first tenth left out: everything warms up."""
    seconds = []
    for number in range(CALLS + CALLS // 10):
        seconds.append(measured(number))
        if pause:
            time.sleep(pause)
    return seconds[CALLS // 10 :]


def baseline(number: int) -> float:
    begun = time.perf_counter()
    json.loads(json.dumps(RESULT))
    return time.perf_counter() - begun


def one_call(run: Run, number: int) -> float:
    begun = time.perf_counter()
    with run.call("read", {"path": f"/src/module_{number}.py", "offset": 1, "limit": 80}) as call:
        call.result(RESULT)
    return time.perf_counter() - begun


def ask(guarded: GuardedRun, number: int, certain: float | None) -> float:
    begun = time.perf_counter()
    guarded.before_call("read", {"path": f"/src/module_{number}.py", "offset": 1, "limit": 80}, certain=certain)
    return time.perf_counter() - begun


def measure(connection: Connection) -> dict[str, Any]:
    found: dict[str, Any] = {"baseline": paced(baseline), "baseline, back to back": paced(baseline, 0)}
    for name, settings in (("call, full", {}), ("call, hash", {"payload": "hash"})):
        with Gateway(connection, **settings) as gateway, gateway.run() as run:
            gateway.run_started("warm").result(STEADY_S)
            cpu = time.process_time()
            found[name] = paced(lambda number, run=run: one_call(run, number))  # type: ignore[misc]
            found[f"{name}, cpu"] = (time.process_time() - cpu) / CALLS / 1.1
            found[f"{name}, back to back"] = paced(lambda number, run=run: one_call(run, number), 0)  # type: ignore[misc]
    with Gateway(connection) as gateway, RunGuard(gateway=gateway) as guard, gateway.run() as run:
        guarded = guard.run(run)
        one_call(run, 0)
        assert guarded.before_call("read", certain=STEADY_S).certain, "the worker judges nothing"

        def after_a_call(certain: float | None) -> Callable[[int], float]:
            def measured(number: int) -> float:
                one_call(run, number)
                return ask(guarded, number, certain)

            return measured

        found["before_call"] = paced(after_a_call(None))
        # The order that stands makes it hash the arguments.
        for number in range(21):
            with run.call("read", {"path": "/same"}) as call:
                call.result(number and "the same")
        assert guarded.before_call("read", {"path": "/same"}, certain=STEADY_S).action == "block"
        found["before_call, an order stands"] = paced(lambda number: ask(guarded, number, None))
        uncertain = guard.stats.uncertain
        found["before_call, certain"] = paced(after_a_call(CERTAIN_S))
        found["uncertain"] = guard.stats.uncertain - uncertain
    return found


def report(found: dict[str, Any]) -> None:
    table = Table(title=f"{CALLS} calls of one run, one each {PAUSE_S * 1000:.0f} ms")
    for column in ("in the agent's thread", "p50 us", "p99 us", "most us"):
        table.add_column(column, justify="left" if column.startswith("in") else "right")
    summary: dict[str, Any] = {"bench": "gateway", "calls": CALLS, "uncertain": found["uncertain"]}
    for name, seconds in found.items():
        if isinstance(seconds, list):
            cuts = statistics.quantiles(seconds, n=100)
            table.add_row(name, *(f"{each * 1e6:,.1f}" for each in (cuts[49], cuts[98], max(seconds))))
            summary[name] = {"p50_us": round(cuts[49] * 1e6, 1), "p99_us": round(cuts[98] * 1e6, 1)}
    for name in ("call, full, cpu", "call, hash, cpu"):
        table.add_row(f"{name} of all threads", f"{found[name] * 1e6:,.1f}", "", "")
        summary[name] = round(found[name] * 1e6, 1)
    Console(width=110).print(table)
    print(json.dumps(summary))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, LocalBroker(Path(folder) / "broker", port=0) as broker:
        connection = Connection(broker.bootstrap_servers, "bench-")
        create_topics(broker.bootstrap_servers, declared_topics("bench-", partitions=1))
        apply_policy(connection, PolicyDocument.from_value(POLICY), by="bench", why="bench", ts=0)
        environment = {
            **os.environ,
            "LOOPWARDEN_BOOTSTRAP_SERVERS": broker.bootstrap_servers,
            "LOOPWARDEN_TOPIC_PREFIX": "bench-",
            "LOOPWARDEN_DATA_DIR": str(Path(folder) / "worker"),
        }
        worker = subprocess.Popen(
            [sys.executable, "-m", "loopwarden.worker"], env=environment, stderr=subprocess.DEVNULL
        )
        try:
            time.sleep(6)  # It starts.
            report(measure(connection))
        finally:
            worker.terminate()
            worker.wait(30)


if __name__ == "__main__":
    main()
