"""A service as a process: it listens, serves until it is told to stop, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from loopwarden.serving.errors import CannotListen
from loopwarden.serving.settings import Listening

_STOP_S: Final = 3


class Listener:
    """A socket that listens. SIGTERM and Ctrl-C, from the beginning on, end `serve` alone."""

    def __init__(self, listening: Listening) -> None:
        self._stop = _Stop()
        self._listening = listening
        self._socket = _listener(listening)
        self._file = None if listening.unix is None else _identity(listening.unix)

    def serve(self, app: ASGIApp) -> None:
        """Serve an application until SIGTERM or Ctrl-C; not at all where that has come already."""
        configuration = uvicorn.Config(
            app, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=_STOP_S
        )
        asyncio.run(self._serve(uvicorn.Server(configuration)))

    def close(self) -> None:
        """Listen no more, and remove the file of a Unix socket."""
        self._socket.close()
        # In a rolling restart a successor may have put its own there.
        if self._listening.unix is not None and _identity(self._listening.unix) == self._file:
            self._listening.unix.unlink(missing_ok=True)

    async def _serve(self, server: uvicorn.Server) -> None:
        self._stop.ends(server)
        print(f"listening on {_place(self._socket, self._listening)}", file=sys.stderr, flush=True)
        await server.serve([self._socket])


@contextmanager
def listening_at(listening: Listening) -> Iterator[Listener]:
    """What listens there, closed at the end.

    Raises:
        CannotListen: the address or the socket is not to be had.
    """
    listener = Listener(listening)
    try:
        yield listener
    finally:
        listener.close()


class _Stop:
    """Hears SIGINT and SIGTERM from the beginning on, whenever uvicorn, which has handlers of its own, does not."""

    def __init__(self) -> None:
        self._was_heard = False
        self._server: uvicorn.Server | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            # uvicorn raises what it was stopped with again once it has stopped; there may be something left to do then.
            signal.signal(number, self._hear)

    def ends(self, server: uvicorn.Server) -> None:
        """A signal ends this server; at once where it has come already."""
        self._server = server
        server.should_exit = self._was_heard

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._was_heard = True
        if self._server is not None:
            self._server.should_exit = True


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
