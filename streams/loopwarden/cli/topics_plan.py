"""`loopwarden topics plan`"""

from __future__ import annotations

from typing import Annotated

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix, connection
from loopwarden.cli.topics_options import InSync, Partitions, Replication, wanted


def topics_plan(
    partitions: Partitions = None,
    replication_factor: Replication = None,
    min_insync_replicas: InSync = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
) -> None:
    """Show what `topics apply` would do: what the cluster's topics are otherwise than declared. Nothing is changed.

    A topic may have more than is declared (longer retention, larger records, more replicas). What cannot be mended
    without breaking the states of runs is refused, with the reason and the way out.

    Examples:

        loopwarden topics plan

        loopwarden topics plan --partitions 24 --replication-factor 3 --json

    Exit code 0 where there is nothing to do; 1 where there is something to do, or something is refused; 2 where the
    cluster cannot be reached or looked at.
    """
    from loopwarden.cli.topics_report import show_plan

    cluster = connection(broker, prefix, properties)
    asked = wanted(cluster.topic_prefix, partitions, replication_factor, min_insync_replicas)
    raise typer.Exit(show_plan(cluster, asked, as_json))
