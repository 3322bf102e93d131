"""Where the cluster is, and which topics on it: what every command and client is told."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from loopwarden.client.connect import host_and_port
from loopwarden.client.errors import WrongSetting
from loopwarden_schemas.topics import Topics, declared_topics

SERVERS_VARIABLES: Final = ("LOOPWARDEN_BOOTSTRAP_SERVERS", "KAFKA_BOOTSTRAP_SERVERS")
PREFIX_VARIABLE: Final = "LOOPWARDEN_TOPIC_PREFIX"
DEFAULT_SERVERS: Final = "localhost:9092"

_SCHEME: Final = "kafka://"


@dataclass(frozen=True)
class Connection:
    """A cluster, and the prefix of the topics there. One prefix is one trust domain.

    Attributes:
        bootstrap_servers: `HOST:PORT`, or several with commas between.
        topic_prefix: Stands in front of every topic's name.
    """

    bootstrap_servers: str = DEFAULT_SERVERS
    topic_prefix: str = ""

    @classmethod
    def given(
        cls, broker: str | None = None, prefix: str | None = None, environment: Mapping[str, str] | None = None
    ) -> Connection:
        """Return what is given, else what the environment says, else the defaults. `kafka://` may stand in front.

        Raises:
            WrongSetting: an address or the prefix is none; the message says where it was given.
        """
        variables = os.environ if environment is None else environment
        source, servers = "--broker", broker
        if servers is None:
            # An empty variable counts as not given: that is how compose files and unit files leave one out.
            source = next((name for name in SERVERS_VARIABLES if variables.get(name, "").strip()), "")
            servers = variables[source] if source else DEFAULT_SERVERS
        each = [server.strip().removeprefix(_SCHEME) for server in servers.split(",")]
        try:
            for server in each:
                host_and_port(server)
        except WrongSetting as error:
            raise WrongSetting(f"{source}: {error}") from None
        connection = cls(",".join(each), variables.get(PREFIX_VARIABLE, "").strip() if prefix is None else prefix)
        try:
            connection.topics()
        except ValueError as error:
            raise WrongSetting(f"{PREFIX_VARIABLE if prefix is None else '--prefix'}: {error}") from None
        return connection

    def topics(self) -> Topics:
        """The topics by their names. How many partitions they have is known to the cluster alone."""
        return declared_topics(self.topic_prefix)
