"""The topics Loopwarden uses, as declarations, and the partition a run's records lie on.

Nothing here talks to Kafka: `loopwarden.client` creates what is declared; `topic_differences` says what a cluster has
otherwise, to `loopwarden topics` and to the worker.
Rules: design.md, "Topics".
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass

DEFAULT_PARTITIONS = 8

# The Faust table of run states. Its changelog is named `{app id}-{table}-changelog` by Faust itself, so the name of the
# table is part of the contract: another name is another topic, and every state would be gone.
RUNS_TABLE = "runs"

MAX_BATCH_BYTES = 1024 * 1024 + 12
"""The largest batch of the topics that the worker alone writes: Kafka's own default, whatever a cluster's is."""

MAX_RECORD_BYTES = 1024 * 1024
"""The largest value of a record of `agent-events`; a larger one is a dead letter. (design.md, "Limits")"""

# What Kafka's limits count beyond a record's value: the batch's header (61 bytes), the key (256 bytes at most for us),
# and headers, of which a gateway may set its own. A dead letter adds headers that say why to a record of that size.
_RECORD_OVERHEAD_BYTES = 64 * 1024
_DEAD_LETTER_OVERHEAD_BYTES = 2 * _RECORD_OVERHEAD_BYTES

_HOUR_MS = 60 * 60 * 1000
_DAY_MS = 24 * _HOUR_MS

# org.apache.kafka.common.internals.Topic: what `validate` accepts, and MAX_NAME_LENGTH.
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_MAX_NAME_LENGTH = 249


@dataclass(frozen=True)
class Topic:
    """A topic as it has to be. `config` holds Kafka's topic settings by their names; `key` says what the keys are."""

    name: str
    key: str
    partitions: int
    config: Mapping[str, str]
    note: str


@dataclass(frozen=True)
class Topics:
    """All topics of one installation. One prefix is one trust domain: who may write `events` may speak for its runs."""

    prefix: str
    events: Topic
    verdicts: Topic
    progress: Topic
    policies: Topic
    dead: Topic
    changelog: Topic

    @property
    def app_id(self) -> str:
        """The Faust app's id: the consumer group, and the start of the changelog's name."""
        return _app_id(self.prefix)

    def all(self) -> tuple[Topic, ...]:
        """All of them, in the order of the fields."""
        return (self.events, self.verdicts, self.progress, self.policies, self.dead, self.changelog)


def declared_topics(prefix: str = "", partitions: int = DEFAULT_PARTITIONS) -> Topics:
    """The topics under `prefix`, which is simply put in front of each name (`team-` gives `team-agent-events`).

    `partitions` is the number for every topic but the policies, which have one: only that keeps them in order.

    Raises:
        ValueError: the prefix makes a name that Kafka does not allow, or `partitions` is below 1.
    """
    if partitions < 1:
        raise ValueError(f"partitions: must be at least 1, got {partitions}")
    _check_prefix(prefix)
    retained_14_days = {"cleanup.policy": "delete", "retention.ms": str(14 * _DAY_MS)}
    topics = Topics(
        prefix=prefix,
        events=Topic(
            f"{prefix}agent-events",
            "run id",
            partitions,
            {
                **retained_14_days,
                "message.timestamp.type": "LogAppendTime",
                "max.message.bytes": str(MAX_RECORD_BYTES + _RECORD_OVERHEAD_BYTES),
            },
            "one event, or a list of at most 100 events of the same run; tool calls and compactions share it",
        ),
        verdicts=Topic(
            f"{prefix}loop-verdicts",
            "run id",
            partitions,
            {**retained_14_days, "max.message.bytes": str(MAX_BATCH_BYTES)},
            "one verdict, on the same partition number as the event that caused it",
        ),
        progress=Topic(
            f"{prefix}loop-progress",
            "partition number, written to that partition",
            partitions,
            {"cleanup.policy": "compact"},
            "how far each partition is judged",
        ),
        policies=Topic(
            f"{prefix}loop-policies",
            "none",
            1,
            # Both, since a cluster may limit the size of every topic by default.
            {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"},
            "the fleet's policies in order; only administrators may write it",
        ),
        dead=Topic(
            f"{prefix}agent-events-dead",
            "original key",
            partitions,
            {
                "cleanup.policy": "delete",
                "retention.ms": str(30 * _DAY_MS),
                "max.message.bytes": str(MAX_RECORD_BYTES + _DEAD_LETTER_OVERHEAD_BYTES),
            },
            "the original bytes of what could not be read or judged; headers say why",
        ),
        changelog=Topic(
            f"{_app_id(prefix)}-{RUNS_TABLE}-changelog",
            "run id",
            partitions,
            {
                "cleanup.policy": "compact",
                "min.compaction.lag.ms": str(_HOUR_MS),
                "max.message.bytes": str(MAX_BATCH_BYTES),
            },
            "run states: Faust's own topic",
        ),
    )
    for topic in topics.all():
        if len(topic.name) > _MAX_NAME_LENGTH:
            raise ValueError(
                f"topic prefix: must leave the name of every topic at most {_MAX_NAME_LENGTH} characters long,"
                f" got one of {len(topic.name)} with a prefix of {len(prefix)}"
            )
    return topics


def partition_for(run_id: str | bytes, partitions: int) -> int:
    """The partition of a key out of `partitions`, as Kafka's Java client chooses it (text counts as its UTF-8 bytes).

    librdkafka chooses another one unless it is told `partitioner=murmur2_random`.
    """
    key = run_id.encode() if isinstance(run_id, str) else run_id
    return (_murmur2(key) & 0x7FFFFFFF) % partitions


def _app_id(prefix: str) -> str:
    return f"{prefix}loopwarden"


def _check_prefix(prefix: str) -> None:
    if prefix and not _LEGAL_NAME.fullmatch(prefix):
        found = next(character for character in prefix if not _LEGAL_NAME.fullmatch(character))
        raise ValueError(
            f"topic prefix: must consist of the characters Kafka allows in a topic's name (a-z A-Z 0-9 . _ -),"
            f" got {prefix!r}, which has {found!r}"
        )


def _murmur2(key: bytes) -> int:
    """org.apache.kafka.common.utils.Utils.murmur2, as an unsigned number: MurmurHash2 with Kafka's own seed."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    length = len(key)
    whole = length & ~3
    h = 0x9747B28C ^ length
    for (k,) in struct.iter_unpack("<I", key[:whole]):
        k = k * m & mask
        k = (k ^ k >> 24) * m & mask
        h = h * m & mask ^ k
    if whole < length:
        h = (h ^ int.from_bytes(key[whole:], "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15
