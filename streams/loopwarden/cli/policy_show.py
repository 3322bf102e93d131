"""`loopwarden policy show [NUMBER]`"""

from __future__ import annotations

import time
from typing import Annotated

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix, connection


def policy_show(
    number: Annotated[
        int | None, typer.Argument(metavar="[NUMBER]", help="The policy's number; without it, the newest.", min=0)
    ] = None,
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
) -> None:
    """Print a policy of the archive as JSON, and on standard error who applied it, when and why.

    The newest is in force where `loopwarden policy status` says so.

    Examples:

        loopwarden policy show

        loopwarden policy show 3 > policy-3.json

    Exit code 2 where there is no such policy, or the broker cannot be reached.
    """
    import orjson

    from loopwarden.cli.terminal import say
    from loopwarden.client import archived, read_archive

    policy = archived(read_archive(connection(broker, prefix, properties)), number)
    when = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(policy.ts / 1000))
    say(f"policy {policy.number}, digest {policy.document.digest}, applied {when} by {policy.by}: {policy.why}")
    print(orjson.dumps(policy.document.value, option=orjson.OPT_INDENT_2).decode())
