"""A service as a process: it listens, serves until it is told to stop, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from loopwarden.serving.errors import CannotListen
from loopwarden.serving.settings import Listening

_STOP_S: Final = 3


@contextmanager
def listening_socket(listening: Listening) -> Iterator[socket.socket]:
    """The socket, closed and removed at the end. From here on SIGTERM and Ctrl-C end `serve` alone.

    Raises:
        CannotListen: the address or the socket is not to be had.
    """
    listener = _listener(listening)
    for number in (signal.SIGINT, signal.SIGTERM):
        # uvicorn raises what it was stopped with again once it has stopped; there may be something left to do then.
        signal.signal(number, _heard)
    try:
        yield listener
    finally:
        listener.close()
        if listening.unix is not None:
            listening.unix.unlink(missing_ok=True)


def serve(app: ASGIApp, listener: socket.socket, listening: Listening, *, threads: int | None = None) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Args:
        app: The application.
        listener: Of `listening_socket`.
        listening: Where that is.
        threads: For what the application does in the loop's executor, where it uses that; more of it waits.
    """
    configuration = uvicorn.Config(
        app, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=_STOP_S
    )
    asyncio.run(_serve(uvicorn.Server(configuration), listener, listening, threads))


def _heard(number: int, frame: FrameType | None) -> None:
    """Do nothing more about a signal."""


async def _serve(server: uvicorn.Server, listener: socket.socket, listening: Listening, threads: int | None) -> None:
    if threads is not None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(threads, listening.service.name))
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
