"""Why a topic cannot be used: it is not there, or this client's principal has not the right."""

from __future__ import annotations

from typing import Any, Final

from kafka.admin import KafkaAdminClient

from loopwarden.client.admin import admin_client
from loopwarden.client.errors import ClusterError, NotAuthorized, TopicMissing
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
    """
    [found] = client.describe_topics([topic])
    if found["error_code"] == UNKNOWN_TOPIC:
        raise TopicMissing(topic, connection.bootstrap_servers, connection.topic_prefix)
    # Brokers without ACLs, and old ones, list no rights or all.
    listed = found.get("authorized_operations")
    if found["error_code"] == NOT_AUTHORIZED or (listed and acl_name(right) not in listed):
        raise NotAuthorized("topic", topic, right, connection.security.principal, connection.bootstrap_servers)
    metadata: dict[str, Any] = found
    return metadata


def acl_name(right: str) -> str:
    """Return `DESCRIBE_CONFIGS` for `DescribeConfigs`: Kafka's tools and its protocol write rights differently."""
    return "".join(f"_{letter}" if letter.isupper() else letter for letter in right).lstrip("_").upper()


def why_not(connection: Connection, topic: str, right: str) -> ClusterError:
    """Return what to tell of a topic that could not be used."""
    try:
        with admin_client(connection) as client:
            described(client, connection, topic, right)
    except ClusterError as error:
        return error
    # It came to be between the two looks.
    return TopicMissing(topic, connection.bootstrap_servers, connection.topic_prefix)
