"""The live page with ten thousand live runs: memory per run, events per second, milliseconds of each answer.

    python tests/bench/bench_web.py [--runs N] [--rate EVENTS_PER_SECOND]

Events are decoded and taken as the reading thread does it, in the server's process, while pages are asked for over
HTTP. The broker is left out: how fast records come from it is what `bench-replay` measures.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import resource
import statistics
import threading
import time
from collections.abc import Iterator

import uvicorn

from loopwarden.client import Connection, Record
from loopwarden.serving import Listening
from loopwarden.web import WEB
from loopwarden.web.app import web_app
from loopwarden.web.watching import Watching
from loopwarden_schemas.codec import encode_event, encode_verdict
from loopwarden_schemas.structs import Verdict

PATHS = ("/", "/runs", "/runs?text=run-77&order=newest", "/verdicts", "/v1/fleet", "/v1/runs", "/v1/verdicts")
ASKED = 40
CALLS = 30
BATCH = 500


def records(runs: int, first: int) -> Iterator[Record]:
    """A call and its outcome of each run, by turns; every fifth run does the same over and over."""
    now = int(time.time() * 1000)
    for number in range(runs):
        run_id = f"run-{number}"
        again = number % 5 == 0
        call = {
            "run_id": run_id,
            "agent_id": f"agent-{number % 50}",
            "ts": now,
            "call_id": f"c{first}",
            "tool": "exec",
            "args": {"command": "npm test" if again else f"step {first}", "cwd": "/work"},
        }
        result = "FAIL" if again else f"done {first}"
        started = {"type": "tool_call.started", "event_id": f"{run_id}-{first}-s", **call}
        finished = {"type": "tool_call.finished", "event_id": f"{run_id}-{first}-f", **call, "result": result}
        for event in (started, finished):
            yield Record(number % 8, first, now, run_id.encode(), encode_event(event), [])


def verdicts(runs: int) -> Iterator[Record]:
    """A block for every fifth run."""
    now = int(time.time() * 1000)
    fields = dict.fromkeys(Verdict.__struct_fields__)
    for number in range(0, runs, 5):
        told = {
            **fields,
            "schema": 1,
            "verdict_id": f"v{number}",
            "begun": now,
            "n": 1,
            "action": "block",
            "phase": "order",
            "run_id": f"run-{number}",
            "tool": "exec",
            "scope": "call",
            "reason": "generic_repeat",
            "message": "`exec` was called 20 times with the same arguments and always returned the same.",
            "event_id": "e",
            "policy_digest": "0" * 32,
            "rules_version": 1,
            "ts": now,
            "delivered": 0,
            "obeyed": 0,
            "disobeyed": 0,
        }
        yield Record(number % 8, number, now, b"", encode_verdict(Verdict(**told)), [])


def main() -> None:
    """Fill a fleet, then ask for its pages while events go on."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--rate", type=int, default=2_000)
    given = parser.parse_args()
    watching = Watching(Connection("127.0.0.1:9"), 3_600_000)
    encoded = [list(records(given.runs, first)) for first in range(2)]
    before = resident()
    events = 0
    spent = 0.0
    for first in range(CALLS):
        made = list(records(given.runs, first))
        started = time.perf_counter()
        for start in range(0, len(made), BATCH):
            watching._take_events(made[start : start + BATCH])
        spent += time.perf_counter() - started
        events += len(made)
    del made
    watching._take_verdicts(list(verdicts(given.runs)))
    memory = resident() - before
    assert watching.fleet.run("run-5") is not None
    print(f"{given.runs:,} runs, {events:,} events: {events / spent:,.0f}/s, {memory / given.runs:,.0f} bytes a run")
    answers = ask_while_events_go_on(watching, encoded, given.rate)
    for path, milliseconds in answers.items():
        print(f"{path:<40} median {statistics.median(milliseconds):7.1f} ms   worst {max(milliseconds):7.1f} ms")
    print(
        json.dumps(
            {
                "bench": "web",
                "runs": given.runs,
                "events_per_second": round(events / spent),
                "bytes_per_run": round(memory / given.runs),
                "median_ms": {path: round(statistics.median(each), 1) for path, each in answers.items()},
                "worst_ms": {path: round(max(each), 1) for path, each in answers.items()},
            }
        )
    )


def ask_while_events_go_on(watching: Watching, encoded: list[list[Record]], rate: int) -> dict[str, list[float]]:
    """Return how long each path's answers took, in ms."""
    listening = Listening.given(WEB, port=0, environment={})
    server = uvicorn.Server(uvicorn.Config(web_app(watching, listening), port=0, log_level="warning", lifespan="off"))
    serving = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    serving.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    stop = threading.Event()

    def publish() -> None:
        batch = max(1, rate // 10)
        for number in range(1 << 30):
            made = encoded[number % len(encoded)]
            start = number * batch % len(made)
            watching._take_events(made[start : start + batch])
            if stop.wait(0.1):
                return

    publishing = threading.Thread(target=publish)
    publishing.start()
    answers: dict[str, list[float]] = {path: [] for path in PATHS}
    try:
        for _ in range(ASKED):
            for path in PATHS:
                started = time.perf_counter()
                connection = http.client.HTTPConnection("127.0.0.1", port)
                connection.request("GET", path)
                response = connection.getresponse()
                response.read()
                connection.close()
                assert response.status == 200, path
                answers[path].append((time.perf_counter() - started) * 1000)
    finally:
        stop.set()
        publishing.join()
        server.should_exit = True
        serving.join()
    return answers


def resident() -> int:
    """Bytes of this process that are in memory."""
    with open("/proc/self/statm") as file:  # noqa: PTH123 - a kernel's file
        return int(file.read().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    main()
