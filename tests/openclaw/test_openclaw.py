"""The real OpenClaw under Loopwarden: what it refuses, what Loopwarden refuses, and that these are the same calls.

The runs are those of `loopwarden/recordings`, made anew with a scripted model (`conftest.PLANS`).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import ABORT_AFTER_BLOCKS, THRESHOLDS, Runs

OPENCLAW = "tool-loop"
"""OpenClaw's reason where its own detection refused a call."""

LOOPWARDEN = "plugin-before-tool-call"
"""OpenClaw's reason where our plugin did."""

Recorded = Callable[[str], list[int]]


@pytest.mark.parametrize(
    ("run", "recording"),
    [("same call, both", "same-call-exec"), ("ping-pong, both", "ping-pong"), ("poll, both", "poll")],
)
def test_with_its_own_detection_on_openclaw_and_the_judge_refuse_the_same_calls(
    runs: Runs, recorded: Recorded, run: str, recording: str
) -> None:
    ended = runs[run]
    assert ended.refused(OPENCLAW) == recorded(recording)
    assert ended.refused(LOOPWARDEN) == []
    calls = [result["toolCallId"] for result in ended.results]
    judged = [
        calls.index(verdict.call_id)
        for verdict in runs.loopwarden.verdicts()
        if verdict.session_id == ended.session_id and verdict.action == "block" and verdict.phase == "attempt"
    ]
    assert judged == recorded(recording)


@pytest.mark.parametrize(
    ("run", "recording"),
    [
        ("same call, worker killed", "same-call-read"),
        ("ping-pong", "ping-pong"),
        ("poll", "poll"),
        ("edit and check", "edit-and-check"),
        ("changing result", "changing-result"),
    ],
)
def test_with_it_off_loopwarden_alone_refuses_exactly_those(
    runs: Runs, recorded: Recorded, run: str, recording: str
) -> None:
    ended = runs[run]
    assert ended.refused(LOOPWARDEN) == recorded(recording)
    assert ended.refused(OPENCLAW) == []
    assert len(ended.results) == ended.model.steps_taken == len(ended.model.steps)


def test_a_refused_call_tells_the_model_the_words_of_the_verdict(runs: Runs) -> None:
    ended = runs["same call, worker killed"]
    refused = ended.results[ended.refused()[0]]
    assert "`read` was called 8 times with the same arguments and always returned the same" in str(refused["content"])


def test_a_warning_comes_with_the_result_of_the_call_it_is_about(runs: Runs) -> None:
    ended = runs["same call, worker killed"]
    warned = [place for place, result in enumerate(ended.results) if "was called" in result["content"][-1]["text"]]
    assert warned[0] == THRESHOLDS["warningThreshold"]
    # And the model has read it.
    assert "was called 4 times with the same arguments recently" in ended.model.told[warned[0]]


def test_the_loop_across_a_compaction_is_aborted_at_the_third_call_after_it(runs: Runs) -> None:
    ended = runs["loop across compaction"]
    # Six calls before it, three after it. OpenClaw itself stays silent, and cannot end a run that went on like this.
    assert ended.refused(LOOPWARDEN) == list(range(9, 40))
    assert ended.refused(OPENCLAW) == []
    assert "The run is ended: after its context was compacted" in str(ended.results[9]["content"])
    aborts = [
        verdict
        for verdict in runs.loopwarden.verdicts()
        if verdict.session_id == ended.session_id and verdict.action == "abort"
    ]
    assert [(verdict.reason, verdict.call_id) for verdict in aborts] == [
        ("compaction_loop_persisted", ended.results[8]["toolCallId"])
    ]


def test_abort_after_blocks_ends_the_run_that_openclaw_lets_go_on(runs: Runs) -> None:
    ended = runs["blocks ignored"]
    first = THRESHOLDS["criticalThreshold"]
    assert ended.refused(LOOPWARDEN) == list(range(first, first + ABORT_AFTER_BLOCKS + 1))
    assert ended.model.steps_taken == first + ABORT_AFTER_BLOCKS + 1
    assert "The run is ended: blocked calls were tried 3 times" in str(ended.results[-1]["content"])


def test_without_a_sidecar_every_call_is_made_and_it_is_said_once(runs: Runs) -> None:
    ended = runs["no sidecar"]
    assert ended.refused() == []
    assert len(ended.results) == len(ended.model.steps)
    assert ended.log.count("calls go on unwatched until it answers") == 1
