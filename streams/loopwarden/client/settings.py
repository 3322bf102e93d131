"""Where the cluster is, and which topics on it: what every command and client is told."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from loopwarden.client.addresses import host_and_port
from loopwarden.client.errors import WrongSetting
from loopwarden.client.properties import Property, client_properties
from loopwarden.client.security import Security, security_given
from loopwarden_schemas.topics import Topics, declared_topics

SERVERS_VARIABLE: Final = "LOOPWARDEN_BOOTSTRAP_SERVERS"
KAFKAS_SERVERS_VARIABLE: Final = "KAFKA_BOOTSTRAP_SERVERS"
PREFIX_VARIABLE: Final = "LOOPWARDEN_TOPIC_PREFIX"
DEFAULT_SERVERS: Final = "localhost:9092"

_SCHEME: Final = "kafka://"


@dataclass(frozen=True)
class Connection:
    """A cluster, the prefix of the topics there, and how it lets this client in. One prefix is one trust domain.

    Attributes:
        bootstrap_servers: `HOST:PORT`, or several with commas between.
        topic_prefix: Stands in front of every topic's name.
        security: TLS and SASL.
    """

    bootstrap_servers: str = DEFAULT_SERVERS
    topic_prefix: str = ""
    security: Security = field(default_factory=Security)

    @classmethod
    def given(
        cls,
        broker: str | None = None,
        prefix: str | None = None,
        environment: Mapping[str, str] | None = None,
        properties_file: str | None = None,
    ) -> Connection:
        """Return what is given, else what the environment says, else the properties file, else the defaults.

        Args:
            broker: Where the cluster is. `kafka://` may stand in front.
            prefix: The topics'.
            environment: Instead of the process's own.
            properties_file: Client properties by Kafka's names; else the file in `LOOPWARDEN_CLIENT_PROPERTIES`.

        Raises:
            WrongSetting: an address, the prefix or a property is none; the message says where it was given.
        """
        variables = os.environ if environment is None else environment
        properties = client_properties(properties_file, variables)
        source, servers = _servers(broker, variables, properties)
        each = [server.strip().removeprefix(_SCHEME) for server in servers.split(",")]
        try:
            for server in each:
                host_and_port(server)
        except WrongSetting as error:
            of = f" in {servers!r}" if len(each) > 1 else ""
            raise WrongSetting(f"{source}: {error}{of}") from None
        connection = cls(
            ",".join(each),
            variables.get(PREFIX_VARIABLE, "").strip() if prefix is None else prefix,
            security_given(properties),
        )
        try:
            connection.topics()
        except ValueError as error:
            raise WrongSetting(f"{PREFIX_VARIABLE if prefix is None else '--prefix'}: {error}") from None
        return connection

    def topics(self) -> Topics:
        """The topics by their names. How many partitions they have is known to the cluster alone."""
        return declared_topics(self.topic_prefix)


def as_connection(cluster: Connection | str) -> Connection:
    """Return the connection; of an address, the one to a cluster that asks for nothing."""
    return Connection(cluster) if isinstance(cluster, str) else cluster


def _servers(broker: str | None, variables: Mapping[str, str], properties: Mapping[str, Property]) -> tuple[str, str]:
    """Where the address was given, and the address."""
    if broker is not None:
        return "--broker", broker
    # An empty variable counts as not given: that is how compose files and unit files leave one out.
    if variables.get(SERVERS_VARIABLE, "").strip():
        return SERVERS_VARIABLE, variables[SERVERS_VARIABLE]
    if "bootstrap.servers" in properties:
        given = properties["bootstrap.servers"]
        return given.where, given.value
    if variables.get(KAFKAS_SERVERS_VARIABLE, "").strip():
        return KAFKAS_SERVERS_VARIABLE, variables[KAFKAS_SERVERS_VARIABLE]
    return "", DEFAULT_SERVERS
