from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from loopwarden.importers import InputError

from .reading import bad, events, items_of, left_out, read_file

INFO = {"id": "ses_1", "time": {"created": 1000}}


def tool(call_id: str = "c", status: str = "completed", start: int = 1, end: int = 2, **state: Any) -> dict[str, Any]:
    told = {"status": status, "input": {"command": "ls"}, "time": {"start": start, "end": end}, **state}
    return {"type": "tool", "tool": "bash", "callID": call_id, "id": f"prt_{call_id}", "state": told}


def session(*parts: dict[str, Any], **info: Any) -> dict[str, Any]:
    message = {"info": {"role": "assistant", "time": {"created": 500}}, "parts": list(parts)}
    return {"info": {**INFO, **info}, "messages": [message]}


def stored(part: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**part, "sessionID": "ses_1", "messageID": "msg_1", **more}


def test_a_call_and_its_result_are_one_part() -> None:
    started, finished = events(items_of(session(tool(output="a.txt", metadata={"exit": 0}))))

    assert (started["type"], started["run_id"], started["ts"]) == ("tool_call.started", "ses_1", 1)
    assert (started["tool"], started["args"]) == ("bash", {"command": "ls"})
    assert (finished["ts"], finished["result"]) == (2, {"content": [{"type": "text", "text": "a.txt"}]})


def test_a_call_that_failed_has_the_errors_text() -> None:
    assert events(items_of(session(tool(status="error", error="no such file"))))[1]["error"] == "no such file"


def test_a_call_that_runs_has_no_result_yet_and_one_that_is_being_written_is_none() -> None:
    found = events(items_of(session(tool("a", "running"), tool("b", "pending"))))

    assert [(event["type"], event["call_id"]) for event in found] == [("tool_call.started", "a")]


def test_calls_beside_one_another_are_in_the_order_of_their_times() -> None:
    found = events(items_of(session(tool("a", start=1, end=9, output=""), tool("b", start=2, end=3, output=""))))

    assert [(event["call_id"], event["type"][10:]) for event in found] == [
        ("a", "started"),
        ("b", "started"),
        ("b", "finished"),
        ("a", "finished"),
    ]


@pytest.mark.parametrize(("auto", "trigger"), [(True, "in_attempt"), (False, "manual")])
def test_a_compaction_says_whether_a_person_asked_for_it(auto: bool, trigger: str) -> None:
    (compaction,) = events(items_of(session({"type": "compaction", "auto": auto, "id": "prt_1"})))

    assert (compaction["type"], compaction["trigger"], compaction["ts"]) == ("compaction", trigger, 500)


def test_a_sub_agents_session_is_a_run_below_its_parent() -> None:
    found = events(items_of(session(tool(output=""), parentID="ses_0")))

    assert (found[0]["type"], found[0]["parent_run_id"]) == ("run.started", "ses_0")


def test_the_session_that_a_sub_agent_got_is_no_part_of_its_answer() -> None:
    answers = [f"task_id: ses_{n} (for resuming to continue this task if needed)\n\ndone" for n in (7, 8)]
    found = events(items_of(session(*(tool(str(n), output=answer) for n, answer in enumerate(answers)))))

    assert [event["result"]["content"][0]["text"] for event in found if "result" in event] == ["done", "done"]


def test_parts_of_the_storage_are_read_one_by_one() -> None:
    running, done = stored(tool(status="running")), stored(tool(output="a.txt"))
    found = events(items_of(running, done, done))

    assert [(event["type"], event["run_id"]) for event in found] == [
        ("tool_call.started", "ses_1"),
        ("tool_call.finished", "ses_1"),
    ]


def database(folder: Path, *parts: tuple[dict[str, Any], int]) -> Path:
    path = folder / "opencode.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT)")
        connection.execute(
            "CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT,"
            " time_created INTEGER, time_updated INTEGER, data TEXT)"
        )
        connection.execute("INSERT INTO session VALUES ('ses_1', 'ses_0')")
        for part, updated in parts:
            row = (part["id"], "msg_1", "ses_1", updated, updated, json.dumps(part))
            connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", row)
        connection.commit()
    return path


def test_the_database_is_read_in_the_order_of_its_times(tmp_path: Path) -> None:
    path = database(tmp_path, (tool("b", output=""), 20), (tool("a", output=""), 10), ({"type": "text", "id": "t"}, 5))
    items = read_file(path)

    assert [event.get("call_id") for event in events(items)] == [None, "a", "a", "b", "b"]
    assert events(items)[0]["parent_run_id"] == "ses_0"
    assert left_out(items) == []


def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE songs (id TEXT)")
    with pytest.raises(InputError, match=r"other\.db: cannot be read as opencode's database"):
        read_file(tmp_path / "other.db")


def test_the_folder_that_the_storage_was_is_read_whole(tmp_path: Path) -> None:
    for name, value in {
        "session/project/ses_1.json": {"id": "ses_1", "parentID": "ses_0"},
        "part/msg_2/prt_2.json": stored(tool("b", output="")),
        "part/msg_1/prt_1.json": stored(tool("a", output="")),
    }.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(json.dumps(value, indent=2))
    found = events(read_file(tmp_path))

    assert [event.get("call_id") for event in found] == [None, "a", "a", "b", "b"]
    assert found[0]["parent_run_id"] == "ses_0"


@pytest.mark.parametrize(
    ("part", "what"),
    [
        ({"type": "invented"}, "a part of type 'invented'"),
        ({"type": "tool", "callID": "x"}, "a call without a tool or a state"),
        (tool("x", "dreaming"), "a call with status 'dreaming'"),
    ],
)
def test_what_is_not_understood_is_said(part: dict[str, Any], what: str) -> None:
    assert [item.what for item in left_out(items_of(session(tool(output=""), part)))] == [what]


@pytest.mark.parametrize("value", [5, {"info": 5, "messages": []}, {"info": {"id": ""}, "messages": []}])
def test_what_is_no_session_is_a_bad_line(value: Any) -> None:
    assert [item.line for item in bad(items_of(session(), value))] == [2]


def test_a_document_over_many_lines_is_read(tmp_path: Path, sample: Callable[[str], Path]) -> None:
    (tmp_path / "session.json").write_text(json.dumps(session(tool(output="")), indent=2))

    assert len(events(read_file(tmp_path / "session.json"))) == 2
    assert len(events(read_file(sample("gemini.json")))) > 0
