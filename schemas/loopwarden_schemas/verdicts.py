"""The verdicts of `loop-verdicts`, as a pydantic model. (design.md, "Verdicts".)"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

RULES_VERSION = 1
"""Goes up when the same log would be judged differently; it is part of every verdict's id."""


class Verdict(BaseModel):
    """A published order: what the runner should do about a call, a tool or the run."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    schema_: Literal[1] = Field(alias="schema")
    verdict_id: str = Field(description="Deterministic: judging the same log again gives the same id.")
    begun: int = Field(description="Append time (ms) of the run's first event.")
    n: int = Field(description="The run's verdict counter; consumers apply by (begun, n).")
    action: Literal["warn", "block", "abort", "clear"]
    phase: Literal["attempt", "order"] = Field(
        description="attempt: about the call in event_id; order: placed ahead of the next call."
    )
    detector: str | None
    run_id: str
    session_id: str | None
    agent_id: str | None
    call_id: str | None
    tool: str | None
    args_hash: str | None
    scope: Literal["call", "tool", "run"]
    count: int | None
    threshold: int | None
    reason: str = Field(description="Stable code: the detector's name, or pattern_ended.")
    message: str = Field(description="Plain words a model can act on; never quotes the arguments.")
    event_id: str = Field(description="The event that caused it.")
    evidence: list[str] | None = Field(description="Event ids of the newest 10 calls counted, oldest first.")
    policy_digest: str
    rules_version: int
    ts: int = Field(description="The causing event's ts (ms).")
    delivered: int = Field(default=0, description="Events of the run so far that named the verdict they followed.")
    obeyed: int = Field(default=0, description="Calls of the run so far that the runner refused.")
    disobeyed: int = Field(default=0, description="Blocked calls of the run so far that were made all the same.")
