"""What lies in files: whole, in its order, and not thrown away where it cannot be read."""

from __future__ import annotations

import logging
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgpack
import pytest

from loopwarden.client import Connection
from loopwarden.gateway import Dropped, Gateway, Spooled
from loopwarden.gateway.spool import EVENTS_A_FILE
from loopwarden.gateway.writer import Writer

NOWHERE = "127.0.0.1:1"
HANG_S = 90


@contextmanager
def _disk_full_at(size: int) -> Iterator[None]:
    """As far as this process goes: a file that would be larger is written up to there, then the write fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _away(folder: Path, **settings: Any) -> Gateway:
    return Gateway(
        bootstrap_servers=NOWHERE, when_away="spool", spool_dir=folder, **{"max_buffer_bytes": 1_000, **settings}
    )


def _back(connection: Connection, folder: Path) -> Gateway:
    return Gateway(connection, when_away="spool", spool_dir=folder)


def _item(call_id: str) -> bytes:
    event = {"type": "tool_call.started", "run_id": "spooled", "tool": "read", "call_id": call_id, "args": {}}
    written = Writer("full", 1000, None).write(event)
    packed: bytes = msgpack.packb((written.event_id, b"spooled", written.record))
    return packed


def _call_ids(events: list[Any]) -> list[str]:
    return [event.call_id for event in events]


def test_a_disk_that_is_full_for_a_moment_loses_what_it_says_and_nothing_else(
    connection: Connection, logged: Any, tmp_path: Path
) -> None:
    gateway = _away(tmp_path)
    large = "x" * 20_000

    def send(count: int) -> list[Any]:
        return [gateway.started("run", "write", {"text": large}, call_id=str(next(numbers))) for _ in range(count)]

    numbers = iter(range(1000))
    receipts = send(10)
    with _disk_full_at(10 * 20_000 + 5_000):
        receipts += send(10)
    receipts += send(EVENTS_A_FILE)
    dropped = [number for number, receipt in enumerate(receipts) if isinstance(receipt.error, Dropped)]
    assert 0 < len(dropped) <= 10 and gateway.stats.dropped == len(dropped)
    gateway.close(0)
    assert all(receipt.done for receipt in receipts)
    with _back(connection, tmp_path) as back:
        assert back.flush(HANG_S)
    expected = [str(number) for number in range(len(receipts)) if number not in dropped]
    assert _call_ids(logged(connection)) == expected
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_where_nothing_more_can_be_written_at_the_end_it_is_said_which_events_are_kept(
    connection: Connection, logged: Any, tmp_path: Path
) -> None:
    gateway = _away(tmp_path, max_buffer_bytes=10**7)
    size = 20_000
    receipts = [gateway.started("run", "write", {"text": "x" * size}, call_id=str(n)) for n in range(100)]
    receipts += [gateway.started("run", "write", {"text": "x" * 2 * size}, call_id=str(n)) for n in range(100, 250)]
    with _disk_full_at(150 * size):
        gateway.close(0)
    kept = [isinstance(receipt.error, Spooled) for receipt in receipts]
    assert kept == [True] * 100 + [False] * 150
    assert all(receipt.done for receipt in receipts) and gateway.stats.dropped == 150
    with _back(connection, tmp_path) as back:
        assert back.flush(HANG_S)
    assert _call_ids(logged(connection)) == [str(number) for number in range(100)]


def test_what_several_processes_left_is_sent_in_the_order_in_which_they_ran(
    connection: Connection, logged: Any, tmp_path: Path
) -> None:
    for first in range(0, 120, 30):
        gateway = _away(tmp_path)
        for number in range(first, first + 30):
            gateway.started("run", "read", call_id=str(number))
        gateway.close(0)
    with _back(connection, tmp_path) as back:
        back.started("run", "read", call_id="120")
        assert back.flush(HANG_S)
    assert _call_ids(logged(connection)) == [str(number) for number in range(121)]


def test_folders_of_older_names_come_before_those_of_today(connection: Connection, logged: Any, tmp_path: Path) -> None:
    for name in ("ff3c0d8e-7c1f-4b55-a1a5-0f2f7f3f1c11", "0a3c0d8e-7c1f-4b55-a1a5-0f2f7f3f1c11"):
        folder = tmp_path / f"gateway-{name}"
        folder.mkdir()
        (folder / "lock").touch()
        (folder / "001000000000.events").write_bytes(_item(name[:2]))
        os.utime(folder, (1, 1) if name.startswith("ff") else (2, 2))
    away = _away(tmp_path)
    away.started("spooled", "read", call_id="new")
    away.close(0)
    with _back(connection, tmp_path) as back:
        assert back.flush(HANG_S)
    assert _call_ids(logged(connection)) == ["ff", "0a", "new"]


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        (_item("torn")[:-20], "ends within an event"),
        (msgpack.packb(("id", b"spooled", b"record", 1)), "got a value of type list"),
        (msgpack.packb(("id", None, "record")), "got a value of type list"),
        (msgpack.packb({"v": 2}), "got a value of type dict"),
        (b"hello world\n" * 10, "got a value of type int"),
        (b"\xc1", ""),
    ],
)
def test_a_file_that_is_damaged_is_sent_up_to_there_and_set_aside(
    connection: Connection, logged: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, rest: bytes, said: str
) -> None:
    folder = tmp_path / "gateway-old"
    folder.mkdir()
    content = _item("good") + rest
    (folder / "001000000000.events").write_bytes(content)
    (folder / "001000000001.events").write_bytes(_item("next"))
    with caplog.at_level(logging.ERROR, "loopwarden.gateway"), _back(connection, tmp_path) as gateway:
        assert gateway.flush(HANG_S)
        assert gateway.stats.failed == 1
    assert _call_ids(logged(connection)) == ["good", "next"]
    assert [path.read_bytes() for path in tmp_path.rglob("*.damaged")] == [content]
    (line,) = (record.getMessage() for record in caplog.records)
    assert "001000000000.events: is no file of events from its event 2 on" in line and said in line
    assert not list(tmp_path.rglob("*.events"))


def test_a_record_that_nobody_will_take_is_refused_once_and_holds_nothing_up(
    connection: Connection, logged: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "gateway-old"
    folder.mkdir()
    (folder / "001000000000.events").write_bytes(msgpack.packb(("huge", b"spooled", b"x" * 3_000_000)) + _item("next"))
    with caplog.at_level(logging.ERROR, "loopwarden.gateway"), _back(connection, tmp_path) as gateway:
        assert gateway.started("spooled", "read", call_id="new").result(HANG_S)
        assert gateway.flush(HANG_S)
        assert gateway.stats.failed == 1
    assert _call_ids(logged(connection)) == ["next", "new"]
    assert [record.getMessage()[:23] for record in caplog.records] == ["event huge was refused:"]
    assert not list(tmp_path.rglob("*.events"))


def test_a_file_that_cannot_be_read_now_is_left_to_a_later_gateway(connection: Connection, tmp_path: Path) -> None:
    folder = tmp_path / "gateway-old" / "001000000000.events"
    folder.mkdir(parents=True)
    with _back(connection, tmp_path) as gateway:
        assert gateway.started("run", "read").result(HANG_S)
        assert gateway.stats.failed == 1
    assert folder.is_dir()


@pytest.mark.parametrize("name", ["file/below", "\0"])
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"^spool_dir: must be a folder that can be written, got '.*': "):
        _away(tmp_path / name)
