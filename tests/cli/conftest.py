from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from loopwarden.cli import main

STRICT = "{ tools: { loopDetection: { enabled: true, warningThreshold: 4, criticalThreshold: 8 } } }"


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Ran]:
    """Run `loopwarden` with arguments, and bytes as its standard input (None: it is closed), `columns` wide."""

    def run(*arguments: str | Path, stdin: bytes | None = b"", columns: int = 120) -> Ran:
        (tmp_path / "stdin").write_bytes(stdin or b"")
        monkeypatch.setenv("COLUMNS", str(columns))
        with (tmp_path / "stdin").open() as stream, pytest.raises(SystemExit) as exited:
            monkeypatch.setattr(sys, "stdin", None if stdin is None else stream)
            main([str(argument) for argument in arguments])
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        code = exited.value.code
        assert isinstance(code, int)
        return Ran(code, out.decode(), err.decode())

    return run


@pytest.fixture
def strict(tmp_path: Path) -> Path:
    """The policy file that the recordings were made with."""
    file = tmp_path / "strict.json5"
    file.write_text(STRICT)
    return file
