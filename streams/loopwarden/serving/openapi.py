"""What a service's OpenAPI document says of who may come in."""

from __future__ import annotations

from typing import Any

from loopwarden.serving.door import OPEN
from loopwarden.serving.settings import Listening


def say_who_may_come_in(document: dict[str, Any], listening: Listening, *, for_browsers: bool = False) -> None:
    """Add to a document what the door (with the same `for_browsers`) asks for."""
    schemes = {"token": "bearer", **({"password": "basic"} if for_browsers else {})}
    document["components"]["securitySchemes"] = {
        name: {"type": "http", "scheme": scheme} for name, scheme in schemes.items()
    }
    any_of_them: list[dict[str, list[str]]] = [{name: []} for name in schemes]
    # Without a token of its own a service asks for none, and takes one all the same.
    document["security"] = any_of_them if listening.token is not None else [{}, *any_of_them]
    for path in set(OPEN) & document["paths"].keys():
        for route in document["paths"][path].values():
            route["security"] = []
