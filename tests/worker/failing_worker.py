"""A worker whose judge has a bug: it fails on calls of the tool `poison`, once it has changed the state."""

from __future__ import annotations

import sys
from typing import Any

from loopwarden.judge import judge
from loopwarden.worker import Settings, lane, mending, run_worker


def _failing(state: Any, event: Any, policy: Any) -> Any:
    judged = judge(state, event, policy)
    if getattr(event, "tool", None) == "poison":
        raise KeyError("a secret of the user's")
    return judged


lane.judge = mending.judge = _failing  # type: ignore[attr-defined]
sys.exit(run_worker(Settings.from_environment()))
