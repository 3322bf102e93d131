"""A sidecar as a process, from start to end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Final, Literal

import uvicorn

from loopwarden.client import Connection
from loopwarden.gateway import Gateway
from loopwarden.runner import RunGuard
from loopwarden.sidecar.app import sidecar_app
from loopwarden.sidecar.errors import CannotListen
from loopwarden.sidecar.runs import GuardedRuns
from loopwarden.sidecar.settings import Listening

_WAITING: Final = 256
"""Requests that may wait for certainty at a time; each has a thread. More of them wait for those."""

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
    """
    listener = _listener(listening)
    for number in (signal.SIGINT, signal.SIGTERM):
        # uvicorn raises what it was stopped with again once it has stopped; what waits is yet to be sent then.
        signal.signal(number, _heard)
    when_away: Literal["spool", "drop_oldest"] = "spool" if spool_dir else "drop_oldest"
    try:
        with (
            Gateway(connection, payload=payload, when_away=when_away, spool_dir=spool_dir) as gateway,
            RunGuard(gateway=gateway) as guard,
        ):
            app = sidecar_app(GuardedRuns(gateway, guard), listening)
            configuration = uvicorn.Config(
                app, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=_STOP_S
            )
            asyncio.run(_serve(uvicorn.Server(configuration), listener, listening))
    finally:
        listener.close()
        if listening.unix is not None:
            listening.unix.unlink(missing_ok=True)


def _heard(number: int, frame: FrameType | None) -> None:
    """Do nothing more about a signal."""


async def _serve(server: uvicorn.Server, listener: socket.socket, listening: Listening) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_WAITING, "certain"))
    print(f"listening on {_place(listener, listening)}", file=sys.stderr, flush=True)
    await server.serve([listener])


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
