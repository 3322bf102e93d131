"""`loopwarden sidecar`"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix, connection
from loopwarden.cli.listening_options import Host, Port, Unix


class Payload(str, Enum):
    """What of arguments and results goes to the log."""

    full = "full"
    hash = "hash"


def sidecar(
    port: Port = 9099,
    host: Host = "127.0.0.1",
    unix: Unix = None,
    token_file: Annotated[
        str | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="Holds the token that each request must bring. Else LOOPWARDEN_SIDECAR_TOKEN of the environment.",
        ),
    ] = None,
    payload: Annotated[
        Payload, typer.Option(help="hash: arguments and results are only hashed, and do not go to the log.")
    ] = Payload.full,
    spool_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="While the broker is away events go to files here, and are sent later, also by the next sidecar with"
            " this folder. 64 KiB wait in memory first: they are lost where it is killed.",
        ),
    ] = None,
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
) -> None:
    """Serve agents in any language over HTTP, until Ctrl-C or SIGTERM: events in, answers to calls out.

    GET /openapi.json describes it. It needs no broker to start: while the broker is away calls are allowed, and
    GET /healthz counts them.

    Examples:

        loopwarden sidecar

        loopwarden sidecar --unix /run/user/1000/loopwarden.sock

        LOOPWARDEN_SIDECAR_TOKEN=... loopwarden sidecar --host 0.0.0.0

    Exit code 0 where it was asked to stop; 2 where it cannot listen, or a setting is wrong.
    """
    from loopwarden.serving import Listening, MissingExtra
    from loopwarden.sidecar import SIDECAR

    listening = Listening.given(SIDECAR, host, port, unix, token_file)
    cluster = connection(broker, prefix, properties)
    try:
        from loopwarden.sidecar.serve import run_sidecar
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "starlette", "uvicorn"):
            raise
        raise MissingExtra(
            f"the sidecar needs {error.name}, which is not installed: pip install 'loopwarden[sidecar]'"
        ) from None
    run_sidecar(cluster, listening, payload=payload.value, spool_dir=spool_dir)
