"""A sidecar as a process, from start to end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path
from types import FrameType
from typing import Any, Final, Literal

import uvicorn

from loopwarden.client import Connection
from loopwarden.gateway import Gateway
from loopwarden.runner import RunGuard
from loopwarden.sidecar.app import sidecar_app
from loopwarden.sidecar.errors import CannotListen, CannotSpool
from loopwarden.sidecar.runs import GuardedRuns
from loopwarden.sidecar.settings import Listening

SPOOL_AFTER_BYTES: Final = 64 * 1024
"""With a spool, so much waits in memory before events go to files: what is lost where the process is killed."""

_STOP_S: Final = 3


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
    stop = _Stop()
    listener = _listener(listening)
    socket_file = None if listening.unix is None else _identity(listening.unix)
    try:
        with _gateway(connection, payload, spool_dir) as gateway, RunGuard(gateway=gateway) as guard:
            app = sidecar_app(GuardedRuns(gateway, guard), listening)
            configuration = uvicorn.Config(
                app, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=_STOP_S
            )
            asyncio.run(_serve(uvicorn.Server(configuration), stop, listener, listening))
    finally:
        listener.close()
        # In a rolling restart a successor may have put its own there.
        if listening.unix is not None and _identity(listening.unix) == socket_file:
            listening.unix.unlink(missing_ok=True)


class _Stop:
    """Hears SIGINT and SIGTERM from the beginning on, whenever uvicorn, which has handlers of its own, does not."""

    def __init__(self) -> None:
        self._was_heard = False
        self._server: uvicorn.Server | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            # uvicorn raises what it was stopped with again once it has stopped; what waits is yet to be sent then.
            signal.signal(number, self._hear)

    def ends(self, server: uvicorn.Server) -> None:
        """A signal ends this server; at once where it has come already."""
        self._server = server
        server.should_exit = self._was_heard

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._was_heard = True
        if self._server is not None:
            self._server.should_exit = True


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


async def _serve(server: uvicorn.Server, stop: _Stop, listener: socket.socket, listening: Listening) -> None:
    stop.ends(server)
    print(f"listening on {_place(listener, listening)}", file=sys.stderr, flush=True)
    await server.serve([listener])


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _place(listener: socket.socket, listening: Listening) -> str:
    if listening.unix is not None:
        return str(listening.unix)
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _listener(listening: Listening) -> socket.socket:
    if listening.unix is not None:
        return _unix_listener(listening.unix)
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            listening.host, listening.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        raise CannotListen(
            f"cannot listen on {listening.host}:{listening.port}: {error.strerror}; --port takes another one"
        ) from None
    listener.listen(2048)
    return listener


def _unix_listener(path: Path) -> socket.socket:
    if path.is_socket():
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(path))
            except OSError:
                # What another process left behind.
                path.unlink(missing_ok=True)
            else:
                raise CannotListen(f"--unix {path}: another process listens there")
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(0o077)
    try:
        listener.bind(str(path))
    except OSError as error:
        listener.close()
        raise CannotListen(f"--unix {path}: {error.strerror}") from None
    finally:
        os.umask(before)
    listener.listen(2048)
    return listener
