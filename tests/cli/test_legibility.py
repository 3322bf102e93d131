"""Files that no command can read: one plain line each, with the thing, the place and the way out."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from loopwarden.broker.ports import free_port

from .conftest import Ran

EVENT = '{"type":"run.started","run_id":"a"}\n'
NOWHERE = ("--broker", f"127.0.0.1:{free_port()}")
COMMANDS = [
    ("judge",),
    ("import", "sessions"),
    ("import", "trajectories"),
    ("publish", *NOWHERE),
    ("demo", *NOWHERE),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("runs.jsonl", EVENT.encode("utf-16"), "must be UTF-8 text, but this is UTF-16; `iconv"),
        ("runs.jsonl", EVENT.encode("utf-16-be"), "must be UTF-8 text, but this is UTF-16; `iconv"),
        ("runs.jsonl", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "but this is binary: no line at its beginning is JSON"),
        ("runs.jsonl", b"\0" * 100, "byte 0 is 0x00"),
        ("runs.jsonl.gz", b"\x7fELF\x02\x01", "byte 0 is 0x7f; its name ends in .gz, but it is not gzip"),
        ("runs.jsonl.gz", gzip.compress(b"\1\2\3", mtime=0), "byte 0 is 0x01"),
    ],
)
def test_what_is_no_text_is_refused_in_one_line(
    command: tuple[str, ...], name: str, content: bytes, told: str, run: Callable[..., Ran], tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    code, out, err = run(*command, file)

    assert (code, out) == (2, "")
    [line] = err.splitlines()
    assert line.startswith(f"loopwarden: {file}: must be ")
    assert told in line


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
def test_a_directory_is_named(command: tuple[str, ...], run: Callable[..., Ran], tmp_path: Path) -> None:
    expected = f"loopwarden: {tmp_path}: must be a file, not a directory\n"
    assert run(*command, tmp_path) == (2, "", expected)


def test_one_damaged_line_does_not_hide_the_others(run: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    file.write_bytes(b"\0\0\0\n" + EVENT.encode() + b"\0\0\0")
    code, out, err = run("judge", file)

    assert code == 1
    assert f"{file}, line 1: not JSON" in err
    assert "1 run" in out


def test_a_file_without_anything_in_it_is_said_to_be_empty(run: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    file.write_bytes(b"\n\n")
    assert f"{file}: is empty: there was nothing to judge" in run("judge", file).err
    ran = run("import", "sessions", file)
    assert (ran.code, ran.err) == (
        2,
        f"loopwarden: {file}: must be OpenClaw or pi session, but this is empty\n",
    )


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (gzip.compress(EVENT.encode() * 9, mtime=0)[:14], "line 1: the compressed file ends in the middle"),
        (b'{"type":"session","id":NaN}\n', "line 1: not JSON: "),
        (b"null\nnull\n", "nothing in it looks like that"),
        (EVENT.encode(), "this looks like wire events"),
    ],
)
def test_what_is_not_the_format_to_import_is_not_taken_for_another(
    content: bytes, told: str, run: Callable[..., Ran], tmp_path: Path
) -> None:
    file = tmp_path / "runs"
    file.write_bytes(content)
    code, out, err = run("import", "sessions", file)

    assert (code, out) == (2, "")
    [line] = err.splitlines()
    assert line.startswith(f"loopwarden: {file}: must be OpenClaw or pi session, but ")
    assert told in line


@pytest.mark.parametrize("command", [("policy", "check"), ("policy", "apply", *NOWHERE, "--why", "test")])
@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{ }".encode("utf-16"), "must be UTF-8 text, got byte 0xff"),
        (gzip.compress(b"{ }", mtime=0), "must be UTF-8 text, got byte 0x8b"),
        (b"\0\0", "not valid JSON5: no such character may stand here"),
        (b"null", "must be an object, got null"),
        (b"", "must not be empty"),
        (b"{ tools: { loopDetection: { historySize: NaN } } }", "must be a finite number, got NaN"),
    ],
)
def test_a_policy_that_cannot_be_read_is_told_with_its_place(
    command: tuple[str, ...], content: bytes, told: str, run: Callable[..., Ran], tmp_path: Path
) -> None:
    file = tmp_path / "policy.json5"
    file.write_bytes(content)
    code, out, err = run(*command, file)

    assert (code, out) == (1, "")
    assert told in err.splitlines()[0]
    assert f"({file}, line 1)" in err.splitlines()[0]


@pytest.mark.parametrize("command", [("policy", "check", "-"), ("judge", "-")])
def test_a_standard_input_that_is_closed_is_named(command: tuple[str, ...], run: Callable[..., Ran]) -> None:
    assert run(*command, stdin=None) == (2, "", "loopwarden: standard input: is closed\n")
