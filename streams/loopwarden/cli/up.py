"""`loopwarden up`"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from loopwarden.cli.cluster_options import ClientProperties, Prefix


def default_data_dir() -> Path:
    """Where `up` keeps its data: `$XDG_DATA_HOME/loopwarden`, else `~/.local/share/loopwarden`, as applications do on
    Linux; on macOS `~/Library/Application Support/loopwarden`."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "loopwarden"
    data_home = Path(os.environ.get("XDG_DATA_HOME", ""))
    # The XDG base directory specification has relative paths ignored.
    return (data_home if data_home.is_absolute() else Path.home() / ".local" / "share") / "loopwarden"


def up(
    broker: Annotated[
        str | None,
        typer.Option(
            "--broker",
            "-b",
            metavar="HOST:PORT",
            help="Use this cluster, and create the topics that are missing there, instead of starting a broker. "
            "(The environment is not asked for it.)",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIR",
            help="Where the broker's data and the logs are. Without it: ~/.local/share/loopwarden (XDG_DATA_HOME), "
            "on macOS ~/Library/Application Support/loopwarden.",
        ),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=1, max=65535, help="The broker's; when taken, any free one.")
    ] = 9092,
    partitions: Annotated[
        int, typer.Option("--partitions", metavar="N", min=1, max=1000, help="Of topics that are not there yet.")
    ] = 8,
    policy: Annotated[
        str | None,
        typer.Option("--policy", metavar="FILE", help="Apply this policy at the start, if it is not in force already."),
    ] = None,
    first_policy: Annotated[
        str | None,
        typer.Option("--first-policy", metavar="FILE", help="Apply this policy, if none was ever applied."),
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Play the demo once all of it is ready.")] = False,
    prefix: Prefix = None,
    properties: ClientProperties = None,
) -> None:
    """Start all of it on this machine: Apache Kafka, the topics, one worker. Ctrl-C stops all of it.

    Nothing has to be installed: Java comes with the package, and Kafka is fetched once (45 MB). It listens on loopback
    only, and its data stay on disk: started again, it goes on with them. A worker that ends by itself is started again.
    Ctrl-C again hurries the end; nothing that was acknowledged is lost by that.

    Examples:

        loopwarden up

        loopwarden up --first-policy infra/policies/recommended.json5 --demo

        loopwarden up --data ./kafka-data

        loopwarden up --broker kafka://kafka-1:9092

    Exit code 0 after Ctrl-C or SIGTERM; 1 where the broker ended by itself, or the worker again and again, or the
    policy was refused; 2 where something cannot be started.
    """
    from loopwarden.cli.installation import Wanted, bring_up

    raise typer.Exit(
        bring_up(
            Wanted(broker, data or default_data_dir(), port, partitions, policy, first_policy, demo, prefix, properties)
        )
    )
