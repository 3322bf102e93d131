"""A run as a picture needs it: the data that the report's pages show, and its stable JSON form.

`schema` is 1. Fields may be added under it; none goes away or changes its meaning. Times are milliseconds since the
epoch, by the broker's append time (in files: `ts`). Calls are numbered from 1, everything else is found by its place.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

Outcome: TypeAlias = Literal["result", "error", "void", "pending", "blocked"]
Status: TypeAlias = Literal["running", "finished", "aborted"]
Severity: TypeAlias = Literal["abort", "block", "warn", "quiet"]
MarkKind: TypeAlias = Literal["run", "again", "end", "compaction", "override", "unjudged", "rejected"]

CallNumber: TypeAlias = Annotated[int, Field(ge=1)]
Milliseconds: TypeAlias = int

_FROZEN = ConfigDict(frozen=True, extra="ignore", strict=True)


class Payload(BaseModel):
    """Arguments, a result or an error as text: text as it is, everything else as indented JSON."""

    model_config = _FROZEN

    text: str = Field(description="What does not print is spelled out, as in \\u202e.")
    left_out: int = Field(description="Characters cut off at its end.")


class Spent(BaseModel):
    """What events say that their steps took; null where none of them said so."""

    model_config = _FROZEN

    seconds: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


class Signature(BaseModel):
    """A tool with its arguments. Its number is its place in `signatures`: the order of their first calls."""

    model_config = _FROZEN

    letter: str = Field(description="A, B, ... Z, AA, ...: stands for it in a picture.")
    colour: int = Field(
        description="0: called once. Else 1, 2, ... in the order of their second calls; never changes as the run grows."
    )
    tool: str
    args_hash: str
    known_poll: bool = Field(description="Whether its calls only ask for news.")
    args: Payload | None = Field(description="Null: the events carry only their hash.")
    calls: int = Field(description="Refused ones included.")
    first_call: CallNumber
    last_call: CallNumber
    refused: int
    errors: int
    results: int = Field(description="How many different outcomes its calls had.")
    longest_streak: int = Field(description="The most identical outcomes in a row that the judge counted.")


class Result(BaseModel):
    """One outcome of a signature. Its calls are those whose `result` is its place in `results`."""

    model_config = _FROZEN

    signature: int
    number: int = Field(description="1, 2, ...: the how many-th different outcome of its signature.")
    kind: Literal["result", "error"]
    result_hash: str
    calls: int
    first_call: CallNumber
    payload: Payload | None = Field(description="Of the first call that had it; null: only its hash was carried.")


class Cell(BaseModel):
    """One call. Its number is its place in `cells`, counted from 1."""

    model_config = _FROZEN

    signature: int
    outcome: Outcome = Field(
        description="void: it returned nothing. pending: nothing was heard of it. blocked: refused by the runner."
    )
    result: int | None = Field(description="Place in `results`; null: no outcome.")
    repeats: bool = Field(description="Its outcome is that of the signature's call before it: no progress.")
    decision: Literal["allow", "warn", "block"] | None = Field(
        description="The judge's, before warnings are de-duplicated. Null: it was not asked, as for calls that were "
        "refused before they were announced, or made after the run's end."
    )
    detector: str | None
    count: int | None = Field(description="What the detector counted.")
    obeyed: bool | None = Field(description="Of a call under a block: refused, or made all the same. Null: no block.")
    streak: int = Field(description="Identical outcomes in a row of its signature, as the judge counted after it.")
    in_window: int = Field(description="Calls of its signature in the window then.")
    window: int = Field(description="Calls in the window then.")
    verdicts: tuple[int, ...] = Field(description="Places in `verdicts` of those that its events caused.")
    judged: bool = Field(description="False: the run was over.")
    call_id: str | None
    event_id: str = Field(description="Of its first event.")
    at: Milliseconds
    ended_at: Milliseconds | None
    spent: Spent


class IssuedVerdict(BaseModel):
    """A verdict, and what became of it."""

    model_config = _FROZEN

    verdict_id: str
    at: Milliseconds
    call: CallNumber | None = Field(description="Whose event caused it; null: another event, or one that is gone.")
    before_call: CallNumber = Field(description="The first call that came after it.")
    action: Literal["warn", "block", "abort", "clear"]
    phase: Literal["attempt", "order"]
    detector: str | None
    reason: str
    scope: Literal["call", "tool", "run"]
    tool: str | None
    signature: int | None
    count: int | None
    threshold: int | None
    message: str
    evidence: tuple[int, ...] = Field(description="Numbers of the newest 10 calls that it counts.")
    delivered: int = Field(description="Events that name it: the runner has it.")
    obeyed: int = Field(description="Calls that were refused for it.")
    disobeyed: int = Field(description="Calls that were made all the same.")
    fate: str = Field(description="The same in words.")
    recorded: bool | None = Field(description="Whether it was published; null: the recorded verdicts are not known.")
    recomputed: bool = Field(description="Whether the judge comes to it from these events, under this policy.")


class Mark(BaseModel):
    """What else happened in the run, between its calls."""

    model_config = _FROZEN

    kind: MarkKind
    before_call: CallNumber = Field(description="The first call that came after it.")
    at: Milliseconds
    text: str
    verdicts: tuple[int, ...] = Field(description="Places in `verdicts` of those that it caused.")


class Stretch(BaseModel):
    """Calls next to each other that follow one pattern (one call again and again, or some in turn), or none."""

    model_config = _FROZEN

    first_call: CallNumber
    last_call: CallNumber
    pattern: tuple[CallNumber, ...] = Field(description="The calls that it repeats: its first ones. Empty: no pattern.")
    times: float = Field(description="How often it repeats; 2.5: the last time only half.")
    same: bool = Field(description="Whether calls of one signature all have the same outcome, from beginning to end.")


class PolicyInForce(BaseModel):
    """A policy that the run was judged by."""

    model_config = _FROZEN

    from_call: CallNumber
    source: str
    policy_digest: str
    detectors_on: bool
    guard_on: bool
    table: dict[str, Any] = Field(description="Every setting, resolved, in OpenClaw's names.")


class Totals(BaseModel):
    """Sums over the run."""

    model_config = _FROZEN

    calls: int
    refused: int
    errors: int
    repeated: int = Field(description="Executed calls whose outcome repeats that of the signature's call before.")
    disobeyed: int = Field(description="Calls made although they were blocked.")
    warnings: int
    blocks: int = Field(description="Orders; the verdicts on single attempts are not counted.")
    aborts: int
    spent: Spent
    spent_on_repeats: Spent


class Timeline(BaseModel):
    """One run, call by call."""

    model_config = _FROZEN

    schema_version: Literal[1] = Field(alias="schema", default=1)
    run_id: str
    agent_id: str | None
    session_id: str | None
    status: Status
    severity: Severity = Field(description="The gravest verdict.")
    headline: str = Field(description="The run in a sentence or two.")
    began_at: Milliseconds | None
    newest_at: Milliseconds | None
    unjudged: int = Field(description="Events after the run's end: counted, not judged.")
    redelivered: int = Field(description="Events that came again, and changed nothing.")
    shown_characters: int = Field(description="Of each payload, at most.")
    notes: tuple[str, ...] = Field(description="What the reader has to know: what is missing, or was cut.")
    totals: Totals
    policies: tuple[PolicyInForce, ...]
    signatures: tuple[Signature, ...]
    results: tuple[Result, ...]
    cells: tuple[Cell, ...]
    verdicts: tuple[IssuedVerdict, ...]
    marks: tuple[Mark, ...]
    stretches: tuple[Stretch, ...]
