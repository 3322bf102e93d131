"""Options of the commands that need a cluster: the same name, and the same meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from loopwarden.client import Connection

Broker: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--broker",
        "-b",
        metavar="HOST:PORT",
        help="Where Kafka is; several with commas between. Else LOOPWARDEN_BOOTSTRAP_SERVERS of the environment, "
        "bootstrap.servers of the client properties, KAFKA_BOOTSTRAP_SERVERS of the environment, localhost:9092.",
    ),
]

Prefix: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--prefix",
        metavar="TEXT",
        help="Stands in front of every topic's name. Else LOOPWARDEN_TOPIC_PREFIX of the environment.",
    ),
]

ClientProperties: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--client-properties",
        metavar="FILE",
        help="Client settings by Kafka's own names: security.protocol, sasl.jaas.config, ssl.truststore.location and "
        "so on. Else the file that LOOPWARDEN_CLIENT_PROPERTIES names. A variable comes before the file: "
        "LOOPWARDEN_KAFKA_ and the setting's name in capitals, SECURITY_PROTOCOL for security.protocol.",
    ),
]


def connection(broker: str | None, prefix: str | None, properties: str | None = None) -> Connection:
    """Return the cluster that the options and the environment name.

    Raises:
        WrongSetting: an address, the prefix or a client property is none.
    """
    from loopwarden.client import Connection

    return Connection.given(broker, prefix, properties_file=properties)
