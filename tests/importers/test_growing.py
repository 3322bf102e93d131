"""Files that grow while they are read, as real files."""

from __future__ import annotations

import gzip
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from loopwarden.importers import BadLine, CaughtUp, Checked, InputError, Recorded, source
from loopwarden.importers.contract import CheckedItem
from loopwarden.importers.growing import GrowingFile

from .reading import events, read_file
from .test_claude_code import call, result
from .test_opencode import database, tool

Items = Iterator[CheckedItem]


def line(value: dict[str, Any]) -> str:
    return json.dumps(value) + "\n"


def append(file: Path, text: str) -> None:
    with file.open("a") as stream:
        stream.write(text)


def news(items: Items) -> list[Any]:
    """The calls in what is new, and what else was said."""
    found: list[Any] = []
    for item in items:
        if isinstance(item, CaughtUp):
            return found
        found.append(item.wire.get("call_id", item.wire["type"]) if isinstance(item, Checked) else item)
    raise AssertionError("a growing file has no end")


def test_what_is_appended_is_read_when_one_asks_again(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text(line(call("a")))
    items = GrowingFile(file).items()

    assert news(items) == ["a"]
    assert news(items) == []
    append(file, line(result("a")) + line(call("b")))
    assert news(items) == ["a", "b"]


def test_a_line_is_read_once_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    whole = line(call("a"))
    file.write_text(whole[:30])
    items = GrowingFile(file).items()

    assert news(items) == []
    append(file, whole[30:50])
    assert news(items) == []
    append(file, whole[50:])
    assert news(items) == ["a"]


def test_a_file_may_appear_later(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    items = GrowingFile(file).items()

    assert news(items) == []
    file.write_text(line(call("a")))
    assert news(items) == ["a"]


def test_what_is_there_already_is_read_but_is_not_new(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text(line(call("a")))
    growing = GrowingFile(file, from_start=False)
    append(file, line(result("a")))
    items = growing.items()

    assert (news(items), growing.new) == (["a"], True)
    assert (news(items), growing.new) == (["a"], True)


def test_in_a_file_that_was_empty_everything_is_new(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.touch()
    growing = GrowingFile(file, from_start=False)
    append(file, line(call("a")))
    next(growing.items())

    assert growing.new


def test_while_what_was_there_is_read_it_says_that_it_is_not_new(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text(line(call("a")))
    growing = GrowingFile(file, from_start=False)
    items = growing.items()
    next(items)

    assert not growing.new


@pytest.mark.parametrize("replaced", [True, False])
def test_a_file_that_is_replaced_or_cut_off_is_read_anew_and_what_was_told_is_not_told_again(
    replaced: bool, tmp_path: Path
) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text(line(call("a")) + line(call("b")))
    items = GrowingFile(file).items()
    assert news(items) == ["a", "b"]

    if replaced:
        (tmp_path / "new").write_text(line(call("a")) + line(call("c")))
        (tmp_path / "new").replace(file)
    else:
        file.write_text(line(call("c")))
    # The end of the old file, then the new one.
    assert news(items) + news(items) == ["c"]


def test_a_file_that_is_deleted_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text(line(call("a")))
    items = GrowingFile(file).items()
    assert news(items) == ["a"]

    file.unlink()
    assert news(items) == []
    file.write_text(line(call("b")) + line(call("c")))
    assert news(items) + news(items) == ["b", "c"]


def test_it_says_whether_there_is_something_to_read(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text(line(call("a")))
    known, unknown = GrowingFile(file, from_start=False), GrowingFile(file)

    assert (known.changed(), unknown.changed()) == (False, True)
    news(unknown.items())
    assert not unknown.changed()
    append(file, line(result("a")))
    assert known.changed()
    assert unknown.changed()


def test_an_openclaw_session_goes_on_where_it_was(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    asked = {"role": "assistant", "content": [{"type": "toolCall", "id": "a", "name": "read", "arguments": {}}]}
    answer = {"role": "toolResult", "toolCallId": "a", "content": "x"}
    file.write_text(line({"type": "session", "id": "s"}) + line({"type": "message", "id": "1", "message": asked}))
    growing = GrowingFile(file)
    items = growing.items()

    assert news(items) == ["a"]
    append(file, line({"type": "message", "id": "2", "parentId": "1", "message": answer}))
    append(file, line({"type": "compaction", "id": "3", "parentId": "2"}))
    assert news(items) == ["a", "compaction"]


@pytest.mark.parametrize("name", ["claude-code-manual", "codex-polls", "codex-compacted", "pi-compacted"])
def test_a_real_session_gives_the_same_events_however_it_grows(
    name: str, tmp_path: Path, shared: Callable[[str], Path]
) -> None:
    packed = shared(f"sessions/{name}.jsonl.gz")
    content = gzip.decompress(packed.read_bytes())
    file = tmp_path / "s.jsonl"
    file.touch()
    items = GrowingFile(file).items()
    found = []
    for start in range(0, len(content), 100_003):
        with file.open("ab") as stream:
            stream.write(content[start : start + 100_003])
        for item in items:
            if isinstance(item, CaughtUp):
                break
            found.append(item)

    assert events(found) == events(read_file(packed))


def test_a_document_is_read_anew_when_it_is_written_anew(tmp_path: Path) -> None:
    file = tmp_path / "session.json"

    def write(*calls: str, cut: int = 0) -> None:
        told: list[Any] = [{"id": one, "name": "ls", "args": {}, "status": "success", "result": None} for one in calls]
        text = json.dumps({"sessionId": "s", "projectHash": "h", "messages": [{"type": "gemini", "toolCalls": told}]})
        file.write_text(text[: len(text) - cut])

    write("a")
    items = GrowingFile(file).items()
    assert news(items) == ["a", "a"]
    write("a", "b")
    assert news(items) == ["b", "b"]
    # Half written.
    write("a", "b", "c", cut=20)
    assert news(items) == []
    write("a", "b", "c")
    assert news(items) == ["c", "c"]


def test_a_document_that_stays_broken_is_told_of(tmp_path: Path) -> None:
    file = tmp_path / "session.json"
    file.write_text('{\n"sessionId": "s",\n')
    items = GrowingFile(file).items()

    assert news(items) == []
    assert [type(item) for item in news(items)] == [BadLine]
    assert news(items) == []


def test_opencodes_database_is_asked_for_what_is_new(tmp_path: Path) -> None:
    now = time.time_ns() // 1_000_000
    path = database(tmp_path, (tool("old", output=""), 1000), (tool("a", status="running"), now - 1000))
    growing = GrowingFile(path, from_start=False)
    items = growing.items()

    # A day is enough to understand what follows.
    assert news(items) == ["run.started", "a"]
    with closing(sqlite3.connect(path)) as connection:
        done = json.dumps(tool("a", output="done"))
        connection.execute("UPDATE part SET data = ?, time_updated = ? WHERE id = 'prt_a'", (done, now + 1))
        connection.commit()
    assert news(items) == ["a"]
    assert news(items) == []


def test_a_line_that_would_fill_the_memory_is_left_out_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MAX_LINE_BYTES", 500)
    file = tmp_path / "s.jsonl"
    file.write_text(line(call("a")) + "x" * 2000 + "\n" + line(call("b")))
    first, too_long, last = news(GrowingFile(file).items())

    assert (first, last) == ("a", "b")
    assert isinstance(too_long, BadLine)
    assert too_long.line == 2


def test_what_is_no_file_of_runs_is_refused_where_it_was_only_come_upon(tmp_path: Path) -> None:
    file = tmp_path / "notes.jsonl"
    file.write_text('{"note": 1}\n' * 200)

    with pytest.raises(InputError, match="is no file of runs"):
        news(GrowingFile(file, sought=True).items())


def test_what_an_export_tells_beside_its_events_is_not_told_again(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    started = {"type": "run.started", "run_id": "r", "event_id": "e1", "ts": 1}
    exported = {"type": "run.exported", "run_id": "r", "events": 1, "policy": {"a": [1]}}
    file.write_text(line(started) + line(exported))
    items = GrowingFile(file).items()
    assert news(items) == ["run.started", Recorded(2, exported)]

    file.unlink()
    assert news(items) == []
    file.write_text(line(started) + line(exported) + line({**exported, "events": 2}))
    assert news(items) == [Recorded(3, {**exported, "events": 2})]
