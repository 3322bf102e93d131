"""What `loopwarden dead list` does: dead letters as a table, or as lines of JSON."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, Final

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from loopwarden.cli.dead_places import LetterId, Wanted
from loopwarden.cli.scanning import scanning_bar
from loopwarden.cli.terminal import plural, printable, say
from loopwarden.client import Connection, FoundLetter, read_dead_letters

_CUT: Final = 100
_KEY_CUT: Final = 36


def list_letters(connection: Connection, wanted: Wanted, as_json: bool) -> int:
    """Print the letters; return the exit code.

    Raises:
        ClusterError: the broker or the topic is not there.
    """
    with scanning_bar("Reading dead letters") as progress:
        letters = read_dead_letters(connection, wanted.includes, progress=progress)
    if as_json:
        for found in letters.found:
            print(orjson.dumps(_as_json(found)).decode())
    elif letters.found:
        _print_table(letters.found)
    topic = connection.topics().dead.name
    if letters.others:
        say(f"{topic}: {plural(letters.others, 'record')} there is no dead letter of ours")
    if not as_json:
        reasons = Counter(found.letter.reason for found in letters.found)
        each = ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common())
        say(f"{topic}: {plural(len(letters.found), 'dead letter')}{f': {each}' if each else ''}")
    return 1 if letters.found else 0


def when(milliseconds: int) -> str:
    """Return a time for people, in their time zone."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(milliseconds / 1000))


def key_in_words(key: bytes | None) -> str:
    """Return a record's key for people."""
    return "no key" if key is None else printable(key.decode("utf-8", "backslashreplace"))


def _print_table(letters: list[FoundLetter]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("letter", no_wrap=True)
    table.add_column("appended", no_wrap=True)
    table.add_column("reason", no_wrap=True)
    # These two give way where there is no room: whatever a key holds, the letter's id and reason stay whole.
    table.add_column("key", overflow="fold")
    table.add_column("what is wrong", overflow="fold")
    for found in letters:
        letter = found.letter
        words = _cut(printable(letter.detail), _CUT)
        if found.replays:
            words += f" (replayed by {printable(found.replays[-1].by)}, {when(found.replays[-1].at)})"
        letter_id, key = str(LetterId.of(letter.place)), _cut(key_in_words(letter.key), _KEY_CUT)
        cells = (letter_id, when(letter.append_time), letter.reason, key, words)
        # As text: what others wrote is no markup.
        table.add_row(*(Text(cell) for cell in cells))
    Console().print(table)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}…"


def _as_json(found: FoundLetter) -> dict[str, Any]:
    letter = found.letter
    return {
        "letter": str(LetterId.of(letter.place)),
        "topic": letter.place.topic,
        "partition": letter.place.partition,
        "offset": letter.place.offset,
        "index": letter.place.element,
        "reason": letter.reason,
        "detail": letter.detail,
        "append_time": letter.append_time,
        "key": None if letter.key is None else letter.key.decode("utf-8", "backslashreplace"),
        "content_type": letter.content_type,
        "size": letter.original_size or found.size,
        "carried": found.size,
        "replays": [replay._asdict() for replay in found.replays],
    }
