"""Options that the commands about topics have: the same name, and the same meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from loopwarden_schemas.topic_differences import Wanted

Partitions: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--partitions",
        metavar="N",
        min=1,
        max=10_000,
        help="Of every topic but the policies. Without it: as many as there are; 8 where there are none.",
    ),
]

Replication: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--replication-factor",
        metavar="N",
        min=1,
        max=100,
        help="How many brokers hold each partition. Without it: as many as there are; the cluster's default for new "
        "topics.",
    ),
]

InSync: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--min-insync-replicas",
        metavar="N",
        min=1,
        max=100,
        help="How many must have a record before it is acknowledged. Without it: 2 where there are 3 replicas or more.",
    ),
]


def wanted(prefix: str, partitions: int | None, replication: int | None, in_sync: int | None) -> Wanted:
    """Return what the options ask for.

    Raises:
        Mistake: more in-sync replicas are asked for than replicas.
    """
    from loopwarden.cli.mistakes import Mistake
    from loopwarden_schemas.topic_differences import Wanted

    if replication is not None and in_sync is not None and in_sync > replication:
        raise Mistake(f"--min-insync-replicas: must be at most --replication-factor, {replication}, got {in_sync}")
    return Wanted(prefix, partitions, replication, in_sync)
