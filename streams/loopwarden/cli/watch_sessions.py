"""`loopwarden watch-sessions [DIR…]`"""

from __future__ import annotations

from typing import Annotated

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix, connection
from loopwarden.cli.options import Verbose


def watch_sessions(
    folders: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DIR",
            show_default=False,
            help="Folders, or files; without any, where the agents on this machine keep their sessions.",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option("--policy", metavar="FILE", help="What to judge by (JSON5); without it the recommended policy."),
    ] = None,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="Warn of what is in the files already, too, not only of what is new.")
    ] = False,
    publish: Annotated[
        bool, typer.Option("--publish", help="Publish the events to `agent-events` besides; --broker says so, too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print each verdict as a line of JSON.")] = False,
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
    verbose: Verbose = False,
) -> None:
    """Watch the sessions of agents as they grow, and warn of loops: nothing is changed in the agent.

    Claude Code, Codex, opencode, Gemini, OpenClaw and pi write down what they do. Their files are found, those that
    appear later as well, followed, and judged here; a verdict is one line. Ctrl-C ends it.

    Examples:

        loopwarden watch-sessions

        loopwarden watch-sessions ~/.claude/projects --policy policy.json5

        loopwarden watch-sessions --broker localhost:9092

    Exit code 0 when it was ended; 2 where there is nothing to watch, or the broker cannot be reached.
    """
    from loopwarden.cli.session_watching import watch_folders

    cluster = connection(broker, prefix, properties) if publish or broker is not None else None
    watch_folders(folders or [], policy, from_start, cluster, as_json, verbose)
