"""What our HTTP services share: where they listen, for whom, and how they tell what they do not take.

Only what needs no extra is imported here; `door`, `problems` and `process` import FastAPI and uvicorn.
"""

from loopwarden.serving.errors import CannotListen, MissingExtra, ServingError, TokenMissing, WrongToken
from loopwarden.serving.settings import DEFAULT_HOST, Listening, Service

__all__ = [
    "DEFAULT_HOST",
    "CannotListen",
    "Listening",
    "MissingExtra",
    "Service",
    "ServingError",
    "TokenMissing",
    "WrongToken",
]
