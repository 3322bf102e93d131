"""`loopwarden override allow|abort|release --run ID --by NAME --why TEXT`"""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix, connection


class Decision(str, Enum):
    """What a person may decide about a run."""

    allow = "allow"
    abort = "abort"
    release = "release"


def override(
    decision: Annotated[Decision, typer.Argument(metavar="allow|abort|release", help="What is decided; see above.")],
    run: Annotated[str, typer.Option("--run", metavar="ID", help="The run.")],
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Who decides.")],
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason, for whoever asks later.")],
    tool: Annotated[
        str | None, typer.Option("--tool", metavar="T", help="With allow: only the calls of this tool.")
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="TIME",
            help="With allow: for so long, such as 30s, 10m, 2h or 1d; else until the run ends.",
        ),
    ] = None,
    wait: Annotated[
        float | None,
        typer.Option(
            "--wait",
            metavar="S",
            min=0,
            help="Wait so many seconds at most until it is judged, and show what came of it.",
        ),
    ] = None,
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
) -> None:
    """Decide about a run, over the head of the detectors.

    **allow** lifts the blocks of the run, or of one tool in it, and places none until the time is over or the run ends.

    **release** forgets the calls that were counted, so that every block ends; a run that was aborted may go on.

    **abort** ends the run: its runner is told to stop it, and what it still does is not judged for an hour.

    The decision is an event in the log of the run (`operator.override` in `agent-events`): it is replayed like
    everything else, and `loopwarden history` shows it. Its time runs by the broker's clock.

    Examples:

        loopwarden override allow --run build-7 --tool process --for 10m --by ada --why "a slow build, I watch it"

        loopwarden override release --run build-7 --by ada --why "the flaky server is back" --wait 5

        loopwarden override abort --run build-7 --by ada --why "it edits the wrong repository"

    Exit code 0 where the broker acknowledged it (with --wait: and it was judged); 1 where it was not judged in the time
    of --wait; 2 where an option is wrong, or the broker cannot be reached.
    """
    from loopwarden.cli.overriding import Override, decide

    given = Override(decision.value, run, tool, duration, by, why)
    raise typer.Exit(decide(connection(broker, prefix, properties), given, wait))
