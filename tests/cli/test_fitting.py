"""What is shown on a narrow terminal: nothing is cut, and no word is broken that finds room."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from loopwarden.cli.fitting import fitting_table, flowed
from loopwarden.cli.plays import recorded_play
from loopwarden.cli.scoreboard import Scoreboard
from loopwarden.recordings import recordings

from .conftest import Ran

WORDS = st.text("abcdefgh", min_size=1, max_size=12)


def _shown(table: object, width: int) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=width, highlight=False, soft_wrap=True).print(table)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


@given(st.lists(WORDS, min_size=1), st.integers(40, 120))
def test_a_line_is_broken_only_between_its_parts_and_only_where_it_must(parts: list[str], width: int) -> None:
    lines = flowed(parts, width).split("\n")
    assert [part for line in lines for part in line.split()] == parts
    assert all(len(line) <= width for line in lines)
    for line, after in pairwise(lines):
        assert len(line) + 2 + len(after.split()[0]) > width


def test_a_line_that_goes_to_no_terminal_is_never_broken() -> None:
    assert flowed(["word"] * 100, None).count("\n") == 0


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=5), st.integers(40, 100))
def test_a_table_is_no_wider_than_the_terminal_and_nothing_is_cut(rows: list[tuple[str, ...]], width: int) -> None:
    lines = _shown(fitting_table(("first of all", "second of all", "last of all"), rows, width), width)
    assert all(len(line) <= width for line in lines)
    told = "".join("".join(lines).split())
    for word in ("first", "second", "last", *(cell for row in rows for cell in row[1:])):
        assert word in told
    assert "…" not in told


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_demos_table_has_whole_heads_and_whole_names_at_any_width(width: int) -> None:
    board = Scoreboard(recorded_play(), width)
    lines = _shown(board.table(width), width)
    assert all(len(line) <= width for line in lines)
    told = "\n".join(lines)
    for word in ("calls", "warned", "blocked", "OpenClaw", "same?", "aborted", "loop-across-compaction", "26 fewer"):
        assert word in told


@pytest.mark.parametrize("width", [40, 80])
def test_a_policy_is_shown_whole_on_a_narrow_terminal(
    width: int, run: Callable[..., Ran], strict: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Console, "width", width)
    table = [line for line in run("policy", "check", strict).out.splitlines() if "digest" not in line][1:]
    assert all(len(line.rstrip()) <= width for line in table)
    assert "…" not in "".join(table)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal")
@pytest.mark.parametrize("width", [40, 80])
def test_verdicts_on_a_narrow_terminal_are_broken_between_their_columns(width: int, strict: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "loopwarden.cli", "judge", recordings()["openclaw-poll"], "--policy", strict]
    with subprocess.Popen(command, stdout=theirs, env={**os.environ, "COLUMNS": str(width)}) as process:
        os.close(theirs)
        told = b""
        # Linux ends the reading of a terminal that nobody has open any more with an error.
        while chunk := _read(ours):
            told += chunk
        assert process.wait(timeout=60) == 0
    os.close(ours)
    lines = told.decode().replace("\r", "").splitlines()[:-1]
    assert all(len(line) <= width for line in lines)
    assert sum("known_poll_no_progress" in line for line in lines) > 10


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""
