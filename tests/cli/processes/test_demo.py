"""`loopwarden demo` against a real worker: what OpenClaw refused is what Loopwarden blocks."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from loopwarden.broker import LocalBroker


@pytest.fixture(scope="module")
def prefix(broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An installation with a worker and no policy."""
    import os
    import subprocess
    import sys

    from loopwarden.client import create_topics
    from loopwarden_schemas.topics import declared_topics

    prefix = "demo-"
    create_topics(broker.bootstrap_servers, declared_topics(prefix, partitions=2))
    log = tmp_path_factory.mktemp("demo") / "worker.log"
    options = ["--broker", broker.bootstrap_servers, "--prefix", prefix, "--data-dir", str(log.parent / "faust")]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "loopwarden.cli", "worker", *options], stdout=stream, stderr=stream, env=os.environ
        )
    yield prefix
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0, log.read_text()
    assert "the loop detectors are off" in log.read_text()


@pytest.fixture
def demo(run: Callable[..., Any], broker: LocalBroker, prefix: str) -> Callable[..., Any]:
    return lambda *arguments: run(
        "demo", *arguments, "--speed", "0", "--broker", broker.bootstrap_servers, "--prefix", prefix
    )


def test_the_recordings_are_judged_as_openclaw_judged_them_each_time_they_are_played(demo: Callable[..., Any]) -> None:
    for _ in range(2):
        ran = demo()
        assert ran.code == 0, ran.err
        assert (
            "7 runs, 238 calls, 128 verdicts: 1 run aborted, 111 calls blocked: exactly those that OpenClaw refused"
            in ran.out
        )
        rows = {row[0]: row[1:] for row in map(_cells, ran.out.splitlines()) if len(row) == 7}
        assert rows["same-call-exec"] == ["40", "1", "32", "32", "yes", "-"]
        assert rows["loop-across-compaction"] == ["40", "0", "0", "0", "-", "call 9"]
        [aborted] = [line for line in ran.out.splitlines() if " abort " in line]
        assert "OpenClaw let it go on for 31 calls" in aborted


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("│ ").split("│")]


def test_runs_of_a_file_get_the_policy_in_force_and_bad_lines_are_told(
    demo: Callable[..., Any], tmp_path: Path
) -> None:
    lines = [b"nonsense"]
    for number in range(12):
        call = {"run_id": "r", "call_id": str(number), "tool": "read", "args": {"path": "x"}}
        lines.append(orjson.dumps({"type": "tool_call.started", **call}))
        lines.append(orjson.dumps({"type": "tool_call.finished", **call, "result": "the same"}))
        if number == 5:
            lines.append(orjson.dumps({"type": "compaction", "run_id": "r", "trigger": "overflow", "succeeded": True}))
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"\n".join(lines))
    ran = demo(file)
    assert ran.code == 1
    assert "line 1: not JSON" in ran.err
    assert "1 run, 12 calls, 1 verdict: 1 run aborted, 0 calls blocked" in ran.out


def test_a_file_without_events_is_refused(demo: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "empty.jsonl"
    file.write_bytes(b"")
    ran = demo(file)
    assert (ran.code, ran.err) == (2, f"loopwarden: {file}: must hold at least one event that can be played\n")


def test_without_a_worker_it_says_so(
    run: Callable[..., Any], broker: LocalBroker, topics: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loopwarden.cli.playing._SILENCE_S", 1.0)
    ran = run("demo", "--speed", "0", "--broker", broker.bootstrap_servers, "--prefix", topics.prefix)
    assert ran.code == 2
    assert "no worker has judged what was published" in ran.err
    assert "`loopwarden worker` starts one" in ran.err
