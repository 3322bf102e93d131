"""`loopwarden what-if` and `loopwarden tune` on files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loopwarden.recordings import recordings

from .conftest import Ran

Loopwarden = Callable[..., Ran]


def policy(folder: Path, warning: int, critical: int) -> Path:
    file = folder / f"at-{critical}.json5"
    block = {"enabled": True, "warningThreshold": warning, "criticalThreshold": critical}
    file.write_text(json.dumps({"tools": {"loopDetection": block}}))
    return file


def trajectory(name: str, calls: int, outcome: str, repeats: int) -> dict[str, Any]:
    """A run that makes the same call so many times, and then others."""
    same = {"tool": "read", "args": {"path": "x"}, "result": "same", "error": False}
    events = [{**same, "args": {"path": "x" if at < repeats else str(at)}} for at in range(calls)]
    return {"source": "test", "run": name, "task": "t", "outcome": outcome, "exit": "done", "events": events}


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Runs that loop and fail, and one that repeats itself a little and succeeds."""
    file = tmp_path / "runs.jsonl"
    runs = [trajectory(f"bad-{at}", 20, "unresolved", 20) for at in range(3)]
    runs += [trajectory(f"good-{at}", 20, "resolved", 1) for at in range(5)]
    runs += [trajectory("patient", 20, "resolved", 6)]
    file.write_text("".join(json.dumps(each) + "\n" for each in runs))
    return file


def test_what_if_tells_which_runs_change_what_is_spared_and_who_is_hurt(
    run: Loopwarden, history: Path, tmp_path: Path
) -> None:
    new, old = policy(tmp_path, 2, 4), policy(tmp_path, 5, 10)

    ran = run("what-if", "--policy", new, "--against", old, "--from-file", history, "--json")

    assert ran.code == 0, ran.err
    *runs, summary = [json.loads(line) for line in ran.out.splitlines()]
    assert {each["run_id"]: each["changes"] for each in runs} == {
        **{f"bad-{at}": {"warned": "earlier", "blocked": "earlier"} for at in range(3)},
        "patient": {"warned": "earlier", "blocked": "newly"},
    }
    assert summary["changes"]["blocked"] == {"earlier": 3, "later": 0, "newly": 1, "no more": 0, "as before": 0}
    assert summary["spared"]["more"]["calls"] == 3 * 6 + 2
    assert summary["resolved_hurt"] == ["patient"]
    assert summary["outcomes"]["unresolved"] == {"runs": 3, "stopped_old": 3, "stopped_new": 3}


def test_what_if_says_it_in_words(run: Loopwarden, history: Path, tmp_path: Path) -> None:
    ran = run("what-if", "--policy", policy(tmp_path, 2, 4), "--from-file", history)

    assert ran.code == 0, ran.err
    assert "9 runs, 180 calls" in ran.out
    assert "instead of the policies in force by the log" in ran.out
    assert "resolved runs hurt: 1 of 6; before: 0" in ran.out
    assert "resolved, and newly hurt: patient" in ran.out


def test_only_the_runs_that_are_asked_for_are_judged(run: Loopwarden, history: Path, tmp_path: Path) -> None:
    strict = policy(tmp_path, 2, 4)

    one = run("what-if", "--policy", strict, "--from-file", history, "--run", "bad-1", "--json")
    none = run("what-if", "--policy", strict, "--from-file", history, "--run", "nobody")

    assert json.loads(one.out.splitlines()[-1])["runs"] == 1
    assert none.code == 2
    assert "run nobody" in none.err


def test_tune_chooses_what_stops_the_loops_and_harms_nobody_and_writes_it(
    run: Loopwarden, history: Path, tmp_path: Path
) -> None:
    file = tmp_path / "tuned.json5"

    ran = run("tune", "--from-file", history, "-o", file)

    assert ran.code == 0, ran.err
    assert "6 resolved runs, 3 unresolved" in ran.out
    assert "@ chosen" in ran.out
    tried = run("what-if", "--policy", file, "--from-file", history, "--json")
    outcomes = json.loads(tried.out.splitlines()[-1])["outcomes"]
    assert outcomes["unresolved"]["stopped_new"] == 3
    assert outcomes["resolved"]["stopped_new"] == 0
    assert run("policy", "check", file).code == 0


def test_tune_chooses_nothing_where_no_outcome_is_known(run: Loopwarden, tmp_path: Path, history: Path) -> None:
    ran = run("tune", "--from-file", history, "--resolved", "perfect", "-o", tmp_path / "none.json5")

    assert ran.code == 1
    assert "nothing is chosen: no run is known to be resolved" in ran.err
    assert not (tmp_path / "none.json5").exists()


def test_a_history_without_any_outcome_gets_no_table_that_looks_like_an_answer(run: Loopwarden) -> None:
    ran = run("tune", "--from-file", recordings()["openclaw-same-call-read"])

    assert ran.code == 1
    assert ran.out.count("\n") == 1 and "1 of unknown outcome" in ran.out
    assert "nothing is chosen: no run is known to be resolved" in ran.err


def test_a_file_of_nothing_is_refused(run: Loopwarden, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")

    ran = run("what-if", "--policy", policy(tmp_path, 2, 4), "--from-file", tmp_path / "empty.jsonl")

    assert ran.code == 2
    assert "holds none" in ran.err
