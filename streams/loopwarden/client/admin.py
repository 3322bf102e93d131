"""Kafka's admin API as we use it: create what is declared, wait for leaders, see what is there."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaTimeoutError, TopicAuthorizationFailedError, for_code

from loopwarden.client.connect import CONNECT_S, connected
from loopwarden.client.errors import TopicsFailed
from loopwarden.client.settings import Connection
from loopwarden_schemas.topics import Topic, Topics

BROKERS_DEFAULT = -1
"""As a replication factor: the cluster's own default."""

_TOPIC_ALREADY_EXISTS = 36


@contextmanager
def admin_client(cluster: Connection | str, connect_timeout: float = CONNECT_S) -> Iterator[KafkaAdminClient]:
    """An admin client of kafka-python; see `connected`."""
    with connected(KafkaAdminClient, cluster, connect_timeout) as client:
        yield client


def create_topics(
    cluster: Connection | str, topics: Topics, *, replication_factor: int = 1, timeout: float = 30.0
) -> list[str]:
    """Creates the topics that are missing, leaves those that exist as they are, and waits until every partition of all
    has its leader: before that, clients get NotLeaderForPartition for a second. `timeout` is in seconds.

    Returns the names of those it created.

    Raises:
        BrokerUnavailable: no broker there.
        TopicsFailed: the broker refused, or a leader is missing at the end of `timeout`.
    """
    deadline = time.monotonic() + timeout
    with admin_client(cluster, min(timeout, CONNECT_S)) as client:
        present = set(client.list_topics())
        missing = [topic for topic in topics.all() if topic.name not in present]
        created = create_on(client, missing, replication_factor, deadline) if missing else []
        wait_for_leaders(client, [topic.name for topic in topics.all()], deadline)
    return created


def partition_count(cluster: Connection | str, topic: str) -> int | None:
    """Return how many partitions a topic has; None where it does not exist.

    Raises:
        BrokerUnavailable: no broker there.
    """
    with admin_client(cluster) as client:
        # Looked up first: asking for a topic that is missing may create it.
        if topic not in client.list_topics():
            return None
        return len(client.describe_topics([topic])[0]["partitions"])


def wait_for_leaders(client: KafkaAdminClient, names: list[str], deadline: float) -> None:
    """Waits until every partition of the topics has its leader. `deadline` is a time of `time.monotonic()`.

    Raises:
        TopicsFailed: it was not so by then.
    """
    try:
        client.wait_for_topics(names, timeout_ms=max(0.0, deadline - time.monotonic()) * 1000)
    except KafkaTimeoutError as error:
        raise TopicsFailed(f"every partition must have a leader: {error}") from error


def create_on(client: KafkaAdminClient, topics: Sequence[Topic], replication_factor: int, deadline: float) -> list[str]:
    """Creates topics that are missing, and returns the names of those it created.

    Raises:
        TopicsFailed: the broker refused.
        TopicAuthorizationFailedError: the principal may create none; `connected` and `topics` say it in our words.
    """
    missing = {
        topic.name: {
            "num_partitions": topic.partitions,
            "replication_factor": replication_factor,
            "configs": dict(topic.config),
        }
        for topic in topics
    }
    left_ms = max(1000, int((deadline - time.monotonic()) * 1000))
    results = client.create_topics(missing, timeout_ms=left_ms, raise_errors=False)["topics"]
    created = []
    for result in results:
        if result["error_code"] == 0:
            created.append(result["name"])
        elif result["error_code"] != _TOPIC_ALREADY_EXISTS:  # somebody else created it in between
            error = for_code(result["error_code"])
            if error is TopicAuthorizationFailedError:
                raise error(result["name"])
            raise TopicsFailed(
                f"{result['name']}: the broker refused to create the topic: {error.__name__}: {result['error_message']}"
            )
    return created
