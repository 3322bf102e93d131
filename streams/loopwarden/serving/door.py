"""Who may come in: before anything of a request is read."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from typing import Final

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from loopwarden.serving.settings import Listening, is_loopback

MAX_BODY_BYTES: Final = 4 * 1024 * 1024
"""A payload that is too large for a record is hashed by the gateway; beyond this it is not even read."""

_TOO_LARGE: Final = f"the body must be at most {MAX_BODY_BYTES} bytes"

CHALLENGE: Final = b'Basic realm="Loopwarden", charset="UTF-8"'
"""With it a browser asks its user for the token, keeps it, and sends it with everything it fetches from here."""

OPEN: Final = ("/healthz", "/openapi.json")
"""Without a token: probes have none, and both say nothing of any run."""


class Door:
    """Refuses requests without the token, from a web page, or with a body that is too large."""

    def __init__(self, app: ASGIApp, listening: Listening, *, for_browsers: bool = False) -> None:
        """`for_browsers`: the token may also come as the password of HTTP's basic authentication."""
        self._app = app
        self._service = listening.service.name
        self._token = listening.token
        self._for_browsers = for_browsers
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
            await _answer(send, *refusal, challenge=self._for_browsers and refusal[0] == 401)

    def _refusal(self, path: str, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        if self._token is not None and path not in OPEN:
            given = _token_in(headers.get(b"authorization", b""), self._for_browsers)
            if not hmac.compare_digest(given, self._token.encode()):
                return 401, f"the header `Authorization: Bearer TOKEN` with this {self._service}'s token is needed"
        # Without a token, a web page open on this machine could post here under a name that it resolves to loopback.
        host = headers.get(b"host", b"").decode("latin-1")
        if self._names_loopback and not is_loopback(_name_of(host)):
            return 421, f"the header `Host` must name loopback, such as 127.0.0.1, got {host!r:.80}"
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > MAX_BODY_BYTES:
            return 413, _TOO_LARGE
        return None


def _token_in(authorization: bytes, for_browsers: bool) -> bytes:
    scheme, _, given = authorization.partition(b" ")
    if scheme == b"Bearer":
        return given
    if scheme == b"Basic" and for_browsers:
        try:
            return base64.b64decode(given, validate=True).partition(b":")[2]
        except binascii.Error:
            pass
    return b""


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


async def _answer(send: Send, status: int, error: str, *, challenge: bool) -> None:
    body = json.dumps({"error": error}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if challenge:
        headers.append((b"www-authenticate", CHALLENGE))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
