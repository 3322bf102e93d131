"""What is known of a run while its log is read: changes with each event, until a `Timeline` is drawn of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeVar

from loopwarden.judge import RunState
from loopwarden.report.following_through import Followed
from loopwarden.report.model import Mark, Outcome, Payload, PolicyInForce, Spent
from loopwarden_schemas.structs import EventOfRun, ToolCallEvent, Usage, Verdict

_Number = TypeVar("_Number", int, float)

Key = tuple[str, str]
"""Of a signature: tool and `args_hash`."""


_NOTHING = Spent()


class Spending:
    """Sums of what events say that their steps took."""

    __slots__ = ("cost_usd", "input_tokens", "milliseconds", "output_tokens")

    def __init__(self) -> None:
        self.milliseconds: float | None = None
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None
        self.cost_usd: float | None = None

    def add(self, event: EventOfRun) -> None:
        """Add what an event carries."""
        self.milliseconds = _sum(self.milliseconds, event.duration_ms)
        if event.usage is not None:
            self._add_usage(event.usage)

    def take(self, other: Spending) -> None:
        """Add the sums of another."""
        self.milliseconds = _sum(self.milliseconds, other.milliseconds)
        self._add_usage(other)

    def _add_usage(self, usage: Usage | Spending) -> None:
        self.input_tokens = _sum(self.input_tokens, usage.input_tokens)
        self.output_tokens = _sum(self.output_tokens, usage.output_tokens)
        self.cost_usd = _sum(self.cost_usd, usage.cost_usd)

    def spent(self) -> Spent:
        """Return the sums."""
        if self.milliseconds is self.input_tokens is self.output_tokens is self.cost_usd is None:
            return _NOTHING
        return Spent(
            seconds=None if self.milliseconds is None else self.milliseconds / 1000,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cost_usd=self.cost_usd,
        )


def _sum(one: _Number | None, other: _Number | None) -> _Number | None:
    return one if other is None else other if one is None else one + other


class Call:
    """One call, as far as it is known. See `model.Cell`."""

    __slots__ = (
        "at",
        "call_id",
        "count",
        "decision",
        "detector",
        "ended_at",
        "event_id",
        "in_window",
        "judged",
        "key",
        "known_poll",
        "number",
        "outcome",
        "result_hash",
        "spending",
        "streak",
        "under_order",
        "verdicts",
        "window",
    )

    def __init__(self, number: int, event: ToolCallEvent, key: Key, known_poll: bool) -> None:
        self.number = number
        self.key = key
        self.known_poll = known_poll
        self.call_id = event.call_id
        self.event_id = event.event_id
        self.at = event.append_time
        self.ended_at: int | None = None
        self.outcome: Outcome = "pending"
        self.result_hash: str | None = None
        self.decision: Literal["allow", "warn", "block"] | None = None
        self.detector: str | None = None
        self.count: int | None = None
        self.under_order = False
        """Whether a block stood when the runner refused it."""
        self.judged = True
        self.streak = self.in_window = self.window = 0
        self.verdicts: list[int] = []
        self.spending = Spending()


@dataclass
class Issued:
    """A verdict in its place.

    Attributes:
        followed: The verdict, and what became of it so far.
        at: Append time (ms) of the event that caused it.
        call: Number of the call whose event that is.
        before_call: Number of the next call then.
        recomputed: Whether the judge came to it.
        recorded: Whether it was published.
    """

    followed: Followed
    at: int
    call: int | None
    before_call: int
    recomputed: bool
    recorded: bool = False


@dataclass
class Gathered:
    """All of it.

    Attributes:
        args: The payload of arguments by their signature; of `results` by signature and hash.
        call_of: The calls by the ids of their events, as verdicts name them.
        waiting: Recorded verdicts by the event that caused them, where it was not seen.
    """

    run_id: str
    shown_characters: int
    notes: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    policies: list[PolicyInForce] = field(default_factory=list)
    issued: list[Issued] = field(default_factory=list)
    args: dict[Key, Payload | None] = field(default_factory=dict)
    results: dict[tuple[str, str, str], Payload | None] = field(default_factory=dict)
    call_of: dict[str, Call] = field(default_factory=dict)
    spending: Spending = field(default_factory=Spending)
    redelivered: int = 0
    recorded_known: bool = False
    waiting: dict[str, list[Verdict]] = field(default_factory=dict)
    state: RunState | None = None
    agent_id: str | None = None
    session_id: str | None = None
    unjudged: int = 0
    began_at: int | None = None
    newest_at: int | None = None
