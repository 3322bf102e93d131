"""`loopwarden tune`"""

from __future__ import annotations

from typing import Annotated

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix
from loopwarden.cli.log_options import Agent, AsJson, Events, Resolved, Runs, Since, Until


def tune(
    policy: Annotated[
        str | None,
        typer.Option("--policy", metavar="FILE", help="The policy to begin with (JSON5); else the defaults."),
    ] = None,
    most_harm: Annotated[
        float,
        typer.Option("--most-harm", metavar="%", min=0, max=100, help="Of the resolved runs, at most so many."),
    ] = 1.0,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the chosen policy there.")
    ] = None,
    run: Runs = None,
    agent: Agent = None,
    since: Since = None,
    until: Until = None,
    from_file: Events = None,
    resolved: Resolved = None,
    as_json: AsJson = False,
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
) -> None:
    """Try thresholds and detectors on a history, and choose those that stop most runs that failed and harm few others.

    Each policy is the given one with other thresholds and detectors for the fleet. A run is **stopped** where the
    policy refuses a call that it made, or aborts it; a resolved run that is stopped was **harmed**. What is shown are
    the policies that no other beats, and a plot of all; the chosen one stops most runs that were not resolved, and
    harms at most --most-harm percent of those that were. `what-if` tells the runs one by one.

    Which runs were resolved is told as in `what-if`; without such runs nothing can be chosen.

    Examples:

        loopwarden tune --since 14d -o tuned.json5

        loopwarden tune --from-file runs.jsonl.gz --most-harm 0.5

    Exit code 0 where a policy was chosen; 1 where none can be; 2 where the history cannot be read.
    """
    from loopwarden.cli.history_options import history_of
    from loopwarden.cli.policy_source import fleet_policy
    from loopwarden.cli.tuning import tune_policy

    base = fleet_policy(policy)
    history = history_of(run, agent, since, until, from_file, resolved, broker, prefix, properties)
    raise typer.Exit(tune_policy(history, base, most_harm / 100, output, as_json))
