"""A run in a sentence or two."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from loopwarden.report import Timeline
from loopwarden_schemas.policy import DEFAULT_DOCUMENT, PolicyDocument

from .conftest import Log

SENTENCES = {
    "same-call-exec": "The run called “exec” (A) over and over with the same arguments. Warned at call 5, blocked from "
    "call 9. The runner refused 32 calls. Of 8 executed calls, 7 brought nothing new.",
    "poll": "The run kept polling “process” (B) and got the same answer each time. Warned at call 6, blocked from call "
    "10. The runner refused 21 calls. Of 9 executed calls, 7 brought nothing new.",
    "changing-result": "The run called “exec” (A) over and over with the same arguments. Warned at call 5. No call "
    "brought the same as the one before.",
    "loop-across-compaction": "The run went on with the same call of “read” (A) after its context was compacted. "
    "Warned at call 5, blocked from call 9, aborted at call 9. 1 blocked call made all the same. 31 calls came after "
    "the abort. Of 40 executed calls, 39 brought nothing new.",
}


@pytest.mark.parametrize("name", SENTENCES)
def test_a_recording_in_a_sentence_or_two(recorded: Callable[[str], Timeline], name: str) -> None:
    assert recorded(name).headline == SENTENCES[name]


def test_what_happened_first_is_told_first(log: Log) -> None:
    for number in range(10):
        log.call(f"u{number}", tool="no_such", args=number, error="unknown tool: no_such")
    for number in range(5):
        log.call(f"l{number}")
    said = log.drawn().headline
    assert said.startswith(
        "The run kept asking for “no_such”, a tool that does not exist. Blocked from call 11, warned"
    )


def test_arguments_are_never_in_it(log: Log) -> None:
    for number in range(9):
        log.call(f"c{number}", args="secret")
    assert "secret" not in log.drawn().headline


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (DEFAULT_DOCUMENT, "1 call; the detectors are off, only the post-compaction guard runs."),
        (PolicyDocument({"tools": {"loopDetection": {"enabled": False}}}), "1 call; the detectors are off."),
        (PolicyDocument({"tools": {"loopDetection": {"enabled": True}}}), "1 call; no detector found anything."),
    ],
)
def test_a_quiet_run_says_whether_anybody_watched(policy: PolicyDocument, said: str) -> None:
    log = Log(policy)
    log.call("a")
    assert log.drawn().headline == said


def test_a_person_who_ends_a_run_is_named_as_such(log: Log) -> None:
    log.call("a")
    log.tell("operator.override", action="abort", by="kim")
    assert log.drawn().headline.startswith("An operator ended the run. Aborted at call 2.")
