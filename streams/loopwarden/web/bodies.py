"""What the page's JSON API answers: pydantic models, from which its OpenAPI document is made.

A run is answered as `loopwarden report --format json` writes it. Times are milliseconds since the epoch.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from pydantic import BaseModel, Field

from loopwarden.web.fleet import Published
from loopwarden.web.policies import Policies
from loopwarden.web.watched_run import NewestCall, WatchedRun
from loopwarden_schemas.verdicts import Verdict


class Minute(BaseModel):
    """What happened in one minute."""

    at: int = Field(description="When it began.")
    events: int
    warn: int
    block: int = Field(description="Orders, and verdicts on single attempts.")
    abort: int
    clear: int


class Call(BaseModel):
    """One of a run's newest calls."""

    tool: str
    signature: int = Field(description="The same for calls of the same tool with the same arguments, in this answer.")
    outcome: Literal["pending", "new", "same", "error", "error same", "void", "blocked"] = Field(
        description="same: as the call of its signature before. void: it returned nothing. blocked: refused."
    )


class Run(BaseModel):
    """A run as it is watched: since the page began to read, counted from what was read."""

    run_id: str
    agent_id: str | None
    status: Literal["live", "finished", "aborted", "idle"]
    severity: Literal["abort", "block", "warn", "quiet"] = Field(description="The gravest verdict.")
    newest_at: int = Field(description="Of the newest event or verdict.")
    calls: int
    repeats: int = Field(description="Calls whose outcome was that of the call of their signature before.")
    errors: int
    refused: int = Field(description="Calls that the runner refused.")
    disobeyed: int = Field(description="Calls made although they were blocked, by the newest verdict.")
    warnings: int
    blocks: int = Field(description="Orders; the verdicts on single attempts are not counted.")
    aborts: int
    newest_verdict: str | None = Field(description="Its reason.")
    newest_verdict_at: int | None
    newest: list[Call] = Field(description="The newest 16 calls at most, oldest first.")


class FleetNow(BaseModel):
    """The fleet at a moment."""

    live: int = Field(description="Runs that have neither ended nor been idle for a day.")
    active: int = Field(description="Of them, heard of in the last 5 minutes.")
    watched: int = Field(description="Runs that are kept, ended ones included.")
    forgotten: int = Field(description="Runs that there was no more room for.")
    unreadable: int = Field(description="Events and verdicts that could not be read.")
    refused: int
    disobeyed: int
    look_back_seconds: int = Field(description="How far before its start the page began to read.")
    caught_up: bool = Field(description="False: what was there at the start is still being read.")
    trouble: str | None = Field(description="Why nothing is read just now; null: all is well.")
    minutes: list[Minute] = Field(description="The newest 60, oldest first; the last one goes on.")
    worst: list[Run]


class Runs(BaseModel):
    """Some of the runs that are watched."""

    found: int = Field(description="How many there are.")
    runs: list[Run]


class FeedEntry(BaseModel):
    """A verdict as it was published."""

    at: int = Field(description="Append time of its record.")
    verdict: Verdict


class Feed(BaseModel):
    """The newest verdicts."""

    verdicts: list[FeedEntry] = Field(description="The newest first.")


class PolicyRecord(BaseModel):
    """A policy of the archive."""

    number: int
    digest: str
    by: str
    why: str
    at: int
    policy: Any = Field(description="The document as it was applied.")
    effective: dict[str, Any] = Field(description="Every setting for agents without a block of their own.")


class PolicyPlace(BaseModel):
    """What is in force in one partition."""

    partition: int
    number: int | None = Field(description="Null: the log holds none; the defaults.")
    offset: int | None
    at: int | None
    certain: bool = Field(description="False: the log's oldest records are gone, a newer one may be in force.")


class PolicyNow(BaseModel):
    """The policy in force and its history."""

    number: int | None = Field(description="Of the one in force; null: none, or not the same in every partition.")
    partitions: list[PolicyPlace]
    archive: list[PolicyRecord] = Field(description="Oldest first.")


class Health(BaseModel):
    """How the page's server is."""

    status: Literal["ok", "catching_up", "broker_away"]
    trouble: str | None
    runs: int
    open_runs: int = Field(description="Runs whose timelines are kept, since someone looks at them.")


def run_body(run: WatchedRun, now: int) -> Run:
    """Return a run as it stands."""
    return Run(
        run_id=run.run_id,
        agent_id=run.agent_id,
        status=run.status(now),
        severity=run.severity,
        newest_at=run.newest_at,
        calls=run.calls,
        repeats=run.repeats,
        errors=run.errors,
        refused=run.refused,
        disobeyed=run.disobeyed,
        warnings=run.warnings,
        blocks=run.blocks,
        aborts=run.aborts,
        newest_verdict=run.newest_verdict,
        newest_verdict_at=run.newest_verdict_at,
        newest=_calls(list(run.newest)),
    )


def _calls(calls: list[NewestCall]) -> list[Call]:
    numbers: dict[int, int] = {}
    return [
        Call(tool=call.tool, signature=numbers.setdefault(call.signature, len(numbers)), outcome=call.look)
        for call in calls
    ]


def feed_body(verdicts: list[Published]) -> Feed:
    """Return verdicts as they were published."""
    return Feed(
        verdicts=[
            FeedEntry(at=at, verdict=Verdict.model_validate(msgspec.to_builtins(verdict))) for at, verdict in verdicts
        ]
    )


def policy_body(policies: Policies) -> PolicyNow:
    """Return the policies."""
    return PolicyNow(
        number=policies.number,
        partitions=[
            PolicyPlace(
                partition=each.partition,
                number=each.number,
                offset=each.offset,
                at=each.append_time,
                certain=each.certain,
            )
            for each in policies.in_force
        ],
        archive=[
            PolicyRecord(
                number=each.number,
                digest=each.document.digest,
                by=each.by,
                why=each.why,
                at=each.ts,
                policy=each.document.value,
                effective=each.document.resolve(None).to_table(),
            )
            for each in policies.archive
        ],
    )
