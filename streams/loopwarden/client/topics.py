"""The declared topics and a cluster's, through Kafka's admin API: look, create, alter. The rules are in the contract.

(`loopwarden_schemas.topic_differences`.)
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from kafka import TopicPartition
from kafka.admin import ConfigResource, KafkaAdminClient
from kafka.errors import ClusterAuthorizationFailedError, KafkaError, TopicAuthorizationFailedError

from loopwarden.client.acls import Grant
from loopwarden.client.admin import BROKERS_DEFAULT, admin_client, create_on, wait_for_leaders
from loopwarden.client.connect import CONNECT_S
from loopwarden.client.errors import Missing, NotAuthorized, TopicMissing, TopicsFailed, TopicsRefused
from loopwarden.client.rights import check_rights, described
from loopwarden.client.settings import Connection
from loopwarden_schemas.topic_differences import (
    Difference,
    Found,
    Wanted,
    differences,
    refused,
    to_do,
    topics_wanted,
)
from loopwarden_schemas.topics import Topic

_LEADERS_S: Final = 30.0
_REPLICATED_S: Final = 120.0
_LOOK_S: Final = 0.5
_MOST_ROUNDS: Final = 3


def find_topics(
    connection: Connection,
    topics: Iterable[Topic],
    connect_timeout: float = CONNECT_S,
    rights: Iterable[Grant] = (),
) -> dict[str, Found]:
    """Return those of the topics that the cluster has.

    Args:
        connection: The cluster.
        topics: Which ones.
        connect_timeout: In seconds.
        rights: What this client must be allowed, beside looking.

    Raises:
        BrokerUnavailable: no broker there, or it does not let this client in.
        NotAuthorized: this client must not look at one of them or at its settings, or has not one of the rights.
    """
    with admin_client(connection, connect_timeout) as client:
        check_rights(client, connection, rights)
        return _found(client, connection, topics)


def find_differences(connection: Connection, wanted: Wanted) -> list[Difference]:
    """Return what the cluster has otherwise than declared; see `find_topics` for what is raised."""
    return differences(wanted, find_topics(connection, connection.topics().all()))


def apply_declarations(connection: Connection, wanted: Wanted) -> list[Difference]:
    """Create and alter topics until they are as declared; return what was done.

    Nothing is done where something is refused.

    Raises:
        BrokerUnavailable: no broker there, or it does not let this client in.
        NotAuthorized: a right is missing.
        TopicsRefused: something is asked for that would break what is there.
        TopicsFailed: the broker refused a change.
    """
    done: list[Difference] = []
    with admin_client(connection) as client:
        for _ in range(_MOST_ROUNDS):
            found = _found(client, connection, connection.topics().all())
            left = differences(wanted, found)
            if refused(left):
                reasons = (f"{each.in_words()}. The way out: {each.way_out}" for each in refused(left))
                raise TopicsRefused("\n".join(reasons))
            if not left:
                return done
            # First what is missing, then replicas, then settings that may need them: what the cluster's own defaults
            # gave is seen in the next round.
            change = next(kind for kind in ("create", "add partitions", "add replicas", "alter") if _any(left, kind))
            first = [each for each in left if each.change == change]
            _carry_out(client, connection, wanted, found, first)
            done += first
        left = to_do(differences(wanted, _found(client, connection, connection.topics().all())))
    if left:
        told = "; the broker took the change, but did not make it"
        raise TopicsFailed("\n".join(f"{each.in_words()}{told}" for each in left))
    return done


def _any(left: Iterable[Difference], change: str) -> bool:
    return any(each.change == change for each in left)


def _found(client: KafkaAdminClient, connection: Connection, topics: Iterable[Topic]) -> dict[str, Found]:
    metadata = {}
    for topic in topics:
        with suppress(TopicMissing):
            metadata[topic.name] = described(client, connection, topic.name, "DescribeConfigs")["partitions"]
    if not metadata:
        return {}
    resources = [ConfigResource("topic", name) for name in metadata]
    configs: dict[str, Any] = client.describe_configs(resources, config_filter="all").get("topic", {})
    return {
        name: Found(
            len(partitions),
            min((len(each["replica_nodes"]) for each in partitions), default=0),
            {key: entry["value"] for key, entry in configs[name].items()},
        )
        for name, partitions in metadata.items()
    }


def _carry_out(
    client: KafkaAdminClient,
    connection: Connection,
    wanted: Wanted,
    found: Mapping[str, Found],
    changes: list[Difference],
) -> None:
    names = [each.topic for each in changes]
    topics = {topic.name: topic for topic in topics_wanted(wanted, found).all()}
    change = changes[0].change
    try:
        if change == "create":
            create_on(
                client,
                [topics[name] for name in names],
                wanted.replication or BROKERS_DEFAULT,
                time.monotonic() + _LEADERS_S,
            )
        elif change == "add partitions":
            client.create_partitions({each.topic: int(each.wanted) for each in changes})
        elif change == "add replicas":
            _add_replicas(client, names, wanted.replication or 1)
        else:
            _alter(client, connection, changes)
    except NotAuthorized:
        raise
    except KafkaError as error:
        right = {"create": "Create", "alter": "AlterConfigs"}.get(change, "Alter")
        if isinstance(error, (TopicAuthorizationFailedError, ClusterAuthorizationFailedError)):
            raise _not_authorized(connection, names[0], right) from None
        raise TopicsFailed(f"{', '.join(names)}: the broker refused to {change}: {error}") from error
    wait_for_leaders(client, names, time.monotonic() + _LEADERS_S)


def _not_authorized(connection: Connection, topic: str, right: str) -> NotAuthorized:
    return NotAuthorized(connection.security.principal, connection.bootstrap_servers, Missing("topic", topic, right))


def _alter(client: KafkaAdminClient, connection: Connection, changes: list[Difference]) -> None:
    settings: dict[str, dict[str, str]] = {}
    for each in changes:
        settings.setdefault(each.topic, {})[each.setting] = each.wanted
    resources = [ConfigResource("topic", name, configs) for name, configs in settings.items()]
    for name, result in client.alter_configs(resources, raise_on_unknown=False)["topic"].items():
        if "AuthorizationFailed" in result:
            raise _not_authorized(connection, name, "AlterConfigs")
        if result != "OK":
            raise TopicsFailed(f"{name}: the broker refused {settings[name]}: {result}")


def _add_replicas(client: KafkaAdminClient, names: list[str], replication: int) -> None:
    """Give partitions more replicas, on the brokers that have the fewest of these topics so far; wait for them."""
    brokers = sorted(broker["broker_id"] for broker in client.describe_cluster()["brokers"])
    if len(brokers) < replication:
        raise TopicsFailed(
            f"{', '.join(names)}: replication factor must be at most the number of brokers, {len(brokers)}, got"
            f" {replication}"
        )
    load = dict.fromkeys(brokers, 0)
    assigned: dict[TopicPartition, list[int]] = {}
    for topic in client.describe_topics(names):
        for partition in topic["partitions"]:
            replicas = list(partition["replica_nodes"])
            while len(replicas) < replication:
                added = min((each for each in brokers if each not in replicas), key=lambda each: load[each])
                load[added] += 1
                replicas.append(added)
            assigned[TopicPartition(topic["name"], partition["partition_index"])] = replicas
    for at, error in client.alter_partition_reassignments(assigned).items():
        if error is not None:
            raise TopicsFailed(f"{at.topic}/{at.partition}: the broker refused to add replicas: {error.__name__}")
    deadline = time.monotonic() + _REPLICATED_S
    while client.list_partition_reassignments(list(assigned)):
        if time.monotonic() > deadline:
            raise TopicsFailed(
                f"{', '.join(names)}: replicas are still being copied after {_REPLICATED_S:.0f} s, and go on; ask again"
            )
        time.sleep(_LOOK_S)
