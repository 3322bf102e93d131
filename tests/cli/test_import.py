from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from loopwarden.recordings import recordings

from .conftest import Ran

SAMPLES = Path(__file__).parents[1] / "importers" / "samples"


def test_events_go_to_standard_output_and_counts_to_standard_error(run: Callable[..., Ran]) -> None:
    code, out, err = run("import", "trajectories", SAMPLES / "trajectories.jsonl")

    assert code == 0
    assert [json.loads(line)["ts"] for line in out.splitlines()] == [*range(7), *range(3)]
    assert err == f"{SAMPLES / 'trajectories.jsonl'}: 2 runs, 10 events, 4 calls\n"


def test_several_sessions_are_written_to_one_file(run: Callable[..., Ran], tmp_path: Path) -> None:
    files = [SAMPLES / "pi-version-1.jsonl", recordings()["openclaw-poll"]]

    code, out, err = run("import", "sessions", *files, "-o", tmp_path / "events.jsonl")

    assert (code, out) == (0, "")
    assert err.splitlines() == [
        f"{files[0]}: 1 run, 8 events, 4 calls, 1 compaction",
        f"{files[1]}: 1 run, 60 events, 30 calls, 21 refused calls",
    ]
    assert len((tmp_path / "events.jsonl").read_bytes().splitlines()) == 68


def test_imported_events_are_judged_as_the_file_itself(run: Callable[..., Ran], strict: Path, tmp_path: Path) -> None:
    for kind, file in (
        ("sessions", recordings()["openclaw-ping-pong"]),
        ("trajectories", SAMPLES / "trajectories.jsonl"),
    ):
        run("import", kind, file, "-o", tmp_path / "events.jsonl")
        direct = run("judge", file, "--policy", strict, "--json")

        assert run("judge", tmp_path / "events.jsonl", "--policy", strict, "--json") == direct


def test_what_is_left_out_is_counted_and_verbose_shows_it(run: Callable[..., Ran]) -> None:
    file = SAMPLES / "openclaw-tree.jsonl"

    assert "2 items left out" in run("import", "sessions", file).err
    err = run("import", "sessions", file, "--verbose").err
    assert f"{file}, line 6: left out: a call on an abandoned branch" in err
    assert "left out 2 times: a call on an abandoned branch" in err


def test_bad_lines_are_told_and_the_rest_is_imported(run: Callable[..., Ran]) -> None:
    good = (SAMPLES / "trajectories.jsonl").read_bytes()

    code, out, err = run("import", "trajectories", "-", stdin=good + b'{"run": 5, "events": []}\n')

    assert code == 1
    assert len(out.splitlines()) == 10
    assert "standard input, line 3: run: must be text" in err


def test_a_run_that_an_earlier_file_has_is_left_out_and_it_is_said(run: Callable[..., Ran], tmp_path: Path) -> None:
    original = recordings()["openclaw-poll"]
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(original.read_bytes())

    code, out, err = run("import", "sessions", original, copy)

    assert code == 1
    assert len(out.splitlines()) == 60
    assert f"run 'poll' is in {original} already" in err


def test_another_format_is_refused(run: Callable[..., Ran]) -> None:
    code, out, err = run("import", "sessions", SAMPLES / "trajectories.jsonl")

    assert (code, out) == (2, "")
    assert "must be a session, but this looks like trajectories" in err


def test_the_output_must_not_be_the_input(run: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    file.write_bytes((SAMPLES / "trajectories.jsonl").read_bytes())

    code, _, err = run("import", "trajectories", file, "-o", tmp_path / "." / "runs.jsonl")

    assert code == 2
    assert "must not be one of the files that are read" in err
    assert file.read_bytes() == (SAMPLES / "trajectories.jsonl").read_bytes()


def test_an_output_that_cannot_be_written_is_named(run: Callable[..., Ran], tmp_path: Path) -> None:
    code, _, err = run("import", "trajectories", SAMPLES / "trajectories.jsonl", "-o", tmp_path / "no" / "where")

    assert code == 2
    assert "cannot be written" in err


def test_a_forks_copy_of_its_parents_calls_counts_once_over_all_files(run: Callable[..., Ran], tmp_path: Path) -> None:
    def rollout(session: str, *call_ids: str, **meta: str) -> str:
        calls = [{"type": "function_call", "call_id": one, "name": "ls", "arguments": "{}"} for one in call_ids]
        lines = [("session_meta", {"id": session, **meta}), *(("response_item", call) for call in calls)]
        return "".join(json.dumps({"type": kind, "payload": payload}) + "\n" for kind, payload in lines)

    (tmp_path / "rollout-1.jsonl").write_text(rollout("parent", "a", "b"))
    (tmp_path / "rollout-2.jsonl").write_text(rollout("fork", "a", "b", "c", forked_from_id="parent"))
    code, out, err = run("import", "sessions", tmp_path)
    calls = [event for event in map(json.loads, out.splitlines()) if event["type"] == "tool_call.started"]

    assert code == 0
    assert [(event["run_id"], event["call_id"]) for event in calls] == [("parent", "a"), ("parent", "b"), ("fork", "c")]
    assert "2 items left out" in err
