"""`loopwarden replay`"""

from __future__ import annotations

from typing import Annotated

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix, connection
from loopwarden.cli.log_options import Agent, AsJson, FromFile, Runs, Since, Until


def replay(
    run: Runs = None,
    agent: Agent = None,
    since: Since = None,
    until: Until = None,
    from_file: FromFile = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="FILE",
            help="Judge every run by this policy (JSON5), instead of those that were in force by the log.",
        ),
    ] = None,
    as_json: AsJson = False,
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
) -> None:
    """Judge the log again, and compare with the verdicts that were recorded: same, missing, extra.

    **Missing** is what judging again gives and `loop-verdicts` lacks; **extra** is what it holds and judging again does
    not give; **changed** is a verdict with other fields. With --policy the recorded verdicts are still those of the
    policies that were in force: missing is then what this policy would have added, extra what it would not have said.

    Nothing is guessed. A run whose first events, or whose policy, the log does not hold any more is not compared, but
    counted and named; so is what the worker has not judged yet. --since T reads from 24 hours before T on, since a run
    that was idle for so long begins anew.

    No consumer group is joined, and nothing is written.

    Examples:

        loopwarden replay --since 24h

        loopwarden replay --run build-7 --json

        loopwarden export --run build-7 -o build-7.jsonl; loopwarden replay --from-file build-7.jsonl

    Exit code 0 where everything that was compared is the same; 1 where something differs, or some lines of the file
    could not be read; 2 where it cannot be done: the run or the agent that was asked for is not there, a run given with
    --run cannot be compared, or no run can.
    """
    from loopwarden.cli.mistakes import Mistake
    from loopwarden.cli.policy_source import fleet_policy
    from loopwarden.cli.replaying import replay_file, replay_log
    from loopwarden.cli.times import span

    document = None if policy is None else fleet_policy(policy)
    if from_file is not None:
        if since is not None or until is not None:
            raise Mistake("--from-file: must not be given with --since or --until: a file is compared as a whole")
        raise typer.Exit(replay_file(from_file, frozenset(run or ()), agent, document, as_json))
    from loopwarden.cli.log_parts import Asked

    asked = Asked(
        tuple(dict.fromkeys(run or ())),
        *span(since, until),
        document,
    )
    raise typer.Exit(replay_log(connection(broker, prefix, properties), asked, agent, as_json))
