"""`loop-policies`: the fleet's policies in order, who applied each, when and why. (design.md, "Topics", "Policy".)

A policy's number is the offset of its record. Records are never changed, and kept for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgpack
import msgspec
import orjson
from kafka import KafkaProducer

from loopwarden.client.connect import connected
from loopwarden.client.errors import NoSuchPolicy
from loopwarden.client.follower import Record, following
from loopwarden.client.producer import HEADERS, PRODUCER_SETTINGS
from loopwarden.client.settings import Connection
from loopwarden_schemas.codec import JSON
from loopwarden_schemas.policy import PolicyDocument

_ACKNOWLEDGED_S: Final = 20.0


class ArchivedPolicy(NamedTuple):
    """One policy of the archive.

    Attributes:
        number: Its offset in `loop-policies`.
        document: The policy.
        by: Who applied it.
        why: The reason given.
        ts: When, in milliseconds since the epoch, by the clock of who applied it.
        log_ends: Where each partition of `agent-events` ended before it was archived: its `policy.applied` lies there
            or later. A partition that is not named: at its beginning or later.
    """

    number: int
    document: PolicyDocument
    by: str
    why: str
    ts: int
    log_ends: Mapping[int, int]


def read_archive(connection: Connection) -> list[ArchivedPolicy]:
    """Return all policies of the archive, oldest first.

    Raises:
        BrokerUnavailable: no broker there.
        TopicMissing: the archive is not there.
    """
    archive = []
    with following(connection, connection.topics().policies.name) as follower:
        beginnings, ends = follower.beginnings(), follower.ends()
        for records in follower.read({0: (beginnings[0], ends[0])}):
            archive += [policy for record in records if (policy := _policy_of(record)) is not None]
    return archive


def archived(archive: list[ArchivedPolicy], number: int | None) -> ArchivedPolicy:
    """Return the policy with a number, or the newest one.

    Raises:
        NoSuchPolicy: there is none.
    """
    if not archive:
        raise NoSuchPolicy("the archive of policies is empty: `loopwarden policy apply FILE --why TEXT` puts one there")
    if number is None:
        return archive[-1]
    for policy in archive:
        if policy.number == number:
            return policy
    numbers = ", ".join(str(policy.number) for policy in archive[-10:])
    raise NoSuchPolicy(
        f"policy {number}: must be a number in the archive of policies, which holds"
        f" {'the newest ones ' if len(archive) > 10 else ''}{numbers}"
    )


def append_policy(
    connection: Connection, document: PolicyDocument, *, by: str, why: str, ts: int, log_ends: Mapping[int, int]
) -> int:
    """Append a policy to the archive and return its number. For the arguments see `ArchivedPolicy`.

    Raises:
        BrokerUnavailable: no broker there, or it does not take the record.
    """
    record = {
        "schema": 1,
        "policy": document.value,
        "digest": document.digest,
        "by": by,
        "why": why,
        "ts": ts,
        "log_ends": {str(partition): end for partition, end in sorted(log_ends.items())},
    }
    with connected(KafkaProducer, connection, **PRODUCER_SETTINGS) as producer:
        sent = producer.send(
            connection.topics().policies.name, msgspec.msgpack.encode(record), partition=0, headers=HEADERS
        )
        return int(sent.get(timeout=_ACKNOWLEDGED_S).offset)


def _policy_of(record: Record) -> ArchivedPolicy | None:
    """Whoever may write the archive may write anything into it: what is no policy has no number."""
    value = _decoded(record)
    if not isinstance(value, dict) or not isinstance(value.get("policy"), dict):
        return None
    ts, log_ends = value.get("ts"), value.get("log_ends")
    return ArchivedPolicy(
        record.offset,
        PolicyDocument.from_value(value["policy"]),
        _text(value.get("by")),
        _text(value.get("why")),
        ts if isinstance(ts, int) else record.timestamp,
        {
            int(partition): end
            for partition, end in (log_ends.items() if isinstance(log_ends, dict) else ())
            if isinstance(partition, str) and partition.isdecimal() and isinstance(end, int)
        },
    )


def _decoded(record: Record) -> Any:
    value = record.value
    if not value:
        return None
    try:
        if record.content_type == JSON or (record.content_type is None and value[0] in b"{[ \t\r\n"):
            return orjson.loads(value)
        return msgpack.unpackb(value, strict_map_key=False)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        return None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
