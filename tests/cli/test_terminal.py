"""Text for people."""

from __future__ import annotations

import pytest

from loopwarden.cli.terminal import colored


def test_whoever_wants_no_colours_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert colored("block", "red") == "\x1b[31mblock\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert colored("block", "red") == "block"
