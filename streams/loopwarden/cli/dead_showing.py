"""What `loopwarden dead show` does: one dead letter for people."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgpack
import orjson

from loopwarden.cli.dead_listing import key_in_words, when
from loopwarden.cli.dead_places import LetterId, Wanted
from loopwarden.cli.terminal import plural, printable, say
from loopwarden.client import Connection, FoundLetter, read_dead_letters, read_original
from loopwarden_schemas.codec import element_of
from loopwarden_schemas.dead_letters import DeadLetter

_BYTES_SHOWN: Final = 1024


def show_letter(connection: Connection, letter_id: LetterId, raw: bool) -> int:
    """Print a letter; return the exit code.

    Raises:
        ClusterError: the broker or a topic is not there.
    """
    wanted = Wanted(frozenset([letter_id]), frozenset(), 0)
    found = read_dead_letters(connection, wanted.includes, partition=letter_id.partition, with_values=True).found
    if not found:
        say(f"{letter_id}: there is no such dead letter in {connection.topics().dead.name} (any more)")
        return 1
    letter = found[0].letter
    original = read_original(connection, letter)
    if original is None and letter.original_size is not None:
        say(f"the record is gone from {letter.place.topic}: the letter has the first {found[0].size:,} bytes of it")
    value = letter.value if original is None else original
    if raw:
        sys.stdout.buffer.write(value or b"")
        return 0
    for line in _lines(found[0], value):
        print(line)
    return 0


def _lines(found: FoundLetter, value: bytes | None) -> Iterator[str]:
    letter = found.letter
    yield f"letter     {LetterId.of(letter.place)}: {_place_in_words(letter)}"
    yield f"appended   {when(letter.append_time)}"
    yield f"key        {key_in_words(letter.key)}"
    yield f"reason     {letter.reason}"
    yield f"detail     {printable(letter.detail)}"
    for replay in found.replays:
        yield f"replayed   {when(replay.at)} by {printable(replay.by)}: {printable(replay.why)}"
    size = letter.original_size or found.size
    yield f"record     {plural(size, 'byte')}, content type {printable(letter.content_type or 'not given')}"
    yield ""
    yield from _event_in_words(letter, value)


def _place_in_words(letter: DeadLetter) -> str:
    topic, partition, offset, index = letter.place
    return f"event {index} of the record in {topic}, partition {partition}, offset {offset}"


def _event_in_words(letter: DeadLetter, value: bytes | None) -> Iterator[str]:
    if value is None:
        yield "the record has no value"
        return
    decoded = _decoded(letter, value)
    if decoded is not None:
        yield printable(decoded, keep="\n")
        return
    for start in range(0, min(len(value), _BYTES_SHOWN), 16):
        row = value[start : start + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        yield f"{start:08x}  {row.hex(' '):<47}  {text}"
    if len(value) > _BYTES_SHOWN:
        yield f"… {len(value) - _BYTES_SHOWN:,} more bytes: --raw writes all of them"


def _decoded(letter: DeadLetter, value: bytes) -> str | None:
    """The event as JSON, None where it is neither MessagePack nor JSON."""
    element = element_of(value, letter.place.element, letter.content_type) or value
    event = _value(orjson.loads, element) or _value(_unpacked, element)
    if event is None:
        return None
    return orjson.dumps(event, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS, default=repr).decode()


def _value(decode: Callable[[bytes], Any], element: bytes) -> dict[Any, Any] | list[Any] | None:
    try:
        value = decode(element)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        return None
    # Many bytes are a number in MessagePack, and no event.
    return value if isinstance(value, (dict, list)) else None


def _unpacked(element: bytes) -> Any:
    return msgpack.unpackb(element, strict_map_key=False)
