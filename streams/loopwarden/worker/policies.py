"""The policies in force in one partition, and the archive that says what they are. (design.md, "Policy".)

A run pins, at its first event, the newest policy applied below that event in its partition. A run that is judged again
after a crash has to pin the same one, so a policy is kept until the committed offset has passed its successor: in the
changelog, under the empty key, which is no run's.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, Final, NamedTuple

import msgpack
import msgspec
import orjson
from aiokafka import AIOKafkaConsumer, TopicPartition

from loopwarden.worker.errors import StateRefused
from loopwarden_schemas.policy import DEFAULT_DOCUMENT, PolicyDocument
from loopwarden_schemas.state import STATE_VERSION
from loopwarden_schemas.structs import PolicyApplied

POLICIES_KEY: Final = b""
"""The key of a partition's applied policies in the changelog."""


class Applied(NamedTuple):
    """One `policy.applied` that was taken: its place in the partition, and its document's number."""

    offset: int
    element: int
    """Its index within its record."""
    number: int


class _PoliciesRecord(msgspec.Struct, array_like=True, gc=False):
    """The changelog's record of them: the head is that of a state record, so recovery compares it like any other."""

    version: int
    offset: int
    index: int
    applied: list[Applied]


_decoder = msgspec.msgpack.Decoder(_PoliciesRecord)


class PolicyArchive:
    """`loop-policies`, read as far as it was needed: documents by their number, which is their offset."""

    def __init__(self, consumer: AIOKafkaConsumer, topic: str) -> None:
        """`consumer` is an own one, without a group; whoever made it starts and stops it."""
        self._consumer = consumer
        self._partition = TopicPartition(topic, 0)
        self._documents: dict[int, PolicyDocument] = {}
        self._read_to: int | None = None

    def get(self, number: int) -> PolicyDocument | None:
        """Return a document that was read, or None."""
        return self._documents.get(number)

    async def read_to_end(self) -> None:
        """Read what the archive holds now and was not read yet."""
        consumer, partition = self._consumer, self._partition
        # Asked before anything is assigned: behind a fetch the answers would be late.
        end = (await consumer.end_offsets([partition]))[partition]
        if self._read_to is None:
            self._read_to = (await consumer.beginning_offsets([partition]))[partition]
        if self._read_to >= end:
            return
        consumer.assign([partition])
        consumer.seek(partition, self._read_to)
        while self._read_to < end:
            for records in (await consumer.getmany(partition, timeout_ms=1000)).values():
                for record in records:
                    document = archived_document(record.value)
                    if document is not None:
                        self._documents[record.offset] = document
            self._read_to = await consumer.position(partition)
        consumer.unsubscribe()


def archived_document(value: bytes | None) -> PolicyDocument | None:
    """Return the policy document in a record of `loop-policies`, under its key `policy`; None where there is none."""
    if not value:
        return None
    try:
        is_json = value[0] in b"{[ \t\r\n"
        decoded: Any = orjson.loads(value) if is_json else msgpack.unpackb(value, strict_map_key=False)
        if not isinstance(decoded, dict) or not isinstance(decoded.get("policy"), dict):
            return None
        document = PolicyDocument.from_value(decoded["policy"])
        # Asked for now, as it fails where the document holds what JSON has not.
        _ = document.digest
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        return None
    return document


class Policies:
    """The policies applied in one partition, oldest first."""

    def __init__(self, archive: PolicyArchive, applied: list[Applied]) -> None:
        self._archive = archive
        self._applied = applied
        self.changed = False
        """Whether the changelog does not know of the newest one yet."""

    @classmethod
    def thaw(cls, archive: PolicyArchive, value: bytes | None, partition: int) -> Policies:
        """Return the policies that the changelog holds for a partition, None: for one in which none was applied.

        Raises:
            StateRefused: the record cannot be read, or one of its documents is not in the archive.
        """
        if value is None:
            return cls(archive, [])
        try:
            applied = _decoder.decode(value).applied
        except msgspec.MsgspecError as error:
            raise StateRefused(f"partition {partition}: the changelog's record of policies: {error}") from None
        for each in applied:
            if archive.get(each.number) is None:
                raise StateRefused(
                    f"partition {partition}: policy {each.number} was applied at offset {each.offset}, but the archive"
                    " of policies does not hold it (any more): it must be kept for ever; restore the topic, or begin"
                    " under another LOOPWARDEN_TOPIC_PREFIX"
                )
        return cls(archive, applied)

    def freeze(self) -> tuple[int, int, bytes] | None:
        """Return offset, index and value of the changelog's record, or None where no policy was applied."""
        if not self._applied:
            return None
        newest = self._applied[-1]
        record = _PoliciesRecord(STATE_VERSION, newest.offset, newest.element, self._applied)
        return newest.offset, newest.element, msgspec.msgpack.encode(record)

    def in_force(self, offset: int, index: int = 0) -> PolicyDocument:
        """Return the newest policy applied below this place in the partition, or the defaults."""
        below = self._below(offset, index)
        return DEFAULT_DOCUMENT if below is None else self._document(below.number)

    def newest(self) -> tuple[int | None, PolicyDocument]:
        """Return number and document of the newest one; None and the defaults where there is none."""
        if not self._applied:
            return None, DEFAULT_DOCUMENT
        return self._applied[-1].number, self._document(self._applied[-1].number)

    def _document(self, number: int) -> PolicyDocument:
        document = self._archive.get(number)
        assert document is not None, "documents are looked up before they are applied"
        return document

    def _below(self, offset: int, index: int) -> Applied | None:
        place = bisect_left(self._applied, (offset, index))
        return self._applied[place - 1] if place else None

    def knows(self, number: int) -> bool:
        """Whether the archive was read up to this number already."""
        return self._archive.get(number) is not None

    async def read_archive(self) -> None:
        """Read the archive to its end: to be done before a number that is not known is refused."""
        await self._archive.read_to_end()

    def apply(self, event: PolicyApplied, offset: int, index: int) -> str | None:
        """Take a `policy.applied` at its place; return why it is refused, or None. Taken again, it changes nothing."""
        place = bisect_left(self._applied, (offset, index))
        if place < len(self._applied) and self._applied[place][:2] == (offset, index):
            return None
        document = self._archive.get(event.number)
        if document is None:
            return f"number: must be the offset of a document in the archive of policies, which holds no {event.number}"
        if document.digest != event.digest:
            return (
                f"digest: must be that of document {event.number} in the archive, {document.digest},"
                f" got {event.digest!r:.80}"
            )
        below = self._below(offset, index)
        if below is not None and event.number < below.number:
            return f"number: must not be lower than the one in force, {below.number}, got {event.number}"
        self._applied.insert(place, Applied(offset, index, event.number))
        self.changed = True
        return None

    def forget_before(self, committed: int) -> None:
        """Drop what no event can pin any more: a policy whose successor the committed offset has passed."""
        passed = bisect_left(self._applied, (committed,))
        del self._applied[: max(0, passed - 1)]
