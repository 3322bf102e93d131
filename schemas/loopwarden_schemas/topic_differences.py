"""What a cluster's topics are otherwise than declared; what can be done about it, and what must not be.

`loopwarden topics` plans by it, and the worker refuses by it to start: the same rules. Nothing here talks to Kafka.

A topic may have more than is declared: longer retention, larger records, more replicas. It must not be made to have
less. Runs are hashed to partitions, and their states lie on the partition of the same number: neither `agent-events`
nor the changelog can get another number of them while there are states.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from loopwarden_schemas.topics import DEFAULT_PARTITIONS, Topic, Topics, declared_topics

Change: TypeAlias = Literal["create", "alter", "add partitions", "add replicas", "none"]
"""What mends a difference; `none`: nothing does, without a loss."""

LEAST_BATCH_LIMIT: Final = 257 * 1024
"""`max.message.bytes` below which the worker's own batches would be refused. (It sends 256 KiB at most.)"""

_UNCLEAN: Final = "unclean.leader.election.enable"
_IN_SYNC: Final = "min.insync.replicas"

_AMOUNTS: Final = frozenset(("retention.ms", "retention.bytes", "max.message.bytes", "min.compaction.lag.ms", _IN_SYNC))
"""Settings of which more is no difference; -1 is the most."""

_WHY: Final = {
    "message.timestamp.type": "a replay would see other times than the worker did",
    "cleanup.policy": "records that are needed would be deleted, or the topic would grow for ever",
    "retention.ms": "what is kept shorter cannot be replayed",
    "retention.bytes": "what is kept shorter cannot be replayed",
    "max.message.bytes": "the broker would refuse records",
    "min.compaction.lag.ms": "a state that a stopped worker writes late could be the only one left",
    _IN_SYNC: "a record could be acknowledged by one broker alone, and be lost with it",
    _UNCLEAN: "a broker that was behind could become the leader, and acknowledged records be lost",
}

_NEW_PREFIX: Final = (
    "declare topics under another prefix (--prefix), point gateways, runners and workers there, and let the runs here"
    " come to their end"
)


@dataclass(frozen=True)
class Found:
    """A topic as the cluster has it.

    Attributes:
        partitions: How many.
        replicas: Of the partition that has the fewest.
        config: Kafka's topic settings, those that are defaults included.
    """

    partitions: int
    replicas: int
    config: Mapping[str, str | None]


@dataclass(frozen=True)
class Difference:
    """One thing that is otherwise than declared.

    Attributes:
        topic: Its name.
        setting: `topic` (it is missing), `partitions`, `replication factor`, or Kafka's name of a setting.
        found: What the cluster has; None where there is nothing.
        wanted: What it should be.
        why: What the difference does.
        change: What mends it.
        way_out: Where nothing does: what can be done instead.
        breaks_guarantees: Whether a worker refuses to start on it.
    """

    topic: str
    setting: str
    found: str | None
    wanted: str
    why: str
    change: Change
    way_out: str = ""
    breaks_guarantees: bool = False

    @property
    def rule(self) -> str:
        """What it must be, in words."""
        at_least = self.setting in _AMOUNTS and self.wanted != "-1"
        return f"at least {self.wanted}" if at_least else self.wanted

    def in_words(self) -> str:
        """Say what is wrong, without the way out."""
        if self.setting == "topic":
            return f"{self.topic}: must exist, but does not"
        return f"{self.topic}: {self.setting} must be {self.rule}, got {self.found}: {self.why}"


@dataclass(frozen=True)
class Wanted:
    """What is asked for beyond the declarations; None: what the cluster has, or its default.

    Attributes:
        prefix: The installation.
        partitions: Of all topics but the policies.
        replication: How many brokers hold each partition.
        in_sync: `min.insync.replicas`; None: 2 where there are three replicas or more.
    """

    prefix: str = ""
    partitions: int | None = None
    replication: int | None = None
    in_sync: int | None = None


def topics_wanted(wanted: Wanted, found: Mapping[str, Found]) -> Topics:
    """Return the declarations with as many partitions as the cluster has; where it has none, as many as asked for."""
    names = declared_topics(wanted.prefix)
    known = found.get(names.events.name) or found.get(names.changelog.name)
    count = known.partitions if known else wanted.partitions or DEFAULT_PARTITIONS
    return declared_topics(wanted.prefix, count)


def differences(wanted: Wanted, found: Mapping[str, Found]) -> list[Difference]:
    """Return what is otherwise than declared, topic by topic.

    Args:
        wanted: What is asked for.
        found: The topics that the cluster has, by name; others than ours do not count.
    """
    topics = topics_wanted(wanted, found)
    return [
        difference
        for topic in topics.all()
        for difference in (_of_topic(topic, topics, wanted, found) if topic.name in found else [_missing(topic)])
    ]


def _missing(topic: Topic) -> Difference:
    words = f"{topic.partitions} partition{'' if topic.partitions == 1 else 's'}"
    return Difference(topic.name, "topic", None, words, "it is needed", "create", breaks_guarantees=True)


def _of_topic(topic: Topic, topics: Topics, wanted: Wanted, found: Mapping[str, Found]) -> Iterator[Difference]:
    yield from _of_partitions(topic, topics, wanted, found)
    has = found[topic.name]
    yield from _of_replicas(topic, wanted, has)
    for setting, value in {**topic.config, **_of_durability(wanted, has)}.items():
        difference = _of_setting(topic, topics, setting, value, has)
        if difference is not None:
            yield difference


def _of_partitions(topic: Topic, topics: Topics, wanted: Wanted, found: Mapping[str, Found]) -> Iterator[Difference]:
    has, name = found[topic.name].partitions, topic.name
    events, changelog = found.get(topics.events.name), found.get(topics.changelog.name)
    if topic is topics.policies:
        if has != 1:
            why = "with more than one the policies are in no order, and partitions cannot be taken away"
            yield Difference(name, "partitions", str(has), "1", why, "none", _NEW_PREFIX, breaks_guarantees=True)
    elif topic is topics.events:
        if wanted.partitions is not None and has != wanted.partitions:
            why = (
                "runs are hashed to partitions, and would move away from their states"
                if wanted.partitions > has
                else "partitions cannot be taken away, and runs would move away from their states"
            )
            yield Difference(name, "partitions", str(has), str(wanted.partitions), why, "none", _NEW_PREFIX)
    elif has != topic.partitions:
        in_step = events is None or changelog is None or events.partitions == changelog.partitions
        if topic is topics.changelog:
            why = f"the states of a run lie on the partition of {topics.events.name} with the same number"
        elif has > topic.partitions:
            why = f"{topics.events.name} has {topic.partitions}, and partitions cannot be taken away"
        else:
            why = f"each partition of {topics.events.name} has its own there"
        grows = topic is not topics.changelog and has < topic.partitions and in_step
        change: Change = "add partitions" if grows else "none"
        yield Difference(
            name,
            "partitions",
            str(has),
            str(topic.partitions),
            why,
            change,
            "" if grows else _NEW_PREFIX,
            breaks_guarantees=True,
        )


def _of_replicas(topic: Topic, wanted: Wanted, has: Found) -> Iterator[Difference]:
    asked = wanted.replication
    if asked is None or asked == has.replicas:
        return
    if has.replicas < asked:
        why = "each partition must survive the loss of brokers"
        yield Difference(topic.name, "replication factor", str(has.replicas), str(asked), why, "add replicas")
    else:
        why = "fewer copies are never made: records could be lost with a broker"
        way_out = f"ask for {has.replicas}, or take replicas away with kafka-reassign-partitions.sh"
        yield Difference(topic.name, "replication factor", str(has.replicas), str(asked), why, "none", way_out)


def _of_durability(wanted: Wanted, has: Found) -> dict[str, str]:
    replicas = max(has.replicas, wanted.replication or 0)
    in_sync = wanted.in_sync or (2 if replicas >= 3 else 1)
    return {_UNCLEAN: "false", _IN_SYNC: str(in_sync)}


def _of_setting(topic: Topic, topics: Topics, setting: str, value: str, has: Found) -> Difference | None:
    found = has.config.get(setting)
    why = _WHY[setting]
    if setting == _IN_SYNC and found is not None and int(found) > max(has.replicas, int(value)):
        why = f"there are only {has.replicas} replicas: the broker would refuse every record"
        return Difference(topic.name, setting, found, value, why, "alter", breaks_guarantees=True)
    if setting in _AMOUNTS:
        holds = found is not None and _amount(found) >= _amount(value)
    else:
        holds = found is not None and set(found.split(",")) == set(value.split(","))
    if holds:
        return None
    if setting == _IN_SYNC and int(value) > has.replicas:
        why = f"{why}; there are {has.replicas} replicas yet"
    breaks = _breaks_guarantees(topic, topics, setting, found)
    return Difference(topic.name, setting, found, value, why, "alter", breaks_guarantees=breaks)


def _breaks_guarantees(topic: Topic, topics: Topics, setting: str, found: str | None) -> bool:
    if setting in ("message.timestamp.type", "min.compaction.lag.ms", _UNCLEAN):
        return True
    if setting == "cleanup.policy":
        return topic in (topics.events, topics.changelog, topics.progress, topics.policies)
    if setting in ("retention.ms", "retention.bytes"):
        # A run that is judged again has to find the policy it had; the rest may be kept shorter.
        return topic is topics.policies
    if setting == "max.message.bytes":
        # What the broker refuses for its size stops the worker, now and after each restart.
        if topic is topics.dead:
            return True
        return topic is not topics.events and (found is None or int(found) < LEAST_BATCH_LIMIT)
    return False


def _amount(value: str) -> float:
    return float("inf") if value == "-1" else int(value)


def to_do(found: Iterable[Difference]) -> list[Difference]:
    """Those that something mends."""
    return [each for each in found if each.change != "none"]


def refused(found: Iterable[Difference]) -> list[Difference]:
    """Those that nothing mends."""
    return [each for each in found if each.change == "none"]
