"""`loopwarden selftest`"""

from __future__ import annotations

from typing import Annotated

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix, connection


def selftest(
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="S", min=0.1, help="How long to wait for the verdict.")
    ] = 10.0,
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
) -> None:
    """Send a known loop through the cluster and see whether the verdict comes back, and how fast.

    It shows that detection is really wired in, from this machine through broker and worker and back: a run of its own
    makes the same call until it must be blocked. The run brings its own policy, so that it works whatever the fleet's
    says, and ends itself. One run lies in one partition; another time it is another one.

    Examples:

        loopwarden selftest

        loopwarden selftest --timeout 2 || page-somebody

    Exit code 0 where the verdict came back, and is the one that the judge here gives; 1 where it did not come in time;
    2 where the broker cannot be reached, or a topic is not there.
    """
    from loopwarden.cli.selftesting import send_a_loop

    raise typer.Exit(send_a_loop(connection(broker, prefix, properties), timeout))
