"""A run from its first event to its abort, through the sidecar and a real worker."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .conftest import NOBODY

EXAMPLE = Path(__file__).parents[2] / "infra" / "examples" / "sidecar.sh"

CALL = {"run_id": "looper", "tool": "read", "args": {"path": "/x"}, "certain": 30}


def made(sidecar: Any, number: int) -> tuple[str, str | None]:
    """Make a call that always returns the same; return the answer before it and the note after it."""
    call = {**CALL, "call_id": f"c{number}"}
    answer = sidecar.post("/v1/calls/before", **call)
    if answer["action"] in ("block", "abort"):
        return answer["action"], answer["message"]
    return answer["action"], sidecar.post("/v1/calls/after", **call, result="the same")["note"]


def test_a_loop_is_warned_about_with_the_result_and_then_blocked(sidecar: Any) -> None:
    sidecar.post("/v1/events", type="run.started", run_id="looper")
    told = [made(sidecar, number) for number in range(5)]
    assert [action for action, _ in told] == ["allow", "allow", "allow", "allow", "block"]
    assert told[0][1] is told[1][1] is None
    assert told[2][1] is not None and "was called 2 times with the same arguments" in told[2][1]
    assert told[4][1] is not None and "This call is blocked" in told[4][1]


def test_what_an_agent_says_is_in_the_log_once_and_in_order(sidecar: Any, judging: Any) -> None:
    from loopwarden_schemas.codec import decode_record

    sidecar.post("/v1/events", type="run.started", run_id="looper", agent_id="docs", session_id="s")
    for number in range(5):
        made(sidecar, number)
    sidecar.post("/v1/events", type="compaction", run_id="looper", trigger="overflow", succeeded=True)
    sidecar.post("/v1/events", type="run.finished", run_id="looper", reason="done")
    assert sidecar.stop() == 0
    events = [
        event
        for record in judging.read(judging.topics.events.name)
        for event in decode_record(record.value, record.timestamp)
        if getattr(event, "run_id", None) == "looper"
    ]
    assert [type(event).__name__ for event in events] == [
        "RunStarted",
        *["ToolCallStarted", "ToolCallFinished"] * 4,
        "ToolCallBlocked",
        "Compaction",
        "RunFinished",
    ]
    assert {(event.agent_id, event.session_id) for event in events} == {("docs", "s")}
    issued = {verdict.verdict_id for _, verdict in judging.verdicts()}
    # The warning that was shown, and the block that was obeyed.
    assert events[6].verdict_id in issued
    assert events[9].verdict_id in issued


def test_an_abort_refuses_every_call_and_outlives_the_sidecar(
    sidecar: Any, judging: Any, start: Callable[..., Any]
) -> None:
    sidecar.post("/v1/events", type="run.started", run_id="looper")
    sidecar.post("/v1/events", type="compaction", run_id="looper", trigger="overflow", succeeded=True)
    assert [made(sidecar, number)[0] for number in range(4)] == ["allow", "allow", "allow", "abort"]
    assert sidecar.post("/v1/calls/before", run_id="looper", tool="other", certain=30)["action"] == "abort"
    now = sidecar.request("GET", "/v1/runs/looper")[1]
    assert now["aborted"] and now["message"].startswith("The run is ended: after its context was compacted")
    assert sidecar.stop() == 0

    another = start("--broker", judging.servers, "--prefix", judging.topics.prefix)
    assert another.post("/v1/calls/before", run_id="looper", tool="other", certain=30)["action"] == "abort"


def test_an_id_that_is_used_again_is_not_bound_by_what_the_finished_run_was_told(sidecar: Any) -> None:
    for _ in range(2):
        sidecar.post("/v1/events", type="run.started", run_id="looper")
        assert [made(sidecar, number)[0] == "block" for number in range(5)] == [False] * 4 + [True]
        sidecar.post("/v1/events", type="run.finished", run_id="looper")
    assert sidecar.post("/v1/calls/before", **CALL)["action"] == "allow"


def test_the_example_of_twenty_lines_of_shell_is_warned_and_refused(sidecar: Any) -> None:
    environment = {**os.environ, "LOOPWARDEN_SIDECAR_URL": sidecar.place}
    ended = subprocess.run([EXAMPLE, "from-shell", "5"], env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[:2] == ["1 read, ", "2 read, "]
    assert lines[2].startswith("3 read, `read` was called 2 times with the same arguments")
    assert lines[4].startswith("5 refused: `read` was called 4 times with the same arguments")


def test_the_example_goes_on_without_a_sidecar_and_says_so() -> None:
    environment = {**os.environ, "LOOPWARDEN_SIDECAR_URL": "http://127.0.0.1:9"}
    ended = subprocess.run([EXAMPLE, "from-shell", "3"], env=environment, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout.splitlines()) == (0, ["1 read, ", "2 read, ", "3 read, "])
    assert "curl" in ended.stderr


def test_the_example_goes_on_with_a_wrong_token(start: Callable[..., Any]) -> None:
    guarded = start("--broker", NOBODY, LOOPWARDEN_SIDECAR_TOKEN="t")
    environment = {**os.environ, "LOOPWARDEN_SIDECAR_URL": guarded.place, "LOOPWARDEN_SIDECAR_TOKEN": "guess"}
    ended = subprocess.run([EXAMPLE, "from-shell", "2"], env=environment, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout.splitlines()) == (0, ["1 read, ", "2 read, "])
    assert "401" in ended.stderr
