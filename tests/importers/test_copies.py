from __future__ import annotations

from typing import Any

from loopwarden.importers.copies import CopiedCalls


def begun(run_id: str, parent: str) -> dict[str, Any]:
    return {"type": "run.started", "run_id": run_id, "parent_run_id": parent}


def call(run_id: str, call_id: str) -> dict[str, Any]:
    return {"type": "tool_call.started", "run_id": run_id, "call_id": call_id}


def test_a_call_that_a_runs_parent_made_is_a_copy_with_its_result() -> None:
    copies = CopiedCalls()
    told = [call("p", "1"), begun("c", "p"), call("c", "1"), {**call("c", "1"), "type": "tool_call.finished"}]

    assert [copies.has(event) for event in [*told, call("c", "2")]] == [False, False, True, True, False]


def test_a_copy_of_a_copy_is_one() -> None:
    copies = CopiedCalls()
    for event in (call("p", "1"), begun("c", "p"), begun("g", "c")):
        copies.has(event)

    assert copies.has(call("g", "1"))


def test_runs_that_have_nothing_to_do_with_each_other_may_name_their_calls_alike() -> None:
    copies = CopiedCalls()

    assert [copies.has(event) for event in (call("a", "1"), call("b", "1"), begun("c", "a"), call("b", "1"))] == [
        False
    ] * 4


def test_runs_that_are_each_others_parents_do_not_hang_it() -> None:
    copies = CopiedCalls()

    assert [copies.has(event) for event in (begun("a", "b"), begun("b", "a"), call("a", "1"))] == [False] * 3
