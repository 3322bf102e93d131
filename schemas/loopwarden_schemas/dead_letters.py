"""Dead letters: what a record of `agent-events-dead` says of the event that could not be read or judged.

Its value are the original bytes, its key is the original key, and headers say which event it is and why. A letter is
identified by topic, partition, offset and index of its event: the same one may come twice after a crash, never two
different ones. A record with the same identity and `replayed-by` instead of a reason notes that somebody sent the event
to `agent-events` again. (design.md, "Topics".)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec import Struct

REASON: Final = "reason"
"""A `codec.Reason`."""
DETAIL: Final = "detail"
SOURCE_TOPIC: Final = "source-topic"
SOURCE_PARTITION: Final = "source-partition"
SOURCE_OFFSET: Final = "source-offset"
SOURCE_INDEX: Final = "source-index"
"""Its place within its record's list; 0 where the record is one event or cannot be read at all."""
APPEND_TIME: Final = "append-time"
"""When the broker appended the event (ms)."""
CONTENT_TYPE: Final = "content-type"
ORIGINAL_SIZE: Final = "original-size"
"""Bytes of the original value, where the letter carries only their beginning."""
ORIGINAL_KEY_SIZE: Final = "original-key-size"
REPLAYED_BY: Final = "replayed-by"
REPLAYED_WHY: Final = "replayed-why"

REPLAY_OF: Final = "replay-of"
"""On a record of `agent-events`: the `Place` of the dead letter it was sent again from."""


class Place(NamedTuple):
    """Which event a dead letter is about."""

    topic: str
    partition: int
    offset: int
    element: int
    """Its index within its record's list."""

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}/{self.element}"


class DeadLetter(Struct, frozen=True):
    """One dead letter. `append_time` is in ms; `original_size` None: `value` is whole."""

    place: Place
    reason: str
    detail: str
    append_time: int
    key: bytes | None
    value: bytes | None
    content_type: str | None = None
    original_size: int | None = None
    original_key_size: int | None = None


class ReplayNote(Struct, frozen=True):
    """That the event of a dead letter was sent again."""

    place: Place
    by: str
    why: str


def read_dead_letter(
    key: bytes | None, value: bytes | None, headers: Iterable[tuple[str, bytes]]
) -> DeadLetter | ReplayNote:
    """Return what a record of `agent-events-dead` is.

    Raises:
        ValueError: it is neither.
    """
    texts = {name: text.decode("utf-8", "replace") for name, text in headers}
    try:
        place = Place(
            texts[SOURCE_TOPIC], int(texts[SOURCE_PARTITION]), int(texts[SOURCE_OFFSET]), int(texts[SOURCE_INDEX])
        )
        if REPLAYED_BY in texts:
            return ReplayNote(place, texts[REPLAYED_BY], texts.get(REPLAYED_WHY, ""))
        return DeadLetter(
            place,
            texts[REASON],
            texts.get(DETAIL, ""),
            int(texts[APPEND_TIME]),
            key,
            value,
            texts.get(CONTENT_TYPE),
            _number(texts.get(ORIGINAL_SIZE)),
            _number(texts.get(ORIGINAL_KEY_SIZE)),
        )
    except KeyError as error:
        raise ValueError(f"not a dead letter: it has no header {error.args[0]!r}") from None
    except ValueError as error:
        raise ValueError(f"not a dead letter: {error}") from None


def place_headers(place: Place) -> list[tuple[str, bytes]]:
    """Return the headers that say which event a letter, or a note, is about."""
    return [
        (SOURCE_TOPIC, place.topic.encode()),
        (SOURCE_PARTITION, b"%d" % place.partition),
        (SOURCE_OFFSET, b"%d" % place.offset),
        (SOURCE_INDEX, b"%d" % place.element),
    ]


def note_headers(note: ReplayNote) -> list[tuple[str, bytes]]:
    """Return the headers of the record that notes a replay. It has no value."""
    return [*place_headers(note.place), (REPLAYED_BY, note.by.encode()), (REPLAYED_WHY, note.why.encode())]


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
