"""What `loopwarden dead replay` does: which letters can be sent again, and sends them."""

from __future__ import annotations

from loopwarden.cli.dead_listing import when
from loopwarden.cli.dead_places import LetterId, Wanted
from loopwarden.cli.mistakes import Mistake
from loopwarden.cli.scanning import scanning_bar
from loopwarden.cli.terminal import plural, printable, say
from loopwarden.client import (
    Connection,
    FoundLetter,
    Sending,
    event_partitions,
    read_dead_letters,
    read_original,
    replay,
)
from loopwarden.judge import judge
from loopwarden_schemas.canonical import NotCanonical
from loopwarden_schemas.codec import decode_record, element_of
from loopwarden_schemas.policy import DEFAULT_DOCUMENT
from loopwarden_schemas.structs import Event, PolicyApplied, Rejected
from loopwarden_schemas.topics import partition_for


def replay_letters(connection: Connection, wanted: Wanted, by: str, why: str, force: bool) -> int:
    """Send the letters that are wanted again; return the exit code.

    Raises:
        Mistake: an option is wrong.
        ClusterError: the broker or a topic is not there, or did not take an event.
    """
    for option, text in (("--by", by), ("--why", why)):
        if not text.strip():
            raise Mistake(f"{option}: must not be empty")
    if not (wanted.letters or wanted.reasons or wanted.since):
        raise Mistake("LETTER: must say which letters, or --reason or --since must; `loopwarden dead list` shows them")
    with scanning_bar("Reading dead letters") as progress:
        found = read_dead_letters(connection, wanted.includes, with_values=True, progress=progress).found
    missing = wanted.letters - {LetterId.of(each.letter.place) for each in found}
    for letter_id in sorted(missing):
        say(f"{letter_id}: there is no such dead letter in {connection.topics().dead.name} (any more)")
    partitions = event_partitions(connection)
    sendings, refused = [], 0
    for each in found:
        planned = _plan(connection, each, partitions, force)
        if isinstance(planned, str):
            refused += 1
            say(f"{LetterId.of(each.letter.place)}: not replayed: {planned}")
        else:
            sendings.append(planned)
    # By their place: of one run, in the order in which they came.
    sendings.sort(key=lambda sending: sending.letter.place)
    offsets = replay(connection, sendings, by=by, why=why) if sendings else []
    for sending, offset in zip(sendings, offsets, strict=True):
        print(f"{LetterId.of(sending.letter.place)}: replayed as partition {sending.partition}, offset {offset}")
    if not found:
        say("no dead letter was replayed: there is none such")
    elif refused:
        say(f"{plural(len(sendings), 'dead letter')} replayed, {refused:,} refused (--force sends them all the same)")
    return 1 if refused or missing or not found else 0


def _plan(connection: Connection, found: FoundLetter, partitions: int, force: bool) -> Sending | str:
    """What is sent, or why nothing is."""
    letter = found.letter
    if found.replays and not force:
        last = found.replays[-1]
        return f"{printable(last.by)} replayed it {when(last.at)}: {printable(last.why)}"
    original = read_original(connection, letter)
    if original is None:
        return (
            f"only the first {found.size:,} bytes of it are left: the record is gone from {letter.place.topic}"
            if letter.original_size is not None
            else "the record has no value"
        )
    value = element_of(original, letter.place.element, letter.content_type)
    if value is None:
        value = original
    events = decode_record(value, letter.append_time, letter.content_type)
    event = events[0] if len(events) == 1 else None
    wrong = _wrong(events)
    if wrong is not None and not force:
        return wrong
    if event is None or isinstance(event, (Rejected, PolicyApplied)):
        return Sending(letter, value, letter.key, letter.place.partition)
    return Sending(letter, value, event.run_id.encode(), partition_for(event.run_id, partitions))


def _wrong(events: list[Event | Rejected]) -> str | None:
    """Why it would be rejected again; None: nothing is known."""
    for event in events:
        if isinstance(event, Rejected):
            return f"it would be rejected again: {event.reason}: {printable(event.detail)}"
        if isinstance(event, PolicyApplied):
            return "it is no event of a run: `loopwarden policy apply` puts a policy into force"
        try:
            judge(None, event, DEFAULT_DOCUMENT)
        except NotCanonical as error:
            return f"it would be rejected again: invalid_payload: {error}"
        except Exception as error:
            return f"the judge of this version fails on it, too ({type(error).__name__})"
    return None
