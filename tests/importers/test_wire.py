from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from loopwarden.importers import BadLine

from .reading import bad, events, items_of, read_file

STARTED = {"type": "tool_call.started", "run_id": "r", "call_id": "c", "tool": "read", "args": {"path": "a"}}


def test_an_event_stays_as_it_is() -> None:
    event = {**STARTED, "event_id": "e", "ts": 5, "schema": 1, "unknown": ["field"]}

    assert events(items_of(event)) == [event]


def test_the_line_number_stands_in_for_a_missing_event_id_and_ts() -> None:
    first, second = events(items_of(STARTED, {**STARTED, "ts": 0}))

    assert (first["event_id"], first["ts"]) == ("1", 1)
    assert (second["event_id"], second["ts"]) == ("2", 0)


def test_blank_lines_count_as_lines() -> None:
    assert [event["event_id"] for event in events(items_of(STARTED, b"", b"  ", STARTED))] == ["1", "4"]


def test_a_line_may_hold_a_list_of_events() -> None:
    found = events(items_of([STARTED, {**STARTED, "event_id": "mine"}]))

    assert [event["event_id"] for event in found] == ["1/0", "mine"]


def test_each_bad_line_is_reported_with_its_number_and_the_rest_goes_on(tmp_path: Path) -> None:
    good = b'{"type": "tool_call.started", "run_id": "r", "tool": "read"}'
    lines = {
        2: (b"{broken", "not JSON"),
        3: (b'{"type": "tool_call.started", "tool": "read"}', "run_id"),
        4: (b'{"type": "tool_call.invented", "run_id": "r"}', "unknown_type"),
        5: (b'{"type": "tool_call.started", "run_id": "r", "tool": 5}', "tool"),
        6: (b'"text"', "must be an object"),
        7: (b'{"type": "tool_call.started", "run_id": "r", "tool": "\xff"}', "not JSON"),
        8: (b'{"type": "tool_call.started", "run_id": "r", "tool": "t", "args": NaN}', "not JSON"),
        9: (b'{"schema": 2, "type": "tool_call.started", "run_id": "r", "tool": "t"}', "unsupported_schema"),
        10: (b'{"type": "tool_call.started", "run_id": "r", "tool": "t", "ts": -1}', "ts"),
    }
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"\n".join([good, *(line for line, _ in lines.values()), good]) + b"\n")

    items = read_file(file)

    assert [event["event_id"] for event in events(items)] == ["1", "11"]
    assert [item.line for item in bad(items)] == list(lines)
    for item, (_, why) in zip(bad(items), lines.values(), strict=True):
        assert why in item.reason


def test_a_truncated_last_line_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl.gz"
    file.write_bytes(
        gzip.compress(b'{"type": "tool_call.started", "run_id": "r", "tool": "read"}\n{"type": "tool_call.fi')
    )

    items = read_file(file)

    assert len(events(items)) == 1
    assert [(item.line, item.reason) for item in bad(items)] == [(2, "the file ends in the middle of this line")]


def test_a_last_line_without_its_end_is_an_event_where_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(b'{"type": "tool_call.started", "run_id": "r", "tool": "read"}')

    assert len(events(read_file(file))) == 1


def test_an_event_beyond_the_size_of_a_record_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(b'{"type": "tool_call.started", "run_id": "r", "tool": "read", "args": "%s"}\n' % (b"x" * 2**20))

    (item,) = read_file(file)

    assert bad([item])
    assert "too_large" in str(item)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"a": NaN}', "not JSON: NaN is none of its values (column 7); write null, or text"),
        (b"[-Infinity]", "not JSON: Infinity is none of its values (column 3); write null, or text"),
        (b'{"a": None}', "not JSON: None is none of its values (column 7); write null, or text"),
        (b'{"a": "\xe9"}', "not JSON: must be UTF-8 text, got byte 0xe9 (byte 8)"),
        (b"null", "an event must be an object, got null"),
    ],
)
def test_what_other_languages_write_for_json_is_named(line: bytes, reason: str) -> None:
    (item,) = items_of(line)
    assert isinstance(item, BadLine)
    assert item.reason == reason
