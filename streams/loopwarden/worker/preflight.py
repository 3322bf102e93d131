"""Refuses topics that would make the guarantees false, before anything is read. (design.md, "How the worker folds".)

Each message names topic, setting, what was found, what is wanted, and the command that mends it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from loopwarden.worker.errors import StateRefused, TopicsRefused
from loopwarden.worker.transport import MAX_BATCH_BYTES
from loopwarden_schemas.topics import Topic, Topics

logger = logging.getLogger(__name__)
_AIOKAFKA_LOG = logging.getLogger("aiokafka")

_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 15.0


async def wait_for_topics(servers: str, topics: Topics) -> int:
    """Wait until a broker answers, check the topics, and return the number of partitions of `agent-events`.

    A broker that is not there is tried again and again, with pauses that grow; the log says so.

    Raises:
        TopicsRefused: a topic is missing, or is one that would make the guarantees false.
    """
    pause = _FIRST_PAUSE_S
    while True:
        try:
            return await _check(servers, topics)
        except (KafkaError, OSError) as error:
            logger.warning("no Kafka broker answers at %s (%s): trying again in %.1f s", servers, error, pause)
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)


async def _check(servers: str, topics: Topics) -> int:
    # aiokafka asks for all addresses; it logs an error for each attempt, which our own line says better.
    level = _AIOKAFKA_LOG.level
    _AIOKAFKA_LOG.setLevel(logging.CRITICAL)
    admin = AIOKafkaAdminClient(bootstrap_servers=servers.split(","))
    try:
        await admin.start()
        partitions = await _partitions(admin)
        present = [topic.name for topic in topics.all() if topic.name in partitions]
        configs = await _configs(admin, present)
    finally:
        await admin.close()
        _AIOKAFKA_LOG.setLevel(level)
    mistakes = find_mistakes(servers, topics, partitions, configs)
    if mistakes:
        raise TopicsRefused("\n".join(mistakes))
    return partitions[topics.events.name]


async def _partitions(admin: AIOKafkaAdminClient) -> dict[str, int]:
    # All topics: asking for one that is missing would create it, where the broker creates topics by itself.
    return {topic["topic"]: len(topic["partitions"]) for topic in await admin.describe_topics()}


async def _configs(admin: AIOKafkaAdminClient, names: list[str]) -> dict[str, dict[str, str]]:
    if not names:
        return {}
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    found: dict[str, dict[str, str]] = {}
    for response in await admin.describe_configs(resources):
        for error_code, message, _, name, entries in response.resources:
            if error_code:
                raise TopicsRefused(f"{name}: its settings must be readable: {message or f'error {error_code}'}")
            found[name] = {entry[0]: entry[1] for entry in entries}
    return found


def find_mistakes(
    servers: str, topics: Topics, partitions: Mapping[str, int], configs: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Return what is wrong with the topics, a line each.

    Args:
        servers: For the commands in the messages.
        topics: What is declared; the number of partitions in it does not count.
        partitions: How many there really are, by topic; no entry: the topic is missing.
        configs: The real settings of the topics that are there.
    """
    missing = [topic.name for topic in topics.all() if topic.name not in partitions]
    if missing:
        mend = f"`loopwarden up --broker kafka://{servers}` creates what is missing"
        return [f"{name}: must exist, but does not: {mend}" for name in missing]
    mistakes = []
    wanted = partitions[topics.events.name]
    for topic in (topics.verdicts, topics.progress, topics.dead, topics.changelog):
        found = partitions[topic.name]
        if found != wanted:
            # Partitions cannot be taken away, and added ones would move runs from their states.
            mistakes.append(
                f"{topic.name}: partitions must be as many as those of {topics.events.name}, {wanted}, got {found}:"
                f" create the topics anew under another LOOPWARDEN_TOPIC_PREFIX, with {wanted} partitions each"
            )
    if partitions[topics.policies.name] != 1:
        mistakes.append(
            f"{topics.policies.name}: partitions must be 1, or the policies are in no order,"
            f" got {partitions[topics.policies.name]}: create it anew"
        )
    for topic, setting, rule in _wanted(topics):
        found_value = configs[topic.name].get(setting)
        if not rule.holds(found_value):
            mistakes.append(
                f"{topic.name}: {setting} must be {rule.words}, got {found_value}: kafka-configs.sh --bootstrap-server"
                f" {servers} --alter --entity-type topics --entity-name {topic.name} --add-config"
                f" {setting}={rule.mend}"
            )
    return mistakes


def check_log(topics: Topics, partition: int, *, judged: int, end: int) -> None:
    """Refuse a log of events that is not the one that was judged.

    Args:
        topics: For the message.
        partition: Of `agent-events`.
        judged: Up to this offset it was judged, as the committed offset and the states say.
        end: Here it ends.

    Raises:
        StateRefused: it ends before.
    """
    if judged > end:
        raise StateRefused(
            f"{topics.events.name} partition {partition}: must reach to offset {judged}, up to which it was judged, but"
            f" ends at {end}: it is not the log that the states were made of, it was deleted and created again for"
            f" instance. Begin under another LOOPWARDEN_TOPIC_PREFIX, or delete {topics.changelog.name} and the"
            f" consumer group {topics.app_id}, too"
        )


class _Exactly:
    def __init__(self, value: str) -> None:
        self.words = self.mend = value

    def holds(self, found: str | None) -> bool:
        return found == self.mend


class _AtLeast:
    def __init__(self, value: int) -> None:
        self.words = f"at least {value}"
        self.mend = str(value)

    def holds(self, found: str | None) -> bool:
        return found is not None and int(found) >= int(self.mend)


def _wanted(topics: Topics) -> list[tuple[Topic, str, _Exactly | _AtLeast]]:
    batch = _AtLeast(MAX_BATCH_BYTES + 1024)
    return [
        # The producer's time says nothing about order: a replay would begin runs elsewhere.
        (topics.events, "message.timestamp.type", _Exactly("LogAppendTime")),
        # A compacted log of events would be judged with holes.
        (topics.events, "cleanup.policy", _Exactly("delete")),
        # Without compaction it would grow for ever; with deletion, states of live runs would go.
        (topics.changelog, "cleanup.policy", _Exactly("compact")),
        # A state that a worker wrote late must not be the only one left before its owner writes its own again.
        (topics.changelog, "min.compaction.lag.ms", _AtLeast(int(topics.changelog.config["min.compaction.lag.ms"]))),
        (topics.progress, "cleanup.policy", _Exactly("compact")),
        # A run that is judged again has to find the policy it had.
        (topics.policies, "cleanup.policy", _Exactly("delete")),
        (topics.policies, "retention.ms", _Exactly("-1")),
        # What the broker refuses for its size stops the worker, now and after each restart.
        (topics.verdicts, "max.message.bytes", batch),
        (topics.changelog, "max.message.bytes", batch),
        (topics.dead, "max.message.bytes", _AtLeast(int(topics.dead.config["max.message.bytes"]))),
    ]
