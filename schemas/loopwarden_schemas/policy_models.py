"""What a policy file may hold, strictly, as pydantic models: the JSON Schema of policies is generated from them.

Inside the blocks `loopDetection` and `loopwarden` an unknown key is an error; everywhere else an OpenClaw configuration
may hold what it likes. (design.md, Policy.) The models check and describe; what a document means is read by `policy`.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from loopwarden_schemas.policy import MAX_THRESHOLD, MAX_WINDOW

_ABSENT: Any = None


def _drop_null_default(schema: dict[str, Any]) -> None:
    # Absent is allowed, null is not: a default of null in the schema would say otherwise.
    schema.pop("default", None)


def _integral(value: object) -> object:
    # JSON has one kind of number: 5.0 is 5, as JavaScript reads it.
    return int(value) if isinstance(value, float) and value.is_integer() else value


PositiveInteger = Annotated[int, Field(gt=0, le=MAX_THRESHOLD), BeforeValidator(_integral)]

_ELSEWHERE = ConfigDict(
    strict=True, extra="allow", alias_generator=to_camel, field_title_generator=lambda name, _: to_camel(name)
)
_BLOCK: ConfigDict = {**_ELSEWHERE, "extra": "forbid"}


class Detectors(BaseModel):
    """Which of the switchable detectors run."""

    model_config = _BLOCK
    generic_repeat: bool = Field(default=True, description="The same call again and again.")
    known_poll_no_progress: bool = Field(default=True, description="A polling call whose outcome stays the same.")
    ping_pong: bool = Field(default=True, description="Two calls in alternation.")


class PostCompactionGuard(BaseModel):
    """The guard that watches the first calls after a compaction."""

    model_config = _BLOCK
    window_size: PositiveInteger = Field(
        default=3,
        description="Attempts watched after a compaction; when all of them are equal the run is aborted. "
        f"A value above {MAX_WINDOW} counts as {MAX_WINDOW}.",
    )


class LoopDetection(BaseModel):
    """OpenClaw's `loopDetection` block. Every key may be left out: the layer beneath, or the default, then holds."""

    model_config = _BLOCK
    enabled: bool = Field(
        default=_ABSENT,
        description="The detectors run only when this is true; the post-compaction guard runs unless it is false.",
        json_schema_extra=_drop_null_default,
    )
    history_size: PositiveInteger = Field(
        default=30, description=f"Calls kept per run. A value above {MAX_WINDOW} counts as {MAX_WINDOW}."
    )
    warning_threshold: PositiveInteger = Field(default=10, description="Repetitions before a call is warned about.")
    critical_threshold: PositiveInteger = Field(
        default=20, description="Repetitions before a call is blocked; raised to warningThreshold + 1 if not above it."
    )
    unknown_tool_threshold: PositiveInteger = Field(
        default=10, description="Failures in a row of a tool that does not exist before it is blocked."
    )
    global_circuit_breaker_threshold: PositiveInteger = Field(
        default=30,
        description="Repetitions before a call is blocked whatever the detectors' switches; "
        "raised to criticalThreshold + 1 if not above it.",
    )
    detectors: Detectors = Field(default_factory=Detectors)
    post_compaction_guard: PostCompactionGuard = Field(default_factory=PostCompactionGuard)


class Loopwarden(BaseModel):
    """Loopwarden's own settings, beside OpenClaw's block so that its file stays valid."""

    model_config = _BLOCK
    abort_after_blocks: PositiveInteger = Field(
        default=_ABSENT,
        description="So many attempts of blocked calls, refused or made all the same, since the run's last allowed "
        "call, and the run is aborted. Without it no run is: its calls stay blocked.",
        json_schema_extra=_drop_null_default,
    )


class Tools(BaseModel):
    """The `tools` of a configuration or of one agent, as far as they concern us."""

    model_config = _ELSEWHERE
    loop_detection: LoopDetection = Field(default_factory=LoopDetection)
    loopwarden: Loopwarden = Field(default_factory=Loopwarden)


class Agent(BaseModel):
    """One entry of `agents.list`; its blocks hold for the runs of the agent with this id."""

    model_config = _ELSEWHERE
    id: str = Field(default=_ABSENT, json_schema_extra=_drop_null_default)
    tools: Tools = Field(default_factory=Tools)


class Agents(BaseModel):
    """The `agents` of a configuration, as far as they concern us."""

    model_config = _ELSEWHERE
    entries: list[Agent] = Field(default_factory=list, alias="list")


class PolicyFile(BaseModel):
    """A policy file: a whole OpenClaw configuration, or only its `loopDetection` blocks."""

    model_config = _ELSEWHERE
    tools: Tools = Field(default_factory=Tools)
    agents: Agents = Field(default_factory=Agents)
