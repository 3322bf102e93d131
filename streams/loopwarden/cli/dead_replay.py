"""`loopwarden dead replay [LETTER...] --by NAME --why TEXT`"""

from __future__ import annotations

from typing import Annotated

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix, connection
from loopwarden.cli.dead_options import LETTER_HELP, Reasons, Since


def dead_replay(
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Who does it.")],
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason, for whoever asks later.")],
    letters: Annotated[
        list[str] | None,
        typer.Argument(metavar="[LETTER]...", help=f"{LETTER_HELP} Without any: those that --reason and --since say."),
    ] = None,
    reason: Reasons = None,
    since: Since = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also what would be rejected again, or was replayed already.")
    ] = False,
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
) -> None:
    """Send the events of dead letters to agent-events again, once the cause is mended.

    Each is a new event at the end of its run's log, under the key and in the partition of its run, and is judged there:
    what the run did meanwhile lies before it. What this version would reject again is refused, and so is what was
    replayed already; an event that its run has seen nevertheless changes nothing, as its event_id tells. Who replayed
    it and why is noted in the headers of the new record and beside the letter, where `dead list` shows it.

    Examples:

        loopwarden dead replay 3/1402/0 --by ada --why "the gateway's partitioner is mended"

        loopwarden dead replay --reason judge_failed --since 1d --by ada --why "release 0.2 mends it"

    Exit code 0 where all were sent; 1 where some were refused, or there is none; 2 where an option is wrong, or the
    broker cannot be reached or did not take them.
    """
    from loopwarden.cli.dead_places import LetterId, Wanted
    from loopwarden.cli.dead_replaying import replay_letters

    wanted = Wanted.given(reason, since, [LetterId.given(each) for each in letters or ()])
    raise typer.Exit(replay_letters(connection(broker, prefix, properties), wanted, by, why, force))
