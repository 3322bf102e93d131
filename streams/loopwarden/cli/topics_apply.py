"""`loopwarden topics apply`"""

from __future__ import annotations

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix, connection
from loopwarden.cli.topics_options import InSync, Partitions, Replication, wanted


def topics_apply(
    partitions: Partitions = None,
    replication_factor: Replication = None,
    min_insync_replicas: InSync = None,
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
) -> None:
    """Create the topics that are missing, and alter those that are otherwise than declared.

    Applied again it changes nothing. Where something is refused nothing is changed: topics are never made to keep
    less, and never get another number of partitions while runs have states on them.

    Examples:

        loopwarden topics apply --partitions 24 --replication-factor 3

        loopwarden topics apply --client-properties admin.properties

    Exit code 0 where the topics are as declared now; 1 where something is refused, and nothing was changed; 2 where the
    cluster cannot be reached, or refused a change.
    """
    from loopwarden.cli.topics_report import apply

    cluster = connection(broker, prefix, properties)
    asked = wanted(cluster.topic_prefix, partitions, replication_factor, min_insync_replicas)
    raise typer.Exit(apply(cluster, asked))
