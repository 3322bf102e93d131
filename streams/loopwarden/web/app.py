"""The routes: pages for people, JSON for programs, nothing that changes anything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final

import xxhash
from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from loopwarden.client import ClusterError
from loopwarden.report import Timeline
from loopwarden.report.as_json import to_json
from loopwarden.report.html import body
from loopwarden.report.words import duration
from loopwarden.serving import Listening
from loopwarden.serving.door import Door
from loopwarden.serving.openapi import say_who_may_come_in
from loopwarden.serving.problems import Problem, tell_problems
from loopwarden.web.asking import (
    RUNS_AT_ONCE,
    VERDICTS_AT_ONCE,
    ActionAsked,
    Order,
    RunsAsked,
    StatusAsked,
    VerdictsAsked,
)
from loopwarden.web.bodies import Feed, FleetNow, Health, Minute, PolicyNow, Runs, feed_body, policy_body
from loopwarden.web.fleet_page import Source, fleet_page
from loopwarden.web.layout import CONTENT_SECURITY_POLICY, script, stylesheet
from loopwarden.web.policies import PolicyReading
from loopwarden.web.policy_page import policy_page
from loopwarden.web.run_page import no_run_page, problem_page, run_page
from loopwarden.web.runs_page import runs_page
from loopwarden.web.summary import Summaries
from loopwarden.web.verdicts_page import verdicts_page
from loopwarden.web.watching import Watching

_PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    401: {"model": Problem, "description": "This page has a token, and the request did not bring it."},
    421: {"model": Problem, "description": "Without a token: the header `Host` does not name loopback."},
    422: {"model": Problem, "description": "A parameter is wrong."},
    503: {"model": Problem, "description": "The broker is away, or a topic is missing."},
}

_NO_RUN: Final[dict[int | str, dict[str, Any]]] = {
    404: {"model": Problem, "description": "The log holds nothing of the run."}
}

_DESCRIPTION: Final = (
    "What Loopwarden sees of a fleet of agents, read-only. Every answer carries an `ETag`: ask again with "
    "`If-None-Match`, and an answer that is still the same is 304 and empty."
)

_HEADERS: Final = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

Text = Annotated[str, Query(max_length=256)]
Start = Annotated[int, Query(ge=0, le=1_000_000)]


def web_app(watching: Watching, listening: Listening) -> FastAPI:
    """Return the application that shows what is watched."""
    app = FastAPI(
        title="Loopwarden live page",
        version="1",
        description=_DESCRIPTION,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        docs_url=None,
        redoc_url=None,
        middleware=[Middleware(Door, listening=listening, for_browsers=True)],
        responses=_PROBLEMS,
    )
    tell_problems(app)
    app.middleware("http")(_only_what_is_new)
    app.add_exception_handler(ClusterError, _cluster_problem)
    _add_pages(app, watching)
    _add_api(app, watching)
    made = app.openapi

    def openapi() -> dict[str, Any]:
        document = made()
        say_who_may_come_in(document, listening, for_browsers=True)
        return document

    app.openapi = openapi  # type: ignore[method-assign] # FastAPI's documented way to change the document
    return app


def _add_pages(app: FastAPI, watching: Watching) -> None:
    summaries, reading, fleet = Summaries(watching.fleet), PolicyReading(watching.connection), watching.fleet
    options: dict[str, Any] = {"response_class": HTMLResponse, "include_in_schema": False}

    # Not `async`: each runs in a thread, so that a page which takes long to draw delays no other.
    @app.get("/", **options)
    def show_fleet() -> str:
        return fleet_page(summaries.summary(), _source(watching))

    @app.get("/runs", **options)
    def show_runs(text: Text = "", status: StatusAsked = "", order: Order = "worst", start: Start = 0) -> str:
        asked = RunsAsked(text, status, order, start)
        return runs_page(asked, asked.of(fleet), _source(watching))

    @app.get("/runs/{run_id:path}", **options)
    def show_run(run_id: str) -> HTMLResponse:
        drawn = watching.open_runs.shown(run_id, body)
        if drawn is None:
            return HTMLResponse(no_run_page(run_id), 404)
        return HTMLResponse(run_page(run_id, drawn, watching.trouble))

    @app.get("/verdicts", **options)
    def show_verdicts(text: Text = "", action: ActionAsked = "", reason: Text = "", orders: str = "") -> str:
        asked = VerdictsAsked(text, action, reason, orders == "true")
        return verdicts_page(asked, asked.of(fleet), _source(watching))

    @app.get("/policy", **options)
    def show_policy() -> str:
        return policy_page(reading.policies())

    @app.get("/static/page.css", include_in_schema=False)
    def style() -> Response:
        return Response(stylesheet(), media_type="text/css")

    @app.get("/static/live.js", include_in_schema=False)
    def live() -> Response:
        return Response(script(), media_type="text/javascript")


def _add_api(app: FastAPI, watching: Watching) -> None:
    summaries, reading, fleet = Summaries(watching.fleet), PolicyReading(watching.connection), watching.fleet

    @app.get("/v1/fleet", operation_id="fleet", summary="The fleet as it is now")
    def get_fleet() -> FleetNow:
        now = summaries.summary()
        return FleetNow(
            live=now.live,
            active=now.active,
            watched=now.watched,
            forgotten=now.forgotten,
            unreadable=now.unreadable,
            refused=now.refused,
            disobeyed=now.disobeyed,
            look_back_seconds=watching.look_back_ms // 1000,
            caught_up=watching.caught_up,
            trouble=watching.trouble,
            minutes=[
                Minute(at=at, events=events, **{each: counts[each] for each in ("warn", "block", "abort", "clear")})
                for (at, counts), events in zip(now.verdicts, now.events, strict=True)
            ],
            worst=now.worst,
        )

    @app.get("/v1/runs", operation_id="runs", summary="Runs that are watched")
    def get_runs(
        text: Annotated[str, Query(max_length=256, description="In the id of the run or of its agent.")] = "",
        status: StatusAsked = "",
        order: Order = "worst",
        start: Start = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = RUNS_AT_ONCE,
    ) -> Runs:
        return RunsAsked(text, status, order, start, limit).of(fleet)

    @app.get(
        "/v1/runs/{run_id:path}",
        operation_id="run",
        summary="A run, call by call",
        responses=_NO_RUN,
        response_model=Timeline,
    )
    def get_run(run_id: str) -> Response:
        drawn = watching.open_runs.shown(run_id, to_json)
        if drawn is None:
            raise HTTPException(404, f"the log holds nothing of run {run_id!r}")
        return Response(drawn, media_type="application/json")

    @app.get("/v1/verdicts", operation_id="verdicts", summary="The newest verdicts, the newest first")
    def get_verdicts(
        text: Annotated[str, Query(max_length=256, description="In the id of run or agent, or the tool's name.")] = "",
        action: ActionAsked = "",
        reason: Annotated[str, Query(max_length=256, description="Such as a detector's name.")] = "",
        orders: Annotated[bool, Query(description="Only orders, not what is about single attempts.")] = False,
        limit: Annotated[int, Query(ge=1, le=5000)] = VERDICTS_AT_ONCE,
    ) -> Feed:
        return feed_body(VerdictsAsked(text, action, reason, orders, limit).of(fleet))

    @app.get("/v1/policy", operation_id="policy", summary="The policy in force, and its history")
    def get_policy() -> PolicyNow:
        return policy_body(reading.policies())

    @app.get("/healthz", operation_id="health", summary="How this server is")
    def get_health() -> Health:
        trouble = watching.trouble
        return Health(
            status="broker_away" if trouble else "ok" if watching.caught_up else "catching_up",
            trouble=trouble,
            runs=len(fleet),
            open_runs=len(watching.open_runs),
        )


def _source(watching: Watching) -> Source:
    topics = watching.connection.topics()
    return Source(
        topics=f"{topics.events.name} and {topics.verdicts.name} at {watching.connection.bootstrap_servers}",
        look_back=f"from {duration(watching.look_back_ms / 1000)} before this page was started",
        caught_up=watching.caught_up,
        trouble=watching.trouble,
    )


async def _only_what_is_new(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    """Mark each answer by what it holds, and leave out what the asker has."""
    answer: Any = await call_next(request)
    content = b"".join([part async for part in answer.body_iterator])
    headers = {**dict(answer.headers), **_HEADERS}
    headers["ETag"] = mark = f'"{xxhash.xxh3_128_hexdigest(content)}"'
    if answer.status_code == 200 and mark in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers={name: headers[name] for name in ("ETag", *_HEADERS)})
    return Response(content, answer.status_code, headers)


async def _cluster_problem(request: Request, error: Exception) -> Response:
    if request.url.path.startswith("/v1/"):
        return JSONResponse({"error": str(error)}, 503)
    return HTMLResponse(problem_page(str(error)), 503)
