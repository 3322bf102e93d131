"""`loopwarden history --run ID`"""

from __future__ import annotations

from typing import Annotated

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix, connection


def history(
    run: Annotated[str, typer.Option("--run", metavar="ID", help="The run.")],
    calls: Annotated[bool, typer.Option("--calls", help="Every call, too; else only those that were refused.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each entry.")] = False,
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
) -> None:
    """Show what happened in a run, in the order of its log: people's decisions, verdicts, and whether they were obeyed.

    Who decided, what and why; where the run began, was compacted and ended; every verdict, each below the event that
    caused it; and the calls that the runner refused. A verdict is followed through:

    - a block was **obeyed** so many times (calls refused) and **disobeyed** so many times (calls made all the same);

    - an abort was obeyed, or so many calls began after it;

    - a warning was **shown**, where an event of the runner names it; not every runner tells.

    Examples:

        loopwarden history --run build-7

        loopwarden history --run build-7 --json | jq 'select(.kind == "verdict") | .followed'

    Exit code 0 where the log holds something of the run; 1 where it holds nothing; 2 where the broker cannot be
    reached.
    """
    from loopwarden.cli.run_history import show_history

    raise typer.Exit(show_history(connection(broker, prefix, properties), run, calls, as_json))
