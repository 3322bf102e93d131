"""Real agent runs through Apache Kafka and a worker: the verdicts are, id for id, those of `loopwarden judge`."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loopwarden.recordings import POLICY, recordings

SHARED = Path(os.environ.get("LOOPWARDEN_SHARED", Path(__file__).parents[2].parent / "shared"))
TRACES = {"intercode": 600, "sweagent_demos": 18, "tau_gpt4o_airline": 60}
"""Runs taken of each file."""

EAGER = {"tools": {"loopDetection": {"enabled": True, "warningThreshold": 2, "criticalThreshold": 3}}}
"""Short runs give many verdicts under it."""


def trace(name: str, folder: Path) -> Path:
    """The first runs of a file of traces, in a file of their own."""
    path = SHARED / "traces" / f"{name}.jsonl.gz"
    if not path.exists():
        pytest.skip(f"{path} is not here: set LOOPWARDEN_SHARED to the folder that has it")
    part = folder / f"{name}.jsonl"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        part.write_text("".join(line for line, _ in zip(lines, range(TRACES[name]), strict=False)), encoding="utf-8")
    return part


def loopwarden(*arguments: str | Path, environment: dict[str, str]) -> str:
    """Run the command; return what it prints."""
    command = [sys.executable, "-m", "loopwarden.cli", *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def judged_at_once(file: Path, policy: dict[str, Any], installation: Any) -> list[str]:
    """The verdict ids of `loopwarden judge` on the same file."""
    policy_file = installation.folder / "policy.json5"
    policy_file.write_text(json.dumps(policy), encoding="utf-8")
    printed = loopwarden("judge", file, "--policy", policy_file, "--json", environment=installation.environment())
    return [json.loads(line)["verdict_id"] for line in printed.splitlines()]


def published(installation: Any) -> list[str]:
    return [verdict.verdict_id for _partition, verdict in installation.verdicts()]


@pytest.mark.parametrize("name", sorted(TRACES))
def test_traces_give_the_verdicts_of_judge(name: str, installation: Any, tmp_path: Path) -> None:
    file = trace(name, tmp_path)
    installation.apply(EAGER)
    installation.start_worker()
    loopwarden("publish", file, environment=installation.environment())
    installation.wait_until_judged()
    expected = judged_at_once(file, EAGER, installation)
    assert expected
    assert sorted(published(installation)) == sorted(expected)
    assert installation.dead_letters() == []


def test_all_recordings_give_the_verdicts_of_judge(installation: Any) -> None:
    installation.apply(POLICY)
    installation.start_worker()
    for file in recordings().values():
        loopwarden("publish", file, environment=installation.environment())
    installation.wait_until_judged()
    expected = [
        verdict_id for file in recordings().values() for verdict_id in judged_at_once(file, POLICY, installation)
    ]
    assert sorted(published(installation)) == sorted(expected)


def test_a_worker_killed_in_the_middle_of_recordings_changes_nothing(installation: Any) -> None:
    installation.apply(POLICY)
    worker = installation.start_worker()
    files = list(recordings().values())
    for number, file in enumerate(files):
        loopwarden("publish", file, environment=installation.environment())
        if number == len(files) // 2:
            worker.kill()
            worker = installation.start_worker()
    installation.wait_until_judged()
    expected = [verdict_id for file in files for verdict_id in judged_at_once(file, POLICY, installation)]
    assert sorted(published(installation)) == sorted(expected)


def test_a_worker_killed_in_the_middle_of_traces_changes_nothing(installation: Any, tmp_path: Path) -> None:
    file = trace("tau_gpt4o_airline", tmp_path)
    installation.apply(EAGER)
    worker = installation.start_worker()
    command = [sys.executable, "-m", "loopwarden.cli", "publish", str(file), "--rate", "400"]
    with subprocess.Popen(command, env=installation.environment(), stderr=subprocess.DEVNULL) as publishing:
        for _kill in range(2):
            worker.wait_for_log("detectors are on")
            worker.kill()
            worker = installation.start_worker()
        assert publishing.wait(120) == 0
    installation.wait_until_judged()
    assert sorted(published(installation)) == sorted(judged_at_once(file, EAGER, installation))
