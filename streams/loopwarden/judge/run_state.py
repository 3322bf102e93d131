"""The state of one run, and its record in the changelog."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET

from loopwarden.judge.allowances import Allowances
from loopwarden.judge.enforcement import Enforcement
from loopwarden.judge.guard import Guard
from loopwarden.judge.orders import Orders
from loopwarden.judge.redelivery import Seen
from loopwarden.judge.warnings import Warnings
from loopwarden.judge.window import Window
from loopwarden_schemas.policy import Policy, PolicyDocument
from loopwarden_schemas.structs import (
    EventOfRun,
    RunStarted,
)

IDLE_MS: Final = 24 * 3600 * 1000
"""An event more than this after its run's newest one finds a fresh run. (design.md, "Events".)"""

ENDED_MS: Final = 3600 * 1000
"""After its end a run's events are counted, not judged, for this long."""

MAX_REMEMBERED: Final = 64
"""How many call ids are remembered that the window does not hold any more, or never held."""


def expiry(newest_at: int, ended_at: int | None) -> int:
    """The append time (ms) after which an event finds a fresh run; of times `newest_at` and `ended_at` of its state."""
    return newest_at + IDLE_MS if ended_at is None else ended_at + ENDED_MS


class Remembered:
    """A call outside the window whose outcome may still come: decided `block`, or pushed out while pending."""

    __slots__ = ("args_hash", "event_id", "known_poll")

    def __init__(self, event_id: str, args_hash: str, known_poll: bool) -> None:
        self.event_id = event_id
        self.args_hash = args_hash
        self.known_poll = known_poll


class RunState:
    """What the judge knows of one run. The judge owns it; the worker sets `offset` and `index` only."""

    __slots__ = (
        "aborted",
        "agent_id",
        "allowances",
        "begun",
        "ended_at",
        "enforcement",
        "guard",
        "index",
        "n",
        "newest_at",
        "offset",
        "orders",
        "policy",
        "remembered",
        "run_id",
        "seen",
        "session_id",
        "unjudged",
        "warnings",
        "window",
    )

    def __init__(self, run_id: str, begun: int, policy: Policy) -> None:
        self.run_id = run_id
        self.begun = begun
        """Append time (ms) of the run's first event."""
        self.n = 0
        """Verdicts published so far."""
        self.newest_at = begun
        self.ended_at: int | None = None
        self.session_id: str | None = None
        self.agent_id: str | None = None
        self.policy = policy
        """Pinned at the run's first event."""
        self.window = Window(policy.history_size)
        self.remembered: dict[int, Remembered] = {}
        self.seen = Seen()
        self.warnings = Warnings()
        self.orders = Orders()
        self.guard = Guard()
        self.allowances = Allowances()
        self.enforcement = Enforcement()
        self.aborted = False
        """Whether the end, where there was one, was an abort."""
        self.unjudged = 0
        """Events after the run's end."""
        self.offset = -1
        self.index = 0

    @property
    def expires_at(self) -> int:
        """The append time (ms) after which an event finds a fresh run."""
        return expiry(self.newest_at, self.ended_at)

    def end(self, at: int, *, aborted: bool = False) -> None:
        """The run is over: its window, orders and warnings are gone, what follows for an hour is only counted."""
        self.forget()
        self.allowances = Allowances()
        self.ended_at, self.aborted = at, aborted

    def forget(self) -> None:
        """Begin with an empty window, without orders."""
        self.window = Window(self.policy.history_size)
        self.orders, self.warnings, self.guard = Orders(), Warnings(), Guard()
        self.remembered = {}
        self.enforcement.allowed()

    def remember(self, call_id: int | None, call: Remembered) -> None:
        """Keep what a later outcome of a call outside the window needs; the oldest of 64 is forgotten for it."""
        if call_id is None:
            return
        self.remembered.pop(call_id, None)
        self.remembered[call_id] = call
        if len(self.remembered) > MAX_REMEMBERED:
            del self.remembered[next(iter(self.remembered))]


def begin(event: EventOfRun, policy: PolicyDocument) -> RunState:
    """Return the state of a run that begins with this event: the fleet's policy, the agent's overlay, the override."""
    override = event.policy if type(event) is RunStarted and event.policy is not UNSET else None
    return RunState(event.run_id, event.append_time, policy.resolve(event.agent_id, override))


def begin_again(state: RunState, event: EventOfRun, policy: PolicyDocument) -> RunState:
    """Return the state of a run that a `run.started` begins anew: verdict counter and redelivery memory go on."""
    fresh = begin(event, policy)
    fresh.n, fresh.seen, fresh.offset, fresh.index = state.n, state.seen, state.offset, state.index
    return fresh
