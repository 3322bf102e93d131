"""Calls that a run's file has only because it begins with a copy of its parent's history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

COPIED: Final = "a call that is there only as a copy of its parent run's"


class CopiedCalls:
    """Tells the copies among the events of several files: a call counts once, in the run that made it.

    A run and its parent know it by the same id. That needs the parent's file to be read before, as it is in the order
    of the files' names where these begin with the time.
    """

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}
        self._calls: dict[str, set[str]] = {}

    def has(self, event: Mapping[str, Any]) -> bool:
        """Take an event; return whether it is of a call that the run's parent, or an earlier one, made."""
        run_id, call_id, parent = event.get("run_id"), event.get("call_id"), event.get("parent_run_id")
        if not isinstance(run_id, str):
            return False
        if isinstance(parent, str):
            self._parents[run_id] = parent
        if not isinstance(call_id, str):
            return False
        before = {run_id}
        ancestor = self._parents.get(run_id)
        while ancestor is not None and ancestor not in before:
            if call_id in self._calls.get(ancestor, ()):
                return True
            before.add(ancestor)
            ancestor = self._parents.get(ancestor)
        self._calls.setdefault(run_id, set()).add(call_id)
        return False
