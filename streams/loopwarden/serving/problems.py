"""Requests that are not taken: as JSON, with the field and the rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from loopwarden_schemas.events import EVENT_TYPES

_MAX_SHOWN: Final = 60

_PLACES: Final = ("body", "path", "query", "header")


class Problem(BaseModel):
    """Why a request was not taken."""

    error: str = Field(description="In words: what is wrong, and the rule.")
    field: str | None = Field(default=None, description="Which field, such as `args` or `usage.cost_usd`.")


def tell_problems(app: FastAPI) -> None:
    """Let an app answer with a `Problem` wherever a request is not taken."""
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)


def _answer(status: int, error: str, field: str | None = None) -> JSONResponse:
    return JSONResponse({"error": error, **({} if field is None else {"field": field})}, status)


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        why = first.get("ctx", {}).get("error", "")
        return _answer(400, f"the body must be JSON: {why} at character {first['loc'][-1]}")
    if first["type"].startswith("union_tag"):
        tags = first.get("ctx", {}).get("expected_tags", "")
        found = first["input"].get("type") if isinstance(first["input"], dict) else None
        known = f", one of {tags}" if tags else ""
        return _answer(422, f"type: must be the type of an event{known}, got {_shown(found)}", "type")
    field = _field(first["loc"])
    if not field:
        # Nothing was read: no body, or one that does not say that it is JSON.
        return _answer(422, "the body must be a JSON object, sent with `Content-Type: application/json`")
    return _answer(422, f"{field}: {_rule(first)}", field)


async def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    told = {
        "Not Found": f"nothing is at {request.url.path}: /openapi.json says what there is",
        "Method Not Allowed": f"{request.method} is not for {request.url.path}: /openapi.json says what is",
    }
    return _answer(error.status_code, told.get(error.detail, error.detail))


def _field(place: Sequence[Any]) -> str:
    parts = list(place[1:] if place and place[0] in _PLACES else place)
    # Of a union, pydantic names the member it looked at, by its tag: that is no field of the body.
    if parts and parts[0] in EVENT_TYPES:
        parts = parts[1:]
    return ".".join(str(part) for part in parts)


def _rule(error: dict[str, Any]) -> str:
    if error["type"] == "missing":
        return "must be given"
    if error["type"] == "extra_forbidden":
        return "is no field of this request"
    message = str(error["msg"]).removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    return f"{message}, got {_shown(error['input'])}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
