"""Recordings of the real OpenClaw, shipped with Loopwarden: runs that loop, for `loopwarden demo` and for tests.

README.md beside them says what happens in each.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

POLICY: Final[dict[str, Any]] = {
    "tools": {"loopDetection": {"enabled": True, "warningThreshold": 4, "criticalThreshold": 8}}
}
"""The policy that OpenClaw's own detection had while they were made."""


def recordings() -> dict[str, Path]:
    """Return the files by their names (`openclaw-ping-pong`), sorted."""
    return {path.stem: path for path in sorted(Path(__file__).parent.glob("*.jsonl"))}
