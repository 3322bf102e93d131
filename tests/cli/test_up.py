from __future__ import annotations

import sys
from pathlib import Path

import pytest

from loopwarden.cli.up import default_data_dir


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has a place of its own for data")
def test_data_are_kept_where_the_desktop_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_data_dir() == tmp_path / "loopwarden"
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_DATA_HOME", ignored)
        assert default_data_dir() == Path.home() / ".local" / "share" / "loopwarden"
