"""`loopwarden watch`"""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix, connection


class Action(str, Enum):
    """What a verdict may say."""

    warn = "warn"
    block = "block"
    abort = "abort"
    clear = "clear"


def watch(
    run: Annotated[str | None, typer.Option("--run", metavar="ID", help="Only the verdicts of this run.")] = None,
    action: Annotated[
        list[Action] | None,
        typer.Option(
            "--action",
            metavar="ACTION",
            help="Only such verdicts: warn, block, abort or clear. May be given more than once.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each verdict as a line of JSON, as it is on the topic.")
    ] = False,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="All verdicts that are still there, and then the new ones.")
    ] = False,
    no_follow: Annotated[
        bool, typer.Option("--no-follow", help="All verdicts that are still there, and then stop.")
    ] = False,
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
) -> None:
    """Follow the verdicts as they come, until Ctrl-C.

    A line shows when the verdict was published, what it orders and why, its run and tool, the count beside the
    threshold, how many blocked calls of the run so far were refused (obeyed) or made all the same (disobeyed), and the
    message for the model. A verdict that a restarted worker published again is shown once.

    Examples:

        loopwarden watch

        loopwarden watch --action block --action abort --json

        loopwarden watch --run my-run --no-follow

    Exit code 0 after Ctrl-C or --no-follow; 2 where the broker cannot be reached, or goes away.
    """
    from loopwarden.cli.watching import Wanted, watch_verdicts

    wanted = Wanted(run, frozenset(one.value for one in action or ()))
    watch_verdicts(connection(broker, prefix, properties), wanted, as_json, from_beginning, not no_follow)
