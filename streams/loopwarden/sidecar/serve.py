"""The sidecar as a process, from start to end."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

from loopwarden.client import Connection
from loopwarden.gateway import Gateway
from loopwarden.runner import RunGuard
from loopwarden.serving import Listening
from loopwarden.serving.process import listening_at
from loopwarden.sidecar.app import sidecar_app
from loopwarden.sidecar.errors import CannotSpool
from loopwarden.sidecar.runs import GuardedRuns

SPOOL_AFTER_BYTES: Final = 64 * 1024
"""With a spool, so much waits in memory before events go to files: what is lost where the process is killed."""


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
        CannotSpool: nothing can be written in `spool_dir`.
    """
    with (
        listening_at(listening) as listener,
        _gateway(connection, payload, spool_dir) as gateway,
        RunGuard(gateway=gateway) as guard,
    ):
        listener.serve(sidecar_app(GuardedRuns(gateway, guard), listening))


def _gateway(connection: Connection, payload: Literal["full", "hash"], spool_dir: Path | None) -> Gateway:
    if spool_dir is None:
        return Gateway(connection, payload=payload)
    spool: dict[str, Any] = {"when_away": "spool", "spool_dir": spool_dir, "max_buffer_bytes": SPOOL_AFTER_BYTES}
    try:
        return Gateway(connection, payload=payload, **spool)
    except (OSError, ValueError) as error:
        found = error if isinstance(error, OSError) else error.__cause__
        why = getattr(found, "strerror", None) or error
        raise CannotSpool(f"--spool-dir {spool_dir}: must be a folder that can be written: {why}") from None
