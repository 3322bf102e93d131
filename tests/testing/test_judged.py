from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from loopwarden.testing import Judged, judged, run
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.policy_file import PolicyError

PAGE = Path(__file__).parents[2] / "docs" / "testing-policies.md"
STRICT: dict[str, Any] = {"tools": {"loopDetection": {"enabled": True, "warningThreshold": 3, "criticalThreshold": 5}}}


def looping(times: int = 7) -> Judged:
    return judged(run().call("read", {"path": "/x"}, result="same").repeat(times), STRICT)


def test_expectations_that_hold_can_be_chained() -> None:
    (
        looping()
        .expect("warn", "generic_repeat", at_call=4, times=1)
        .expect("block", phase="order", scope="call", tool="read", at_call=5)
        .expect("block", phase="attempt", at_call=6, times=2)
        .expect_none("abort")
    )
    looping(2).expect_none()


@pytest.mark.parametrize(
    ("fails", "said"),
    [
        (lambda it: it.expect("abort"), "expected abort, got none."),
        (lambda it: it.expect("warn", "ping_pong"), "expected warn ping_pong, got none."),
        (lambda it: it.expect("warn", at_call=3), "expected warn at call 3, the first came at call 4."),
        (lambda it: it.expect("warn", times=2), "expected 2 times warn, got 1."),
        (lambda it: it.expect_none(tool="read"), "expected no verdict tool=read, got 2."),
        (lambda it: it.expect_none("block", phase="order"), "expected no block phase=order, got 1."),
    ],
)
def test_a_failure_says_what_was_expected_and_lists_what_came(fails: Any, said: str) -> None:
    with pytest.raises(AssertionError) as failure:
        fails(looping(5))
    assert str(failure.value) == (
        f"{said} What came of it:\n"
        "  run, call 4: warn on call read: generic_repeat, 3 of 3\n"
        "  run, call 5: block (order) on call read: generic_repeat, 5 of 5"
    )


def test_a_failure_where_nothing_came_says_so() -> None:
    with pytest.raises(AssertionError, match=r"got none\. What came of it:\n  no verdict"):
        looping(1).expect("warn")


def test_a_field_that_a_verdict_does_not_have_is_a_mistake_and_no_expectation() -> None:
    with pytest.raises(TypeError, match="thresold: must be a field of a verdict"):
        looping().expect("warn", thresold=3)


def test_runs_are_judged_each_by_itself_and_by_its_agents_policy() -> None:
    policy = {
        "tools": STRICT["tools"],
        "agents": {"list": [{"id": "calm", "tools": {"loopDetection": {"enabled": False}}}]},
    }
    runs = [run(name, agent_id=name).call("read", result="same").repeat(5) for name in ("calm", "wild")]
    judged(runs, policy).expect_none(run_id="calm").expect("warn", run_id="wild", at_call=4)


def test_a_policy_is_a_file_or_a_document_and_its_mistakes_are_told(tmp_path: Path) -> None:
    file = tmp_path / "policy.json5"
    file.write_text(json.dumps(STRICT))
    told = run().call("read", result="same").repeat(5)
    for policy in (file, str(file), STRICT, PolicyDocument.from_value(STRICT)):
        judged(told, policy).expect("warn", at_call=4)
    file.write_text('{tools: {loopDetection: {enabled: "yes"}}}')
    with pytest.raises(PolicyError, match=r"enabled: must be"):
        judged(told, file)
    with pytest.raises(ValueError, match=r'must be a document, .*got no "tools"'):
        judged(told, STRICT["tools"]["loopDetection"])


def test_an_event_that_is_none_is_told_with_its_place() -> None:
    with pytest.raises(ValueError, match=r"run-3 \(tool_call.finished\): "):
        judged(run().call("read").event("tool_call.finished", tool=3), STRICT)


def test_the_programs_on_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text("utf-8")
    (policy,) = re.findall(r"^```json5\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    Path("policy.json5").write_text(policy)
    programs = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    scope: dict[str, Any] = {}
    for program in programs:
        exec(compile(program, str(PAGE), "exec"), scope)
    tests = [value for name, value in scope.items() if name.startswith("test_")]
    assert len(tests) >= 3
    for each in tests:
        each()
