"""Who may come in: before anything of a request is read."""

from __future__ import annotations

import hmac
import json
from typing import Final

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from loopwarden.sidecar.settings import Listening, is_loopback

MAX_BODY_BYTES: Final = 4 * 1024 * 1024
"""A payload that is too large for a record is hashed by the gateway; beyond this it is not even read."""

_TOO_LARGE: Final = f"the body must be at most {MAX_BODY_BYTES} bytes"

OPEN: Final = ("/healthz", "/openapi.json")
"""Without a token: probes have none, and both say nothing of any run."""


class Door:
    """Refuses requests without the token, from a web page, or with a body that is too large."""

    def __init__(self, app: ASGIApp, listening: Listening) -> None:
        self._app = app
        self._token = listening.token
        self._names_loopback = listening.unix is None and listening.token is None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        refusal = self._refusal(scope["path"], headers)
        if refusal is None:
            await self._app(scope, _limited(receive), send)
        else:
            await _answer(send, *refusal)

    def _refusal(self, path: str, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        if self._token is not None and path not in OPEN:
            given = headers.get(b"authorization", b"")
            if not hmac.compare_digest(given, f"Bearer {self._token}".encode()):
                return 401, "the header `Authorization: Bearer TOKEN` with this sidecar's token is needed"
        # Without a token, a web page open on this machine could post here under a name that it resolves to loopback.
        host = headers.get(b"host", b"").decode("latin-1")
        if self._names_loopback and not is_loopback(_name_of(host)):
            return 421, f"the header `Host` must name loopback, such as 127.0.0.1, got {host!r:.80}"
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > MAX_BODY_BYTES:
            return 413, _TOO_LARGE
        return None


def _name_of(host: str) -> str:
    return host[: host.find("]") + 1] if host.startswith("[") else host.rsplit(":", 1)[0]


class BodyTooLarge(HTTPException):
    """A body sent in chunks turned out too large. (Any other exception FastAPI takes for a body that is no JSON.)"""

    def __init__(self) -> None:
        super().__init__(413, _TOO_LARGE)


def _limited(receive: Receive) -> Receive:
    read = 0

    async def limited() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > MAX_BODY_BYTES:
            raise BodyTooLarge
        return message

    return limited


async def _answer(send: Send, status: int, error: str) -> None:
    body = json.dumps({"error": error}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
