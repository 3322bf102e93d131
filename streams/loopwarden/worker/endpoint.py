"""`/metrics`, `/healthz` and `/readyz` on `LOOPWARDEN_METRICS_PORT`, answered by threads, whatever the event loop does.

`/healthz` and `/readyz` answer 200 with `{"ok": true}`, or 503 with the reasons: `{"ok": false, "reasons": [...]}`.
Nothing else is served: no run, no event, no setting.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from loopwarden.worker.errors import SettingsError
from loopwarden.worker.health import not_alive, not_ready
from loopwarden.worker.standing import Standing

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Silent(WSGIRequestHandler):
    # A client that connects and says nothing holds a thread for so long.
    timeout = 30

    def log_message(self, format: str, *args: Any) -> None:
        pass  # A probe each few seconds is nothing to tell.


def serve(address: str, port: int, registry: CollectorRegistry, standing: Callable[[], Standing]) -> None:
    """Serve over HTTP, in threads that end with the process.

    Args:
        address: An address of this machine; `0.0.0.0` or `::` is all of them.
        port: Where to listen.
        registry: What `/metrics` shows.
        standing: Returns the worker's newest standing; called from any thread.

    Raises:
        SettingsError: the port cannot be listened on.
    """
    metrics = make_wsgi_app(registry)

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO")
        if path == "/metrics":
            shown: Iterable[bytes] = metrics(environ, start_response)
            return shown
        if path == "/healthz":
            status, body = _health(not_alive(standing(), time.monotonic()))
        elif path == "/readyz":
            status, body = _health(not_ready(standing(), time.monotonic()))
        else:
            status, body = HTTPStatus.NOT_FOUND, {"error": "there are /metrics, /healthz and /readyz"}
        start_response(f"{status.value} {status.phrase}", [("Content-Type", "application/json")])
        return [json.dumps(body).encode() + b"\n"]

    try:
        server = make_server(address, port, answer, _Server6 if ":" in address else _Server, _Silent)
    except OSError as error:
        raise SettingsError(f"LOOPWARDEN_METRICS_PORT: must be a free port of {address}, got {port}: {error}") from None
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()


def _health(reasons: list[str]) -> tuple[HTTPStatus, dict[str, Any]]:
    if reasons:
        return HTTPStatus.SERVICE_UNAVAILABLE, {"ok": False, "reasons": reasons}
    return HTTPStatus.OK, {"ok": True}
