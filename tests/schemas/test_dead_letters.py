"""What a record of the dead letters says, and that its description says the same."""

from __future__ import annotations

import pytest

from loopwarden_schemas import asyncapi
from loopwarden_schemas.dead_letters import (
    REPLAYED_BY,
    REPLAYED_WHY,
    DeadLetter,
    Place,
    ReplayNote,
    note_headers,
    place_headers,
    read_dead_letter,
)

PLACE = Place("agent-events", 3, 1402, 7)
WHY = [("reason", b"misrouted"), ("detail", b"key: must be the run's id"), ("append-time", b"99")]


def test_a_letter_is_read_with_or_without_what_only_some_have() -> None:
    headers = [*WHY, *place_headers(PLACE)]
    letter = DeadLetter(PLACE, "misrouted", "key: must be the run's id", 99, b"key", b"value")
    assert read_dead_letter(b"key", b"value", headers) == letter
    more = [("content-type", b"application/json"), ("original-size", b"70000"), ("original-key-size", b"5000")]
    assert read_dead_letter(b"key", b"value", [*headers, *more]) == DeadLetter(
        PLACE, "misrouted", "key: must be the run's id", 99, b"key", b"value", "application/json", 70000, 5000
    )


def test_a_note_says_which_event_was_sent_again_and_by_whom() -> None:
    note = ReplayNote(PLACE, "ada", "it is mended \u2713")
    assert read_dead_letter(b"key", b"", note_headers(note)) == note


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ([], "no header 'source-topic'"),
        (place_headers(PLACE), "no header 'reason'"),
        ([*WHY[:2], *place_headers(PLACE)], "no header 'append-time'"),
        ([*WHY, *place_headers(PLACE)[:1], ("source-partition", b"x"), *place_headers(PLACE)[2:]], "'x'"),
    ],
)
def test_what_is_neither_is_refused_with_the_reason(headers: list[tuple[str, bytes]], why: str) -> None:
    with pytest.raises(ValueError, match=f"^not a dead letter: .*{why}"):
        read_dead_letter(None, b"", headers)


def test_the_description_of_the_topics_has_the_same_headers() -> None:
    messages = asyncapi.document("1")["components"]["messages"]
    letter, note = (messages[name]["headers"]["properties"].keys() for name in ("deadLetter", "replayNote"))
    places = {name for name, _ in place_headers(PLACE)}
    assert letter == {*places, *dict(WHY), "content-type", "original-size", "original-key-size"}
    assert note == {*places, REPLAYED_BY, REPLAYED_WHY}
