"""`loopwarden topics check`"""

from __future__ import annotations

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix, connection
from loopwarden.cli.topics_options import InSync, Partitions, Replication, wanted


def topics_check(
    partitions: Partitions = None,
    replication_factor: Replication = None,
    min_insync_replicas: InSync = None,
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
) -> None:
    """Say whether the cluster's topics are as declared: a line for each thing that is not, for CI and for monitoring.

    Example:

        loopwarden topics check --replication-factor 3

    Exit code 0 where all are as declared; 1 where something is not; 2 where the cluster cannot be reached or looked at.
    """
    from loopwarden.cli.topics_report import check

    cluster = connection(broker, prefix, properties)
    asked = wanted(cluster.topic_prefix, partitions, replication_factor, min_insync_replicas)
    raise typer.Exit(check(cluster, asked))
