"""`loopwarden publish FILE`"""

from __future__ import annotations

from typing import Annotated

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix, connection
from loopwarden.cli.options import Follow, Verbose


def publish(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Events as JSON lines, trajectories, or a session of Claude Code, Codex, opencode, Gemini, OpenClaw "
            "or pi; .gz too; - is stdin.",
        ),
    ],
    rate: Annotated[
        float | None, typer.Option("--rate", metavar="N", min=0.001, help="At most so many events a second.")
    ] = None,
    follow: Follow = False,
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
    verbose: Verbose = False,
) -> None:
    """Publish the events of a file to `agent-events`, each on its run's partition.

    Each event is checked first: a bad line is told with its number and why, and the rest is published. Where an event
    has no event_id or ts, its line number stands in.

    Examples:

        loopwarden publish events.jsonl

        loopwarden publish traces/tau.jsonl.gz --rate 500

        loopwarden publish ~/.codex/sessions/2026/07/23/rollout-....jsonl --follow

        tail -f events.jsonl | loopwarden publish -

    Exit code 0 where every event was acknowledged by the broker; 1 where some lines were bad and the rest was
    published; 2 where the file cannot be read, the broker cannot be reached, or it did not acknowledge an event.
    """
    from loopwarden.cli.publishing import publish_file

    raise typer.Exit(publish_file(file, connection(broker, prefix, properties), rate, verbose, follow))
