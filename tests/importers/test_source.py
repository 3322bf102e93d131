from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path

import pytest

from loopwarden.importers import InputError, Source, check, open_source, read_events, source

from .reading import bad, events, read_file

LINE = b'{"type":"tool_call.started","run_id":"r","tool":"read"}\n'


def test_gzip_is_recognised_by_its_contents_not_its_name(tmp_path: Path) -> None:
    packed, plain = tmp_path / "packed.jsonl", tmp_path / "plain.jsonl.gz"
    packed.write_bytes(gzip.compress(LINE))
    plain.write_bytes(LINE)

    assert len(events(read_file(packed))) == len(events(read_file(plain))) == 1


def test_a_compressed_file_that_ends_in_the_middle_is_reported_after_what_could_be_read(tmp_path: Path) -> None:
    file = tmp_path / "cut.gz"
    lines = b"".join(LINE.replace(b"read", os.urandom(8).hex().encode()) for _ in range(20_000))
    file.write_bytes(gzip.compress(lines)[:-1000])

    items = read_file(file)

    assert len(events(items)) > 10_000
    assert bad(items)[-1].reason == "the compressed file ends in the middle: the rest of it is missing"


def test_of_a_small_compressed_file_that_ends_in_the_middle_the_lines_before_the_cut_are_read(tmp_path: Path) -> None:
    file = tmp_path / "small.gz"
    lines = b"".join(LINE.replace(b"read", os.urandom(8).hex().encode()) for _ in range(40))
    file.write_bytes(gzip.compress(lines)[:-100])

    items = read_file(file)

    assert len(events(items)) > 10
    assert bad(items)[-1].reason == "the compressed file ends in the middle: the rest of it is missing"


def test_a_damaged_compressed_file_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "damaged.gz"
    content = bytearray(gzip.compress(LINE * 10))
    content[-8] ^= 0xFF  # the checksum
    file.write_bytes(content)

    assert bad(read_file(file))[0].reason.startswith("the compressed file is damaged")


def test_a_byte_order_mark_and_windows_line_ends_are_no_mistake(tmp_path: Path) -> None:
    file = tmp_path / "windows.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + LINE.replace(b"\n", b"\r\n") * 2)

    assert len(events(read_file(file))) == 2


def test_a_line_that_would_fill_the_memory_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_LINE_BYTES", 100)
    file = tmp_path / "long.jsonl"
    file.write_bytes(LINE + b'"' + b"x" * 1000 + b'"\n' + LINE)

    items = read_file(file)

    assert [event["event_id"] for event in events(items)] == ["1", "3"]
    assert [item.line for item in bad(items)] == [2]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.jsonl: there is no such file"):
        read_file(tmp_path / "nowhere.jsonl")
    with pytest.raises(InputError, match="must be a file, not a directory"):
        read_file(tmp_path)


def test_the_position_comes_to_the_size(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl.gz"
    file.write_bytes(gzip.compress(LINE * 1000))

    with open_source(file) as opened:
        assert list(check(read_events(opened)))
        assert opened.position == opened.size == file.stat().st_size


def test_events_of_a_pipe_are_read_as_they_come() -> None:
    read_end, write_end = os.pipe()
    with open(read_end, "rb", buffering=0) as reader, open(write_end, "wb", buffering=0) as writer:  # noqa: PTH123
        # Should reading wait for more than there is, the end of the pipe frees it.
        hang = threading.Timer(20, writer.close)
        hang.start()
        writer.write(LINE)
        items = read_events(Source("pipe", reader, None))
        next(items)
        still_open = not writer.closed
        hang.cancel()

    assert still_open
