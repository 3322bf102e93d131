from __future__ import annotations

import pytest

from loopwarden.importers import Checked
from loopwarden.recordings import POLICY, recordings
from loopwarden.replay import fold_events
from loopwarden_schemas.policy import DEFAULT_DOCUMENT, PolicyDocument
from loopwarden_schemas.structs import ToolCallBlocked, ToolCallStarted

from .reading import read_file

CALLS_AND_REFUSALS = {
    "openclaw-same-call-exec": (40, 32),
    "openclaw-same-call-read": (40, 32),
    "openclaw-ping-pong": (40, 26),
    "openclaw-poll": (30, 21),
    "openclaw-edit-and-check": (24, 0),
    "openclaw-changing-result": (24, 0),
    "openclaw-loop-across-compaction": (40, 0),
}


def test_every_recording_is_shipped() -> None:
    assert set(recordings()) == set(CALLS_AND_REFUSALS)


@pytest.mark.parametrize(("name", "calls", "refused"), [(name, *counts) for name, counts in CALLS_AND_REFUSALS.items()])
def test_a_recording_is_read_whole(name: str, calls: int, refused: int) -> None:
    items = read_file(recordings()[name])
    events = [item.event for item in items if isinstance(item, Checked)]

    assert len(events) == len(items)
    assert sum(isinstance(event, ToolCallStarted) for event in events) == calls
    assert sum(isinstance(event, ToolCallBlocked) for event in events) == refused


@pytest.mark.parametrize("name", sorted(CALLS_AND_REFUSALS.keys() - {"openclaw-loop-across-compaction"}))
def test_the_judge_blocks_exactly_the_calls_that_openclaw_refused(name: str) -> None:
    events = [item.event for item in read_file(recordings()[name]) if isinstance(item, Checked)]
    started = {event.event_id: event.call_id for event in events if isinstance(event, ToolCallStarted)}
    refused = [event.call_id for event in events if isinstance(event, ToolCallBlocked)]

    folded = fold_events(events, PolicyDocument.from_value(POLICY))
    decisions = [decision for each in folded for decision in each.decisions]

    assert [started[decision.event_id] for decision in decisions if decision.action == "block"] == refused
    assert "abort" not in {decision.action for decision in decisions}


@pytest.mark.parametrize("document", [DEFAULT_DOCUMENT, PolicyDocument.from_value(POLICY)])
def test_a_loop_that_goes_on_across_a_compaction_is_aborted_at_the_third_call(document: PolicyDocument) -> None:
    path = recordings()["openclaw-loop-across-compaction"]
    folded = list(fold_events([item.event for item in read_file(path) if isinstance(item, Checked)], document))

    aborts = [index for index, each in enumerate(folded) for decision in each.decisions if decision.action == "abort"]
    (compaction,) = (index for index, each in enumerate(folded) if each.armed)

    # Started and finished of three calls.
    assert aborts == [compaction + 6]
    assert not any(each.decisions for each in folded[compaction + 7 :])
