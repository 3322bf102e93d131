"""`loopwarden policy apply FILE --why TEXT`"""

from __future__ import annotations

from typing import Annotated

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix, connection


def policy_apply(
    file: Annotated[str, typer.Argument(metavar="FILE", help="An OpenClaw configuration (JSON5); - is stdin.")],
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason, for whoever asks later.")],
    by: Annotated[
        str | None, typer.Option("--by", metavar="NAME", help="Who applies it. Without it: your name on this machine.")
    ] = None,
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
) -> None:
    """Put a policy into force: archive it in `loop-policies`, then write `policy.applied` to every partition.

    It holds for the runs that begin from now on; a run that has begun keeps its own. A policy with a mistake is
    refused, with file, line and path, and the policy in force stays. Applied again after a failure, the same policy
    goes on with what is missing; applied again without one, for another reason or by somebody else, it is archived
    again for that, and else changes nothing. Of a whole OpenClaw configuration only the blocks loopDetection and
    loopwarden are archived.

    Example:

        loopwarden policy apply infra/policies/recommended.json5 --why "first policy"

    Exit code 0 where the policy is in force in every partition; 1 where the file has mistakes and was refused;
    2 where it cannot be read, or the broker cannot be reached or did not take it everywhere.
    """
    from loopwarden.cli.policy_applying import apply_file

    raise typer.Exit(apply_file(connection(broker, prefix, properties), file, by, why))
