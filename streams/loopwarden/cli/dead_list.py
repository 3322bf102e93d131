"""`loopwarden dead list`"""

from __future__ import annotations

from typing import Annotated

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix, connection
from loopwarden.cli.dead_options import Reasons, Since


def dead_list(
    reason: Reasons = None,
    since: Since = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each letter.")] = False,
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
) -> None:
    """List the events that could not be read or judged, the oldest first.

    Each is there once, also where a restarted worker wrote it again. Reasons: undecodable, too_large, too_many_events,
    unknown_type, unsupported_schema, invalid_event, invalid_payload, misrouted, unknown_policy, and judge_failed, which
    is a bug of ours.

    Examples:

        loopwarden dead list --since 1d

        loopwarden dead list --reason misrouted --json | jq .key

    Exit code 0 where there is none; 1 where there are some; 2 where an option is wrong, or the broker cannot be
    reached.
    """
    from loopwarden.cli.dead_listing import list_letters
    from loopwarden.cli.dead_places import Wanted

    raise typer.Exit(list_letters(connection(broker, prefix, properties), Wanted.given(reason, since), as_json))
