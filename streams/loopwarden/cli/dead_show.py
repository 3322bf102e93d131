"""`loopwarden dead show LETTER`"""

from __future__ import annotations

from typing import Annotated

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix, connection
from loopwarden.cli.dead_options import LETTER_HELP


def dead_show(
    letter: Annotated[str, typer.Argument(metavar="LETTER", help=LETTER_HELP)],
    raw: Annotated[
        bool, typer.Option("--raw", help="Write nothing but the original bytes, as they are, to standard output.")
    ] = False,
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
) -> None:
    """Show one dead letter: what is wrong with the event, where it lies, and the event itself.

    The event is shown as JSON where it can be decoded, else as bytes. Where the letter carries only the beginning of a
    large record, the rest is read from agent-events, as long as it is there.

    Examples:

        loopwarden dead show 3/1402/0

        loopwarden dead show 3/1402/0 --raw > event.msgpack

    Exit code 0 where it was shown; 1 where there is no such letter; 2 where LETTER is none, or the broker cannot be
    reached.
    """
    from loopwarden.cli.dead_places import LetterId
    from loopwarden.cli.dead_showing import show_letter

    raise typer.Exit(show_letter(connection(broker, prefix, properties), LetterId.given(letter), raw))
