"""Events, verdicts and decisions as they flow through the judge: msgspec structs.

`events` and `verdicts` hold the contract as pydantic models; these are the same fields in the form that decodes ten
times faster. What these refuse, the pydantic models have the last word on (`codec`), and a property holds both to the
same answers. Field meanings: see `events` and `verdicts`.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct

# 64 characters are at most 256 bytes, the limit of the contract; longer names take the pydantic path.
Name = Annotated[str, Meta(min_length=1, max_length=64)]
ToolName = Annotated[str, Meta(max_length=64)]
# Run and event ids are often made of paths; `codec` asks the pydantic models about those that are not ASCII.
LongName = Annotated[str, Meta(min_length=1, max_length=256)]
# ASCII only, so that characters are bytes; other hashes take the pydantic path.
Hash = Annotated[str, Meta(pattern=r"^[ -~]{1,64}\Z")]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Amount = Annotated[float, Meta(ge=0, le=1e15)]


class Usage(Struct, gc=False):
    """Tokens and cost of a step; shown and summed, never judged."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cost_usd: Amount | None = None


class LogEvent(Struct, kw_only=True, tag_field="type", gc=False):
    """What every event has. `append_time` (ms) is the broker's and set by the reader; in files it is `ts`."""

    schema: Literal[1] = 1
    event_id: LongName
    ts: Count
    session_id: Name | None = None
    agent_id: Name | None = None
    source: Name | None = None
    seq: Count | None = None
    duration_ms: Amount | None = None
    usage: Usage | None = None
    append_time: int = 0


class RunEvent(LogEvent, kw_only=True, gc=False):
    """An event of one run."""

    run_id: LongName


class RunStarted(RunEvent, kw_only=True, tag="run.started", gc=False):
    parent_run_id: Name | None = None
    cause: str | None = None
    policy: Any = UNSET


class CallEvent(RunEvent, kw_only=True, gc=False):
    """An event of one tool call. `args` UNSET: not given; None: given as null."""

    call_id: Name | None = None
    tool: ToolName
    args: Any = UNSET
    args_hash: Hash | None = None
    known_poll: bool | None = None
    verdict_id: Name | None = None


class ToolCallStarted(CallEvent, kw_only=True, tag="tool_call.started", gc=False):
    pass


class ToolCallFinished(CallEvent, kw_only=True, tag="tool_call.finished", gc=False):
    """`result` and `error` UNSET: not given; neither they nor `result_hash`: a void result."""

    result: Any = UNSET
    error: Any = UNSET
    result_hash: Hash | None = None
    unknown_tool: Name | None = None


class ToolCallBlocked(CallEvent, kw_only=True, tag="tool_call.blocked", gc=False):
    pass


class Compaction(RunEvent, kw_only=True, tag="compaction", gc=False):
    trigger: str | None = None
    succeeded: bool | None = None


class RunFinished(RunEvent, kw_only=True, tag="run.finished", gc=False):
    reason: str | None = None


class OperatorOverride(RunEvent, kw_only=True, tag="operator.override", gc=False):
    action: Literal["allow", "release", "abort"]
    tool: ToolName | None = None
    until: Count | None = None
    by: str | None = None
    why: str | None = None


class PolicyApplied(LogEvent, kw_only=True, tag="policy.applied", gc=False):
    number: Count
    digest: Hash
    policy: Any = UNSET


ToolCallEvent: TypeAlias = ToolCallStarted | ToolCallFinished | ToolCallBlocked

# isinstance() with the classes themselves is three times as fast as with their base.
TOOL_CALL_EVENTS: Final = (ToolCallStarted, ToolCallFinished, ToolCallBlocked)

EventOfRun: TypeAlias = RunStarted | ToolCallEvent | Compaction | RunFinished | OperatorOverride
"""What the judge folds."""

Event: TypeAlias = EventOfRun | PolicyApplied

Action: TypeAlias = Literal["warn", "block", "abort", "clear"]
Phase: TypeAlias = Literal["attempt", "order"]
Scope: TypeAlias = Literal["call", "tool", "run"]


class Verdict(Struct, gc=False):
    """A published order. See `verdicts.Verdict`."""

    schema: int
    verdict_id: str
    begun: int
    n: int
    action: Action
    phase: Phase
    detector: str | None
    run_id: str
    session_id: str | None
    agent_id: str | None
    call_id: str | None
    tool: str | None
    args_hash: str | None
    scope: Scope
    count: int | None
    threshold: int | None
    reason: str
    message: str
    event_id: str
    evidence: list[str] | None
    policy_digest: str
    rules_version: int
    ts: int
    delivered: int = 0
    obeyed: int = 0
    disobeyed: int = 0


class Decision(Struct, frozen=True, gc=False):
    """The judge's answer for one call or outcome that is not "allow", before the de-duplication of warnings."""

    event_id: str
    run_id: str
    action: Action
    detector: str
    count: int


Reason: TypeAlias = Literal[
    "undecodable",
    "too_large",
    "too_many_events",
    "unknown_type",
    "unsupported_schema",
    "invalid_event",
    "invalid_payload",
    "misrouted",
    "unknown_policy",
    "judge_failed",
]
"""Why an event goes to the dead letters. The last four are found by the reader of the topic, not by the codec."""


class Rejected(Struct, frozen=True, gc=False):
    """An event, or a whole record, that cannot be read."""

    index: int
    """Its place in the record's list; 0 where the record is one event or cannot be read at all."""
    reason: Reason
    detail: str
