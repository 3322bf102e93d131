"""Why a topic cannot be used: it is not there, or this client's principal has not the right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kafka.admin import KafkaAdminClient
from kafka.errors import GroupAuthorizationFailedError, KafkaError, for_code

from loopwarden.client.acls import Grant
from loopwarden.client.admin import admin_client
from loopwarden.client.errors import BrokerUnavailable, ClusterError, Missing, NotAuthorized, TopicMissing
from loopwarden.client.settings import Connection

UNKNOWN_TOPIC: Final = 3
NOT_AUTHORIZED: Final = 29


def described(client: KafkaAdminClient, connection: Connection, topic: str, right: str) -> dict[str, Any]:
    """Return the metadata of a topic that is there, and that this client has the right to.

    Args:
        client: Made with `connection`.
        topic: Its name; asking for one that is missing creates none.
        right: As `kafka-acls.sh` names it, such as `Write`.

    Raises:
        TopicMissing: it is not there.
        NotAuthorized: the principal has not the right.
        BrokerUnavailable: it is being made or moved.
    """
    [found] = client.describe_topics([topic])
    if found["error_code"] == UNKNOWN_TOPIC:
        raise TopicMissing(topic, connection.bootstrap_servers, connection.topic_prefix)
    # Brokers without ACLs, and old ones, list no rights or all.
    listed = found.get("authorized_operations")
    if found["error_code"] == NOT_AUTHORIZED or (listed and acl_name(right) not in listed):
        lacking = Missing("topic", topic, right)
        raise NotAuthorized(connection.security.principal, connection.bootstrap_servers, lacking)
    if found["error_code"]:
        raise BrokerUnavailable(
            f"{connection.bootstrap_servers}: {topic} cannot be looked at now: {for_code(found['error_code']).__name__}"
        )
    metadata: dict[str, Any] = found
    return metadata


def check_rights(client: KafkaAdminClient, connection: Connection, rights: Iterable[Grant]) -> None:
    """Look whether this client has these rights. Topics that are missing are passed over.

    Raises:
        NotAuthorized: it has not; all that is missing is named.
    """
    missing: list[Missing] = []
    for grant in rights:
        if grant.kind == "group":
            missing += [] if _may_use_group(client, grant.name) else [Missing(*grant[:2], grant.operations[0])]
            continue
        for right in grant.operations:
            missing += _lacking(client, connection, grant.name, right)
    if missing:
        raise NotAuthorized(connection.security.principal, connection.bootstrap_servers, *missing)


def _lacking(client: KafkaAdminClient, connection: Connection, topic: str, right: str) -> tuple[Missing, ...]:
    try:
        described(client, connection, topic, right)
    except TopicMissing:
        return ()
    except NotAuthorized as error:
        return error.missing
    return ()


def _may_use_group(client: KafkaAdminClient, group: str) -> bool:
    try:
        client.describe_groups([group])
    except GroupAuthorizationFailedError:
        return False
    except KafkaError:
        # A group that was never used, and a broker that is busy, say nothing about rights.
        return True
    return True


def acl_name(right: str) -> str:
    """Return `DESCRIBE_CONFIGS` for `DescribeConfigs`: Kafka's tools and its protocol write rights differently."""
    return "".join(f"_{letter}" if letter.isupper() else letter for letter in right).lstrip("_").upper()


def require(connection: Connection, rights: Iterable[Grant]) -> None:
    """Look whether this client has these rights, before something is begun that would end half-way without them.

    Raises:
        BrokerUnavailable: no broker there.
        NotAuthorized: it has not.
    """
    with admin_client(connection) as client:
        check_rights(client, connection, rights)


def why_not(connection: Connection, topic: str, right: str) -> ClusterError:
    """Return what to tell of a topic that could not be used."""
    try:
        with admin_client(connection) as client:
            described(client, connection, topic, right)
    except ClusterError as error:
        return error
    # It came to be between the two looks.
    return TopicMissing(topic, connection.bootstrap_servers, connection.topic_prefix)
