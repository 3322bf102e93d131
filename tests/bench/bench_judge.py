"""`make bench-judge`: CPU microseconds per event of each stage, one core, on the random histories as MessagePack.

Machines here are shared and noisy, so every stage is given beside a baseline measured in the same round:
`msgpack.unpackb` of the same bytes. Quote the ratios. Where the compiled judge is on PYTHONPATH (`make` puts it there),
the pure Python one is measured beside it, in a process of its own.
"""

from __future__ import annotations

import gzip
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgpack
from rich.console import Console
from rich.table import Table

from loopwarden.judge import RunState, fold, judge
from loopwarden.judge.outcome import hash_call
from loopwarden_schemas.codec import decode_record, encode_event, encode_verdict
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.structs import TOOL_CALL_EVENTS, EventOfRun, PolicyApplied, Rejected, Verdict

HISTORIES = Path(__file__).resolve().parents[1] / "vectors" / "random-histories.jsonl.gz"

History = tuple[PolicyDocument, list[bytes]]


def histories() -> list[History]:
    """Each history's policy and its events as records."""
    found = []
    with gzip.open(HISTORIES, "rt", encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            events = [
                {"schema": 1, "event_id": f"{case['name']}/{index}", "ts": index, **event}
                for index, event in enumerate(case["events"])
            ]
            policy = PolicyDocument.from_value({"tools": {"loopDetection": case["config"]}})
            policy.resolve(None)  # A fleet's document is resolved once, not once per run.
            found.append((policy, [encode_event(event) for event in events]))
    return found


def decoded(record: bytes, at: int) -> EventOfRun:
    """The one event of a record that is known to hold a good one."""
    (event,) = decode_record(record, at)
    assert not isinstance(event, (Rejected, PolicyApplied))
    return event


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of a call."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def one_round(cases: list[History]) -> dict[str, float]:
    """CPU seconds of each stage over all events."""
    events = [(policy, [decoded(record, at) for at, record in enumerate(records)]) for policy, records in cases]
    verdicts: list[Verdict] = []

    def unpack() -> None:
        for _policy, records in cases:
            for record in records:
                msgpack.unpackb(record)

    def decode() -> None:
        for _policy, records in cases:
            for at, record in enumerate(records):
                decode_record(record, at)

    def hash_payloads() -> None:
        for _policy, history in events:
            for event in history:
                if isinstance(event, TOOL_CALL_EVENTS):
                    hash_call(event)

    def hash_and_fold() -> None:
        for policy, history in events:
            states: dict[str, RunState] = {}
            for event in history:
                state, _decisions, found = judge(states.get(event.run_id), event, policy)
                states[event.run_id] = state
                verdicts.extend(found)

    def encode() -> None:
        for verdict in verdicts:
            encode_verdict(verdict)

    def whole_path() -> None:
        for policy, records in cases:
            states: dict[str, RunState] = {}
            for at, record in enumerate(records):
                event = decoded(record, at)
                state, _decisions, found = judge(states.get(event.run_id), event, policy)
                states[event.run_id] = state
                for verdict in found:
                    encode_verdict(verdict)

    seconds = {
        "baseline": cpu(unpack),
        "decode": cpu(decode),
        "hash": cpu(hash_payloads),
        "hash and fold": cpu(hash_and_fold),
        "encode": cpu(encode),
        "total": cpu(whole_path),
    }
    seconds["fold"] = seconds["hash and fold"] - seconds["hash"]
    return seconds


PRINTED = ("decode", "hash", "fold", "encode", "total")
STAGES = ("baseline", "decode", "hash", "fold", "hash and fold", "encode", "total")


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Of each stage: median, least and most microseconds per event, and the median ratio to the baseline."""
    cases = histories()
    count = sum(len(records) for _policy, records in cases)
    one_round(cases)
    measured = [one_round(cases) for _ in range(rounds)]
    found: dict[str, dict[str, float]] = {"events": {"events": count, "histories": len(cases)}}
    for stage in STAGES:
        each = [one[stage] / count * 1e6 for one in measured]
        ratio = statistics.median(one[stage] / one["baseline"] for one in measured)
        found[stage] = {"us": statistics.median(each), "least": min(each), "most": max(each), "ratio": ratio}
    return found


def measure_pure_python(rounds: int) -> dict[str, dict[str, float]]:
    """The same of the judge as it lies in the sources."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, __file__, str(rounds), "--json"]
    found: dict[str, dict[str, float]] = json.loads(subprocess.check_output(command, env=environment))
    return found


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    measured = measure(rounds)
    if sys.argv[2:] == ["--json"]:
        print(json.dumps(measured))
        return
    is_compiled = not str(fold.__file__).endswith(".py")
    builds = {"compiled": measured, "pure Python": measure_pure_python(rounds)} if is_compiled else {"": measured}
    for build, stages in builds.items():
        events = stages["events"]
        title = f"judge{build and ', '}{build}: {events['events']} events of {events['histories']} random histories"
        table = Table(title=f"{title}, {rounds} rounds, one core")
        for column in ("stage", "median us/event", "least", "most", "x baseline"):
            table.add_column(column, justify="left" if column == "stage" else "right")
        for stage in STAGES:
            one = stages[stage]
            name = f"{stage} (msgpack.unpackb alone)" if stage == "baseline" else stage
            table.add_row(name, *(f"{one[column]:.2f}" for column in ("us", "least", "most", "ratio")))
        Console().print(table)
    last = {
        "bench": "judge",
        "events": measured["events"]["events"],
        "us_per_event": {stage: round(measured[stage]["us"], 2) for stage in PRINTED},
        "compiled": is_compiled,
        "baseline_us": round(measured["baseline"]["us"], 2),
    }
    if is_compiled:
        last["pure_python_us_per_event"] = {stage: round(builds["pure Python"][stage]["us"], 2) for stage in PRINTED}
    print(json.dumps(last))


if __name__ == "__main__":
    main()
