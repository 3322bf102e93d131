"""`loopwarden what-if --policy NEW`"""

from __future__ import annotations

from typing import Annotated

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix
from loopwarden.cli.log_options import Agent, AsJson, Events, Resolved, Runs, Since, Until


def what_if(
    policy: Annotated[str, typer.Option("--policy", metavar="NEW", help="The policy to try (JSON5).")],
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="OLD", help="Another one beside it; else the policies in force by the log."),
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
    """Judge the same history under another policy, and tell what would have been otherwise.

    Which runs would have been warned, blocked or aborted earlier, later, for the first time, or no more; how many calls
    that were made it spares (it refuses them, or they come after its abort), how many seconds they took, and the tokens
    and the cost where events carry them; and which resolved runs it hurts: those it refuses a call that they made, or
    aborts.

    A run was resolved where the reason of its run.finished says resolved, success, succeeded, solved, done, completed,
    passed or ok, and nothing like unresolved, failed, error, timeout, aborted, cancelled or max; --resolved names the
    reasons instead.

    The history is taken as it was: an agent that is warned, blocked or aborted would have done something else from
    there on. What comes first is exact; what is spared is what the history holds after it.

    Examples:

        loopwarden what-if --policy new.json5 --since 7d

        loopwarden what-if --policy new.json5 --against old.json5 --from-file runs.jsonl

    Exit code 0, whatever would have been otherwise; 2 where it cannot be told.
    """
    from loopwarden.cli.history_options import history_of
    from loopwarden.cli.policy_source import fleet_policy
    from loopwarden.cli.trying import try_policy

    new, old = fleet_policy(policy), None if against is None else fleet_policy(against)
    history = history_of(run, agent, since, until, from_file, resolved, broker, prefix, properties)
    raise typer.Exit(try_policy(history, new, old, policy, against, as_json))
