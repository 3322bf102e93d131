"""Gateway and runner over HTTP, for agents in any language: `loopwarden sidecar`.

Only what needs no extra is imported here; `serve` imports FastAPI and uvicorn.
"""

from loopwarden.sidecar.errors import CannotListen, CannotSpool, MissingExtra, SidecarError, TokenMissing, WrongToken
from loopwarden.sidecar.settings import DEFAULT_HOST, DEFAULT_PORT, TOKEN_VARIABLE, Listening

__all__ = [
    "DEFAULT_HOST",
    "DEFAULT_PORT",
    "TOKEN_VARIABLE",
    "CannotListen",
    "CannotSpool",
    "Listening",
    "MissingExtra",
    "SidecarError",
    "TokenMissing",
    "WrongToken",
]
