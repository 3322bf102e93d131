"""The loop of the selftest."""

from __future__ import annotations

from typing import Any

import pytest

from loopwarden.cli.selftesting import loop_of
from loopwarden.judge import RunState, judge
from loopwarden_schemas.codec import event_from_value
from loopwarden_schemas.policy import DEFAULT_DOCUMENT, PolicyDocument
from loopwarden_schemas.structs import PolicyApplied, Rejected

OFF = {"genericRepeat": False, "knownPollNoProgress": False, "pingPong": False}


def _verdict_ids(document: PolicyDocument) -> set[str]:
    state: RunState | None = None
    found: set[str] = set()
    for value in loop_of("run"):
        event = event_from_value(value)
        assert not isinstance(event, (Rejected, PolicyApplied))
        judged = judge(state, event, document)
        state = judged.state
        found |= {verdict.verdict_id for verdict in judged.verdicts}
    return found


@pytest.mark.parametrize(
    "fleet",
    [
        {"detectors": OFF},
        {"enabled": False, "detectors": OFF},
        {"enabled": True, "globalCircuitBreakerThreshold": 3, "criticalThreshold": 2, "warningThreshold": 1},
        {"enabled": True, "historySize": 1, "unknownToolThreshold": 1, "postCompactionGuard": {"windowSize": 1}},
    ],
)
def test_it_is_judged_alike_whatever_the_policy_of_the_fleet(fleet: dict[str, Any]) -> None:
    document = PolicyDocument({"tools": {"loopDetection": fleet, "loopwarden": {"abortAfterBlocks": 1}}})
    expected = _verdict_ids(DEFAULT_DOCUMENT)
    assert expected and expected <= _verdict_ids(document)
