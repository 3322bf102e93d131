"""`loopwarden serve`"""

from __future__ import annotations

from typing import Annotated

import typer

from loopwarden.cli.cluster_options import Broker, ClientProperties, Prefix, connection
from loopwarden.cli.listening_options import Host, Port, Unix


def serve(
    port: Port = 9098,
    host: Host = "127.0.0.1",
    unix: Unix = None,
    token_file: Annotated[
        str | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="Holds the token that each request must bring. Else LOOPWARDEN_WEB_TOKEN of the environment.",
        ),
    ] = None,
    look_back: Annotated[
        str,
        typer.Option(
            "--look-back", metavar="TIME", help="How far back it begins to read, as 90s, 15m, 24h or 7d; 0s: now."
        ),
    ] = "1h",
    broker: Broker = None,
    prefix: Prefix = None,
    properties: ClientProperties = None,
) -> None:
    """Show the fleet on a page that follows it, until Ctrl-C or SIGTERM: runs, verdicts, policies. Read-only.

    Which runs are worst, how many verdicts a minute; each run as `loopwarden report` draws it, growing as events
    arrive; the verdicts with filters; the policy in force and its history. GET /openapi.json describes it as JSON.

    It joins no group and writes nothing. With a token, a browser asks for it as the password (any user name); programs
    send `Authorization: Bearer TOKEN`.

    Examples:

        loopwarden serve

        loopwarden serve --look-back 24h --port 8080

        LOOPWARDEN_WEB_TOKEN=... loopwarden serve --host 0.0.0.0

    Exit code 0 where it was asked to stop; 2 where it cannot listen, or a setting is wrong.
    """
    from loopwarden.cli.times import duration_ms
    from loopwarden.serving import Listening, MissingExtra
    from loopwarden.web import WEB

    listening = Listening.given(WEB, host, port, unix, token_file)
    cluster = connection(broker, prefix, properties)
    milliseconds = duration_ms("--look-back", look_back)
    try:
        from loopwarden.web.serve import run_web
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "starlette", "uvicorn"):
            raise
        raise MissingExtra(
            f"the live page needs {error.name}, which is not installed: pip install 'loopwarden[web]'"
        ) from None
    run_web(cluster, listening, milliseconds)
