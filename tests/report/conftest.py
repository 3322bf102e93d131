from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from loopwarden.importers import Checked, check, open_source, read_events
from loopwarden.recordings import POLICY, recordings
from loopwarden.report import Timeline, TimelineBuilder, timeline
from loopwarden_schemas.codec import event_from_value
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.structs import Event, Rejected

STRICT = PolicyDocument.from_value(POLICY)


@cache
def events_of(file: Path) -> tuple[Event, ...]:
    with open_source(str(file)) as source:
        return tuple(item.event for item in check(read_events(source)) if isinstance(item, Checked))


@pytest.fixture
def recorded() -> Callable[[str], Timeline]:
    """A shipped recording, judged as OpenClaw judged it."""

    def draw(name: str) -> Timeline:
        events = events_of(recordings()[f"openclaw-{name}"])
        first = events[0]
        return timeline(getattr(first, "run_id"), events, policy=STRICT, source="strict.json5")  # noqa: B009 of every event of a run

    return draw


class Log:
    """A run's events, told one by one."""

    def __init__(self, policy: PolicyDocument = STRICT, **options: Any) -> None:
        self.builder = TimelineBuilder("r", policy, **options)
        self.told = 0

    def tell(self, kind: str, **fields: Any) -> None:
        self.told += 1
        value = {"type": kind, "event_id": f"e{self.told}", "run_id": "r", "ts": 1_000 * self.told, **fields}
        event = event_from_value(value)
        assert not isinstance(event, Rejected), event
        self.builder.add(event)

    def started(self, call_id: str | None, tool: str = "read", args: Any = "x", **fields: Any) -> None:
        self.tell("tool_call.started", call_id=call_id, tool=tool, args=args, **fields)

    def finished(self, call_id: str | None, tool: str = "read", args: Any = "x", **fields: Any) -> None:
        self.tell("tool_call.finished", call_id=call_id, tool=tool, args=args, **(fields or {"result": "same"}))

    def blocked(self, call_id: str | None, tool: str = "read", args: Any = "x", **fields: Any) -> None:
        self.tell("tool_call.blocked", call_id=call_id, tool=tool, args=args, **fields)

    def call(self, call_id: str, tool: str = "read", args: Any = "x", **fields: Any) -> None:
        self.started(call_id, tool, args)
        self.finished(call_id, tool, args, **fields)

    def loop(self, times: int = 8) -> None:
        for number in range(times):
            self.call(f"loop-{number}")

    def drawn(self) -> Timeline:
        return self.builder.timeline()


@pytest.fixture
def log() -> Log:
    return Log()
