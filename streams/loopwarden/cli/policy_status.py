"""`loopwarden policy status`"""

from __future__ import annotations

from typing import Annotated

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix, connection


def policy_status(
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each partition.")] = False,
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
) -> None:
    """Show which policy is in force in each partition of `agent-events`, for the runs that begin there.

    It is read from the log itself: the `policy.applied` of each partition. Where the log does not reach back to it any
    more (records are kept for 14 days), that is said; applying the policy again makes it visible.

    Examples:

        loopwarden policy status

        loopwarden policy status --json

    Exit code 0 where every partition has the newest policy of the archive, or there is none; 1 where one has another;
    2 where the broker cannot be reached.
    """
    from loopwarden.cli.policy_in_force import show_status

    raise typer.Exit(show_status(connection(broker, prefix, properties), as_json))
