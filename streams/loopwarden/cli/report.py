"""`loopwarden report --run ID`"""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix
from loopwarden.cli.options import Verbose


class ReportFormat(str, Enum):
    """What a report is written as."""

    html = "html"
    md = "md"
    json = "json"


def report(
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="ID", help="The run; a file that holds only one needs none."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Where it goes; standard output without it.")
    ] = None,
    form: Annotated[
        ReportFormat | None,
        typer.Option("--format", help="Without it, as the name of FILE ends (.html, .md, .json); else html."),
    ] = None,
    from_file: Annotated[
        str | None,
        typer.Option("--from-file", metavar="FILE", help="Read it from a file that `judge` or `export` knows."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option("--policy", metavar="FILE", help="Judge by this policy, whatever was in force (JSON5)."),
    ] = None,
    payloads: Annotated[
        int,
        typer.Option(
            "--payloads",
            metavar="N",
            min=0,
            help="Characters shown of each arguments, result, error; 0: none.",
        ),
    ] = 2_000,
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
    verbose: Verbose = False,
) -> None:
    """Draw a run: every call a cell, coloured by tool and arguments and marked by outcome, so that a loop is seen.

    With it go the streaks along the run, the verdicts and who obeyed them, what each call carried, and the policy in
    force. The HTML is one file without script: it may be mailed, printed, and opened in ten years. Decisions and
    verdicts are judged anew from the events, and compared with what was published.

    Examples:

        loopwarden report --run build-7 -o build-7.html

        loopwarden report --run build-7 --format md | gh issue comment 12 --body-file -

        loopwarden report --from-file session.jsonl --policy strict.json5 -o run.html

    Exit code 0 where the report was written; 1 where there is nothing of the run, or some lines of the file could not
    be read; 2 where the file or the broker cannot be reached.
    """
    from loopwarden.cli.reporting import Wanted, report_from_cluster, report_from_file

    wanted = Wanted(run, output, None if form is None else form.value, policy, payloads)
    if from_file is not None:
        if broker is not None or prefix is not None or properties is not None:
            raise typer.BadParameter(
                "must not be given with --broker, --prefix or --client-properties", param_hint="--from-file"
            )
        raise typer.Exit(report_from_file(from_file, wanted, verbose))
    if run is None:
        raise typer.BadParameter("must be given, unless a file is read with --from-file", param_hint="--run")
    from loopwarden.cli.cluster_options import connection

    raise typer.Exit(report_from_cluster(connection(broker, prefix, properties), run, wanted))
