"""What is asked of a sidecar, and what it answers: pydantic models, from which its OpenAPI document is made.

An event is the contract's, but for `event_id` and `ts`: where they are left out, the sidecar fills them in.
"""

from __future__ import annotations

import time
import uuid
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel, model_validator

from loopwarden_schemas.events import (
    Amount,
    Compaction,
    Name,
    RunFinished,
    RunStarted,
    ToolCallBlocked,
    ToolCallFinished,
    ToolCallStarted,
    ToolName,
    Usage,
)

FILLED_IN: Final = ("event_id", "ts")


class Event(
    RootModel[
        Annotated[
            RunStarted | ToolCallStarted | ToolCallFinished | ToolCallBlocked | Compaction | RunFinished,
            Field(discriminator="type"),
        ]
    ]
):
    """What an agent may say. What a person decides (`operator.override`), and which policy holds, is not its business.

    `event_id` and `ts` are filled in where they are left out.
    """

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, event: Any) -> Any:
        if not isinstance(event, dict):
            return event
        return {"event_id": uuid.uuid4().hex, "ts": int(time.time() * 1000), **event}


Seconds = Annotated[float, Field(ge=0, le=60)]


class _Body(BaseModel):
    # A misspelled field is told, not left out of what is judged.
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class Call(_Body):
    """A call that is about to be executed."""

    run_id: Name = Field(description="One agent execution.")
    tool: ToolName
    args: Any = Field(default=None, description="The arguments as they came; absent arguments are null.")
    call_id: Name | None = Field(default=None, description="Names this call; absent: the sidecar gives it one.")
    session_id: Name | None = None
    agent_id: Name | None = None
    certain: Seconds = Field(
        default=0,
        description=(
            "Wait at most so many seconds until everything sent before is judged, so that of calls made one after"
            " another none escapes."
        ),
    )


class Outcome(_Body):
    """What a call returned: one of `result` and `error`; neither of them means that it returned nothing."""

    run_id: Name
    tool: ToolName
    call_id: Name = Field(description="As `before` was given it, or gave it.")
    args: Any = Field(default=None, description="The arguments that were executed.")
    result: Any = None
    error: Any = None
    session_id: Name | None = None
    agent_id: Name | None = None
    duration_ms: Amount | None = None
    usage: Usage | None = None
    certain: Seconds = Field(
        default=0, description="Wait at most so many seconds until this call is judged, for its note to be there."
    )


class Answer(BaseModel):
    """Whether the call may be executed."""

    action: Literal["allow", "warn", "block", "abort"] = Field(
        description="allow, warn: execute it. block: do not; the run may go on. abort: do not, and end the run."
    )
    message: str | None = Field(description="What to tell the model; null: nothing.")
    verdict_id: str | None = Field(description="The verdict that this comes from; null: none.")
    call_id: str = Field(description="For the call's outcome.")
    certain: bool = Field(description="True: everything that was sent before had been judged.")
    joined: bool = Field(
        description=(
            "False: the verdicts that were there before are still being read, as for a second after a start, so that an"
            " allow may overlook a block or an abort; one that was told before stands. `certain` waits for it."
        )
    )


class Note(BaseModel):
    """What goes with the result of a call."""

    note: str | None = Field(description="To be appended to the tool's result, for the model to read; null: nothing.")
    verdict_id: str | None = Field(description="The warning's verdict; null: none.")


class Accepted(BaseModel):
    """An event on its way to the log."""

    event_id: str
    run_id: str


class RunNow(BaseModel):
    """How a run stands."""

    run_id: str
    aborted: bool = Field(description="True: the run must end.")
    message: str | None = Field(description="Why it must end, in words for the model; null: it goes on.")
    verdict_id: str | None = Field(description="The verdict that ended it.")
    joined: bool = Field(description="False: the verdicts that were there before are still being read.")
    unjudged: int | None = Field(description="Events that are not judged yet; null: not known.")


class Health(BaseModel):
    """How the sidecar is. It answers agents also while the broker is away."""

    status: Literal["ok", "broker_away"]
    gateway: dict[str, int] = Field(description="Events since it started: sent, acknowledged, dropped and so on.")
    guard: dict[str, int] = Field(description="Answers since it started, and runs that are guarded now.")
