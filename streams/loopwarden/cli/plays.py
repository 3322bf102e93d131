"""Runs to be played: their events in order, each with the number of the call it is about."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from loopwarden.cli.reading import Reading
from loopwarden.importers import Checked, open_source
from loopwarden.recordings import POLICY, recordings
from loopwarden_schemas.structs import PolicyApplied

_WITHOUT_POLICY: Final = "openclaw-loop-across-compaction"
"""Recorded without a block of its own. (recordings/README.md)"""

_MAX_NAME: Final = 200


@dataclass
class Run:
    """One run that is played.

    Attributes:
        name: What it is called in the file.
        run_id: What it is called in this play.
        calls: How many it has.
        refused: The numbers of the calls that were refused when it was recorded.
    """

    name: str
    run_id: str
    calls: int = 0
    refused: set[int] = field(default_factory=set)
    _numbers: dict[str | None, int] = field(default_factory=dict)

    def number(self, event: dict[str, Any]) -> int:
        """Return the number of the call that the run's next event is about, from 1; 0 where it is about none."""
        kind, call_id = event["type"], event.get("call_id")
        if not kind.startswith("tool_call."):
            return 0
        if kind == "tool_call.started" or call_id not in self._numbers:
            self.calls += 1
            self._numbers[call_id] = self.calls
        number = self._numbers[call_id]
        if kind == "tool_call.blocked":
            self.refused.add(number)
        return number


class Step(NamedTuple):
    """One event to be published, and the call it is about (0: none)."""

    run: Run
    event: dict[str, Any]
    call: int


@dataclass
class Play:
    """Everything that is played, in order. Its run ids and event ids are its own.

    Attributes:
        refuser: Who refused calls when the runs were recorded.
        steps: The events.
        runs: The runs, by their ids in this play.
        bad: Lines of the file that could not be read.
    """

    refuser: str
    steps: list[Step]
    runs: dict[str, Run]
    bad: int = 0
    _id: str = field(default_factory=lambda: secrets.token_hex(3))

    @property
    def calls(self) -> int:
        """How many calls all runs have."""
        return sum(run.calls for run in self.runs.values())

    def event(self, index: int) -> dict[str, Any]:
        """Return a step's event as it is published now."""
        step = self.steps[index]
        event_id = f"demo-{self._id}-{index}"
        return {**step.event, "run_id": step.run.run_id, "event_id": event_id, "ts": time.time_ns() // 1_000_000}

    def step(self, event_id: str) -> Step | None:
        """Return the step whose event has an id, or None."""
        prefix, _, index = event_id.rpartition("-")
        return self.steps[int(index)] if prefix == f"demo-{self._id}" else None


def recorded_play() -> Play:
    """Return the recordings that are shipped, played side by side as a fleet would."""
    play = Play("OpenClaw", [], {})
    columns = []
    for name, path in recordings().items():
        with open_source(path) as source:
            events = [item.wire for item in Reading(source).events()]
        if name != _WITHOUT_POLICY:
            block = POLICY["tools"]["loopDetection"]
            events.insert(0, {"type": "run.started", "run_id": events[0]["run_id"], "cause": "demo", "policy": block})
        columns.append(_steps(play, events, name.removeprefix("openclaw-")))
    for row in zip_longest(*columns):
        play.steps += [step for step in row if step is not None]
    return play


def file_play(file: str) -> Play:
    """Return the runs of a file in its order. Bad lines are told; a `policy.applied` in it is not played.

    Raises:
        InputError: the file is not there, or has a format that cannot be read.
    """
    play = Play("its runner", [], {})
    with open_source(file) as source:
        reading = Reading(source)
        play.steps += _steps(play, _events_of_runs(reading.events()))
        reading.conclude()
    play.bad = reading.bad
    return play


def _events_of_runs(items: Iterable[Checked]) -> Iterator[dict[str, Any]]:
    return (item.wire for item in items if not isinstance(item.event, PolicyApplied))


def _steps(play: Play, events: Iterable[dict[str, Any]], name: str | None = None) -> Iterator[Step]:
    runs: dict[str, Run] = {}
    for event in events:
        given = event["run_id"]
        run = runs.get(given)
        if run is None:
            called = name or given
            run = runs[given] = Run(called, f"{called[: _MAX_NAME // 4]}~{play._id}-{len(play.runs)}")
            play.runs[run.run_id] = run
        yield Step(run, event, run.number(event))
