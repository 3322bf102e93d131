"""The command `loopwarden`: a file a command, listed in `app`."""

from __future__ import annotations

from loopwarden.cli.main import main

__all__ = ["main"]
