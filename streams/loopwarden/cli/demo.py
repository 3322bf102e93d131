"""`loopwarden demo [FILE]`"""

from __future__ import annotations

from typing import Annotated

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix, connection


def demo(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="Events as JSON lines, trajectories, or a session of OpenClaw or pi; .gz too. "
            "Without it: seven recordings of the real OpenClaw.",
        ),
    ] = None,
    speed: Annotated[
        float, typer.Option("--speed", metavar="N", min=0, help="Calls a second; 0: as fast as it goes.")
    ] = 20.0,
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
) -> None:
    """Play runs through the whole path, and show the verdicts as they come.

    The calls are published to the cluster, a worker judges them, the verdicts are read from it: each is shown beside
    the call it is about, and beside what was done about that call when the run was recorded. Each play has runs of its
    own, so that it can be played again.

    The recordings are sessions of OpenClaw with its own loop detection on; what it refused is compared with what
    Loopwarden blocks. They bring the policy that OpenClaw had (warn at 4, block at 8); runs from a file get the
    fleet's.

    Examples:

        loopwarden demo

        loopwarden demo --speed 5

        loopwarden demo my-session.jsonl --speed 0

    Exit code 0 where all was played and judged; 1 where some lines of the file could not be read; 2 where the file
    cannot be read, the cluster cannot be reached (`loopwarden up` starts one), or no worker judged the runs.
    """
    from loopwarden.cli.playing import play_file, play_recordings

    cluster = connection(broker, prefix, properties)
    raise typer.Exit(play_recordings(cluster, speed) if file is None else play_file(cluster, file, speed))
