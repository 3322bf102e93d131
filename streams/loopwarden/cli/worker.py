"""`loopwarden worker`"""

from __future__ import annotations

import os
from enum import Enum
from typing import Annotated

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix, connection


class LogLevel(str, Enum):
    """What the log tells."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


def worker(
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
    checkpoint_seconds: Annotated[
        str | None,
        typer.Option(metavar="S", help="Time between two checkpoints. Else LOOPWARDEN_CHECKPOINT_SECONDS, else 1."),
    ] = None,
    checkpoint_events: Annotated[
        str | None,
        typer.Option(
            metavar="N", help="A checkpoint comes earlier after so many events. Else LOOPWARDEN_CHECKPOINT_EVENTS."
        ),
    ] = None,
    held_runs: Annotated[
        str | None, typer.Option(metavar="N", help="Runs kept decoded in memory. Else LOOPWARDEN_HELD_RUNS.")
    ] = None,
    session_seconds: Annotated[
        str | None,
        typer.Option(
            metavar="S", help="A dead worker's partitions go to others after so long. Else LOOPWARDEN_SESSION_SECONDS."
        ),
    ] = None,
    group_instance_id: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A name of its own: it comes back to its partitions, and the others keep theirs. Else"
            " LOOPWARDEN_GROUP_INSTANCE_ID.",
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where states are held: memory:// or rocksdb://. Else LOOPWARDEN_STORE."),
    ] = None,
    data_dir: Annotated[
        str | None, typer.Option(metavar="DIR", help="A folder of this worker's own. Else LOOPWARDEN_DATA_DIR.")
    ] = None,
    metrics_port: Annotated[
        str | None,
        typer.Option(metavar="PORT", help="Serves /metrics, /healthz and /readyz there. Else LOOPWARDEN_METRICS_PORT."),
    ] = None,
    metrics_address: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Where they are served. Else LOOPWARDEN_METRICS_ADDRESS, else loopback."),
    ] = None,
    log_format: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="text or json. Else LOOPWARDEN_LOG_FORMAT, else text.")
    ] = None,
    log_level: Annotated[
        LogLevel,
        typer.Option(metavar="LEVEL", help="debug, info, warning or error: what the log on standard error tells."),
    ] = LogLevel.info,
) -> None:
    """Run a worker until Ctrl-C or SIGTERM: it judges `agent-events` and publishes verdicts.

    Start as many as you like, up to one for each partition: they share the partitions among them. A broker that is not
    there is tried again and again; topics that would make the guarantees false are refused. Its settings may stand in
    the environment as well; an option comes before it.

    Examples:

        loopwarden worker --broker kafka://kafka-1:9092,kafka-2:9092

        LOOPWARDEN_TOPIC_PREFIX=team- loopwarden worker

        loopwarden worker --metrics-port 9400 --log-format json

    Exit code 0 where it was asked to stop, and what it had judged is durable; 1 where it stopped by itself, and its log
    says why; 2 where a setting is wrong.
    """
    cluster = connection(broker, prefix, properties)
    given = {
        "CHECKPOINT_SECONDS": checkpoint_seconds,
        "CHECKPOINT_EVENTS": checkpoint_events,
        "HELD_RUNS": held_runs,
        "SESSION_SECONDS": session_seconds,
        "GROUP_INSTANCE_ID": group_instance_id,
        "STORE": store,
        "DATA_DIR": data_dir,
        "METRICS_PORT": metrics_port,
        "METRICS_ADDRESS": metrics_address,
        "LOG_FORMAT": log_format,
    }
    environment = {
        **os.environ,
        **{f"LOOPWARDEN_{name}": value for name, value in given.items() if value is not None},
        "LOOPWARDEN_BOOTSTRAP_SERVERS": cluster.bootstrap_servers,
        "LOOPWARDEN_TOPIC_PREFIX": cluster.topic_prefix,
    }
    if properties is not None:
        environment["LOOPWARDEN_CLIENT_PROPERTIES"] = properties
    from loopwarden.worker import Settings, run_worker

    raise typer.Exit(run_worker(Settings.from_environment(environment), log_level=log_level.value))
