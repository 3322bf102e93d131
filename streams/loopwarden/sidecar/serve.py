"""A sidecar as a process, from start to end."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from loopwarden.client import Connection
from loopwarden.gateway import Gateway
from loopwarden.runner import RunGuard
from loopwarden.serving import Listening
from loopwarden.serving.process import listening_socket, serve
from loopwarden.sidecar.app import sidecar_app
from loopwarden.sidecar.runs import GuardedRuns

_WAITING: Final = 256
"""Requests that may wait for certainty at a time; each has a thread. More of them wait for those."""


def run_sidecar(
    connection: Connection, listening: Listening, *, payload: Literal["full", "hash"], spool_dir: Path | None
) -> None:
    """Serve until SIGTERM or Ctrl-C; then send what waits. The broker need not be there.

    Args:
        connection: The cluster.
        listening: Where, and for whom.
        payload: `hash`: arguments and results do not leave this process.
        spool_dir: While the broker is away, events go to files here, rather than the oldest being dropped.

    Raises:
        CannotListen: the address or the socket is not to be had.
    """
    when_away: Literal["spool", "drop_oldest"] = "spool" if spool_dir else "drop_oldest"
    with (
        listening_socket(listening) as listener,
        Gateway(connection, payload=payload, when_away=when_away, spool_dir=spool_dir) as gateway,
        RunGuard(gateway=gateway) as guard,
    ):
        serve(sidecar_app(GuardedRuns(gateway, guard), listening), listener, listening, threads=_WAITING)
