"""What must hold of a timeline whatever the log is: it sees what the judge sees."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from loopwarden.judge import RunState, judge
from loopwarden.report import Timeline, TimelineBuilder
from loopwarden.report.as_json import from_json, to_json
from loopwarden_schemas.codec import event_from_value
from loopwarden_schemas.digests import short_id
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.structs import EventOfRun, PolicyApplied, Rejected

from ..judge.strategies import fleets, logs  # noqa: TID252 - tests are no package that could be named


def event_of(wire_event: dict[str, Any]) -> EventOfRun:
    event = event_from_value(wire_event)
    assert not isinstance(event, (Rejected, PolicyApplied))
    return event


def calls_of(run: Timeline) -> list[tuple[str, str, str, str | None]]:
    """Each call by its first event: tool, arguments and outcome."""
    found = []
    for cell in run.cells:
        signature = run.signatures[cell.signature]
        result = None if cell.result is None else run.results[cell.result].result_hash
        found.append((short_id(cell.event_id), signature.tool, signature.args_hash, result))
    return found


@settings(max_examples=settings().max_examples * 4 // 10)
@given(logs(), fleets())
def test_the_calls_in_the_judges_window_are_cells_and_its_verdicts_are_all_there(
    log: list[dict[str, Any]], policy: dict[str, Any]
) -> None:
    document = PolicyDocument.from_value(policy)
    builder = TimelineBuilder("r", document)
    state: RunState | None = None
    published = []
    for wire_event in log:
        builder.add(event_of(wire_event))
        state, _, verdicts = judge(state, event_of(wire_event), document)
        published += [verdict.verdict_id for verdict in verdicts]
    run = builder.timeline()
    assert state is not None
    window = [(call.event_id, *call.signature.key, call.result) for call in state.window.calls]
    calls = calls_of(run)
    assert [call for call in window if call not in calls] == []
    assert [verdict.verdict_id for verdict in run.verdicts] == published
    assert from_json(to_json(run)) == run
