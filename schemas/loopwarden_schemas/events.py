"""The events of `agent-events`: what a gateway publishes, as pydantic models. (design.md, "Events".)

The JSON Schema beside this package is generated from these models. Unknown fields are ignored; a known field of a wrong
type makes the event invalid.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

MAX_NAME_BYTES = 256
MAX_HASH_BYTES = 64
MAX_RECORD_BYTES = 1024 * 1024
MAX_EVENTS_PER_RECORD = 100

_CONTROL = r"\x00-\x1f\x7f-\x9f"
CONTROL_CHARACTER = re.compile(f"[{_CONTROL}]")
"""C0, DEL and C1: no id holds any."""


def _at_most(limit: int) -> AfterValidator:
    def check(text: str) -> str:
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > limit:
            raise ValueError(f"must be at most {limit} bytes, got {size}")
        return text

    return AfterValidator(check)


def _also_in_lower_case(name: str) -> str:
    # Tools are kept in lower case, which is longer for some letters; the bound of a run's state counts on the limit.
    size = len(name.lower().encode("utf-8", "surrogatepass"))
    if size > MAX_NAME_BYTES:
        raise ValueError(f"must be at most {MAX_NAME_BYTES} bytes in lower case, got {size}")
    return name


def _without_control_characters(text: str) -> str:
    found = CONTROL_CHARACTER.search(text)
    if found is not None:
        raise ValueError(f"must not hold control characters, has U+{ord(found[0]):04X}")
    return text


Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_BYTES), _at_most(MAX_NAME_BYTES)]
# Ids are looked for in logs, terminals and command lines.
Id = Annotated[
    Name, Field(json_schema_extra={"pattern": f"^[^{_CONTROL}]*$"}), AfterValidator(_without_control_characters)
]
ToolName = Annotated[
    str, Field(max_length=MAX_NAME_BYTES), _at_most(MAX_NAME_BYTES), AfterValidator(_also_in_lower_case)
]
Hash = Annotated[str, Field(min_length=1, max_length=MAX_HASH_BYTES), _at_most(MAX_HASH_BYTES)]
Count = Annotated[int, Field(ge=0, le=2**53)]
Amount = Annotated[float, Field(ge=0, le=1e15)]


class _Contract(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class Usage(_Contract):
    """Tokens and cost; shown and summed, outside the fold."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cost_usd: Amount | None = None


class LogEvent(_Contract):
    """What every event has."""

    schema_: Literal[1] = Field(default=1, alias="schema", description="Major version of the event's shape.")
    event_id: Id = Field(description="Unique per event; a redelivery repeats it.")
    ts: Count = Field(description="Milliseconds since the epoch by the producer's clock; shown, never used by a rule.")
    session_id: Id | None = Field(default=None, description="The conversation, which may hold several runs.")
    agent_id: Id | None = Field(default=None, description="Chooses the agent's overlay of the policy.")
    source: Id | None = Field(default=None, description="A random id per producer process; reports gaps only.")
    seq: Count | None = Field(default=None, description="The producer's counter; reports gaps only.")
    duration_ms: Amount | None = Field(default=None, description="Shown and summed, outside the fold.")
    usage: Usage | None = None


class RunEvent(LogEvent):
    """An event of one run; the record's key is the run id."""

    run_id: Id = Field(description="One agent execution: the unit of ordering, state and partitioning.")


class RunStarted(RunEvent):
    """A run begins (optional: it begins with its first event anyway)."""

    type: Literal["run.started"]
    parent_run_id: Id | None = None
    cause: str | None = None
    policy: Any = Field(
        default=None, description="A loopDetection block laid over the fleet's; counts only on the run's first event."
    )


class CallEvent(RunEvent):
    """An event of one tool call."""

    call_id: Id | None = None
    tool: ToolName
    args: Any = Field(default=None, description="The arguments as they came; absent arguments are null.")
    args_hash: Hash | None = Field(default=None, description="Instead of `args`: XXH3-128 of their canonical JSON.")
    known_poll: bool | None = Field(default=None, description="With `args_hash`: the call is a known poll.")
    verdict_id: Id | None = Field(
        default=None, description="The verdict that the runner applied to this call: a block obeyed, a warning shown."
    )


class ToolCallStarted(CallEvent):
    """The call is about to be executed."""

    type: Literal["tool_call.started"]


class ToolCallFinished(CallEvent):
    """The outcome of a call: one of `result`, `error`, `result_hash`; none of them means that it returned nothing."""

    type: Literal["tool_call.finished"]
    result: Any = None
    error: Any = None
    result_hash: Hash | None = None
    unknown_tool: Name | None = Field(default=None, description="With `result_hash`: the tool the error calls unknown.")


class ToolCallBlocked(CallEvent):
    """The runner obeyed a block: the call was not executed."""

    type: Literal["tool_call.blocked"]


class Compaction(RunEvent):
    """The run's context was compacted; a successful one that is not manual arms the guard."""

    type: Literal["compaction"]
    trigger: str | None = Field(
        default=None,
        description="overflow, timeout, continuation, in_attempt or manual; absent or new ones count as automatic.",
    )
    succeeded: bool | None = Field(default=None, description="Absent: it did not succeed.")


class RunFinished(RunEvent):
    """No call of this run follows."""

    type: Literal["run.finished"]
    reason: str | None = None


class OperatorOverride(RunEvent):
    """A person decides: `allow` lifts blocks, `release` forgets the window and lifts an abort, `abort` ends the run."""

    type: Literal["operator.override"]
    action: Literal["allow", "release", "abort"]
    tool: ToolName | None = Field(default=None, description="With `allow`: this tool; absent: every tool.")
    until: Count | None = Field(
        default=None, description="With `allow`: the append time (ms) until which it holds; absent: until the run ends."
    )
    by: str | None = None
    why: str | None = None


class PolicyApplied(LogEvent):
    """The fleet's policy changes, for the runs that begin after this event in its partition. No run id, no key."""

    type: Literal["policy.applied"]
    number: Count = Field(description="The offset of the document in `loop-policies`.")
    digest: Hash
    policy: Any = Field(default=None, description="In files only: the document itself.")


Event: TypeAlias = Annotated[
    RunStarted
    | ToolCallStarted
    | ToolCallFinished
    | ToolCallBlocked
    | Compaction
    | RunFinished
    | OperatorOverride
    | PolicyApplied,
    Field(discriminator="type"),
]

EVENT: TypeAdapter[Event] = TypeAdapter(Event)
"""Validates one event given as the value that MessagePack or JSON decodes to."""

EVENT_TYPES = frozenset(
    (
        "run.started",
        "tool_call.started",
        "tool_call.finished",
        "tool_call.blocked",
        "compaction",
        "run.finished",
        "operator.override",
        "policy.applied",
    )
)
