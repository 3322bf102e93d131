"""`loopwarden policy check FILE`"""

from __future__ import annotations

from typing import Annotated

import typer


def policy_check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="An OpenClaw configuration (JSON5); - is stdin.")],
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="ID", help="Show what holds for this agent's runs.")
    ] = None,
) -> None:
    """Check a policy file: say what is wrong, with line and path, or show the policy that comes of it.

    Each value is shown with its origin: default, global (tools.loopDetection), agent (the agent's own block) or
    clamped (a given value that was lowered or raised).

    Exit code 1 where the file has mistakes. Warnings leave it at 0: they say what will not happen as written.
    """
    from loopwarden.cli.policy_report import check_policy

    raise typer.Exit(check_policy(file, agent))
