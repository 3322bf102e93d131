"""`loopwarden export --run ID`"""

from __future__ import annotations

from typing import Annotated

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix, connection
from loopwarden.cli.log_options import Since, Until


def export(
    run: Annotated[
        list[str] | None, typer.Option("--run", metavar="ID", help="The run. May be given more than once.")
    ] = None,
    all_runs: Annotated[
        bool, typer.Option("--all", help="Every run of the log: all is held in memory meanwhile.")
    ] = False,
    since: Since = None,
    until: Until = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Where it goes; standard output without it.")
    ] = None,
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
) -> None:
    """Write the events of runs, and the verdicts that were recorded about them, as lines of JSON.

    The file can be judged anywhere, without a broker: `loopwarden judge FILE` gives the same verdicts, and `loopwarden
    replay --from-file FILE` compares them with the recorded ones. The policies under which the runs began are in it.

    Events carry what the gateway sent: arguments and results, or their hashes. No consumer group is joined, and nothing
    is written to the topics.

    Examples:

        loopwarden export --run build-7 -o build-7.jsonl

        loopwarden export --run build-7 | loopwarden judge -

    Exit code 0 where all of it was written; 1 where a run is not whole, since the log does not hold its beginning any
    more (the file says so, too); 2 where the log holds nothing of a run, or cannot be read.
    """
    from loopwarden.cli.exporting import export_runs
    from loopwarden.cli.log_parts import Asked
    from loopwarden.cli.mistakes import Mistake
    from loopwarden.cli.times import span

    if bool(run) == all_runs:
        raise Mistake("--run ID: must be given, or --all instead of it")
    asked = Asked(
        tuple(dict.fromkeys(run or ())),
        *span(since, until),
        judged_only=False,
    )
    raise typer.Exit(export_runs(connection(broker, prefix, properties), asked, output))
