"""The routes of a sidecar: a thin face over one gateway and one guard."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI
from starlette.middleware import Middleware

from loopwarden.serving import Listening
from loopwarden.serving.door import Door
from loopwarden.serving.openapi import say_who_may_come_in
from loopwarden.serving.problems import Problem, tell_problems
from loopwarden.sidecar.bodies import FILLED_IN, Accepted, Answer, Call, Event, Health, Note, Outcome, RunNow
from loopwarden.sidecar.runs import GuardedRuns

_PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    400: {"model": Problem, "description": "The body is no JSON."},
    401: {"model": Problem, "description": "This sidecar has a token, and the request did not bring it."},
    413: {"model": Problem, "description": "The body is too large."},
    421: {"model": Problem, "description": "Without a token: the header `Host` does not name loopback."},
    422: {"model": Problem, "description": "A field is missing, unknown or wrong."},
}

_NOT_HERE: Final[dict[int | str, dict[str, Any]]] = {
    404: {"model": Problem, "description": "This sidecar was told nothing of the run, or the run has finished."}
}

_DESCRIPTION: Final = (
    "Loopwarden for agents in any language: before each tool call ask `/v1/calls/before`, after it tell "
    "`/v1/calls/after` and add its note to the result. Events go to the log, verdicts come from it. While the broker "
    "is away, calls are allowed, and counted."
)


def sidecar_app(runs: GuardedRuns, listening: Listening) -> FastAPI:
    """Return the application that serves these runs."""
    app = FastAPI(
        title="Loopwarden sidecar",
        version="1",
        description=_DESCRIPTION,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        docs_url=None,
        redoc_url=None,
        middleware=[Middleware(Door, listening=listening)],
        responses=_PROBLEMS,
    )
    tell_problems(app)

    @app.post("/v1/events", status_code=202, operation_id="publish", summary="Publish an event")
    async def publish(event: Event) -> Accepted:
        return runs.publish(event.root)

    @app.post("/v1/calls/before", operation_id="before", summary="Ask before a call, and say that it starts")
    async def before(call: Call) -> Answer:
        """The sidecar publishes `tool_call.started`, or `tool_call.blocked` where the call must not be executed."""
        return await runs.before(call)

    @app.post("/v1/calls/after", operation_id="after", summary="Say what a call returned, and get the note for it")
    async def after(outcome: Outcome) -> Note:
        """The sidecar publishes `tool_call.finished`. Not for calls that were refused: of those all is said."""
        return await runs.after(outcome)

    @app.get("/v1/runs/{run_id}", operation_id="run", summary="How a run stands", responses=_NOT_HERE)
    async def run(run_id: str) -> RunNow:
        return runs.now(run_id)

    @app.get("/healthz", operation_id="health", summary="How the sidecar is")
    async def health() -> Health:
        return runs.health()

    made = app.openapi

    def openapi() -> dict[str, Any]:
        document = made()
        _say_what_is_filled_in(document["components"]["schemas"])
        say_who_may_come_in(document, listening)
        return document

    app.openapi = openapi  # type: ignore[method-assign] # FastAPI's documented way to change the document
    return app


def _say_what_is_filled_in(schemas: dict[str, Any]) -> None:
    for schema in schemas.values():
        if "required" in schema and set(FILLED_IN) <= set(schema["properties"]):
            schema["required"] = [name for name in schema["required"] if name not in FILLED_IN]
