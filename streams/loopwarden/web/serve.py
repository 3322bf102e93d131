"""The live page as a process, from start to end."""

from __future__ import annotations

from loopwarden.client import Connection
from loopwarden.serving import Listening
from loopwarden.serving.process import listening_socket, serve
from loopwarden.web.app import web_app
from loopwarden.web.watching import Watching


def run_web(connection: Connection, listening: Listening, look_back_ms: int) -> None:
    """Serve until SIGTERM or Ctrl-C. The broker need not be there.

    Args:
        connection: The cluster.
        listening: Where, and for whom.
        look_back_ms: How far back in the topics the reading begins.

    Raises:
        CannotListen: the address or the socket is not to be had.
    """
    with listening_socket(listening) as listener, Watching(connection, look_back_ms) as watching:
        serve(web_app(watching, listening), listener, listening)
