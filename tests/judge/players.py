"""Three ways to fold a log: the judge, the judge whose states are frozen and thawed all the time, the plain recount.

Each answers one event alike, so that a test can hold any of them to the same expectation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import asdict

from loopwarden.judge import RunState, freeze, judge, thaw
from loopwarden_schemas.codec import event_from_value
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.structs import Decision, EventOfRun, PolicyApplied, Rejected

from .recount import Run, recount

OrderSet: TypeAlias = frozenset[tuple[str, str, str]]
"""(scope, tool, args_hash or "")"""


class Answer(NamedTuple):
    """What became of one event of a run."""

    decisions: list[Decision]
    verdicts: list[dict[str, Any]]
    """Without `message`, whose words are free."""
    orders: OrderSet
    """What the run's state has in force afterwards."""
    begun: int
    ended: bool


Player: TypeAlias = Callable[[EventOfRun, PolicyDocument], Answer]


class JudgePlayer:
    """The judge."""

    def __init__(self) -> None:
        self.states: dict[str, RunState] = {}

    def __call__(self, event: EventOfRun, policy: PolicyDocument) -> Answer:
        judged = judge(self.states.get(event.run_id), event, policy)
        state = self.states[event.run_id] = judged.state
        verdicts = [asdict(verdict) for verdict in judged.verdicts]
        for verdict in verdicts:
            del verdict["message"]
        return Answer(judged.decisions, verdicts, orders_of(state), state.begun, state.ended_at is not None)


class FrozenPlayer(JudgePlayer):
    """The judge of a worker that keeps nothing decoded: between all events the state is only its record."""

    def __call__(self, event: EventOfRun, policy: PolicyDocument) -> Answer:
        answer = super().__call__(event, policy)
        record = freeze(self.states[event.run_id])
        thawed = self.states[event.run_id] = thaw(record)
        assert freeze(thawed) == record
        assert orders_of(thawed) == answer.orders
        return answer


class RecountPlayer:
    """The plain recount."""

    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}

    def __call__(self, event: EventOfRun, policy: PolicyDocument) -> Answer:
        run, decisions, verdicts = recount(self.runs.get(event.run_id), event, policy)
        self.runs[event.run_id] = run
        return Answer(decisions, verdicts, frozenset(run.standing), run.begun, run.ended_at is not None)


def orders_of(state: RunState) -> OrderSet:
    """Return the orders that a state has in force."""
    tool = [("tool", state.orders.tool, "")] if state.orders.tool is not None else []
    return frozenset([*tool, *(("call", *key) for key in state.orders.calls)])


@dataclass
class Runner:
    """The orders of one run as a runner knows them: from verdicts, and from the run's end and new beginning."""

    orders: set[tuple[str, str, str]] = field(default_factory=set)
    begun: int | None = None
    aborted: bool = False

    def see(self, answer: Answer) -> None:
        if answer.ended or answer.begun != self.begun:
            self.orders.clear()
        if answer.begun != self.begun:
            self.begun, self.aborted = answer.begun, False
        for verdict in answer.verdicts:
            if verdict["scope"] == "run":
                self.aborted = verdict["action"] == "abort"
                continue
            order = (verdict["scope"], verdict["tool"], verdict["args_hash"] or "")
            if verdict["phase"] == "order" and verdict["action"] == "block":
                assert order not in self.orders, "an order was placed that stood already"
                self.orders.add(order)
            elif verdict["phase"] == "order":
                assert order in self.orders, "an order was lifted that did not stand"
                self.orders.remove(order)

    def refuses(self, tool: str, args_hash: str) -> bool:
        return ("tool", tool, "") in self.orders or ("call", tool, args_hash) in self.orders


@dataclass
class Played:
    """What became of a whole log, in the shape of the vectors' expectations."""

    decisions: list[dict[str, Any]] = field(default_factory=list)
    orders: list[tuple[int, str, OrderSet]] = field(default_factory=list)
    warned: list[int] = field(default_factory=list)
    verdicts: list[dict[str, Any]] = field(default_factory=list)


def play(player: Player, wire_events: Iterable[Mapping[str, Any]], policy: Mapping[str, Any]) -> Played:
    """Fold a log; on the way the orders that a runner knows are held to those of the state."""
    played = Played()
    document = PolicyDocument.from_value(policy)
    runners: dict[str, Runner] = {}
    for at, wire_event in enumerate(wire_events):
        event = event_from_value(wire_event)
        assert not isinstance(event, Rejected), event.detail
        if isinstance(event, PolicyApplied):
            document = PolicyDocument.from_value(event.policy)
            continue
        answer = player(event, document)
        runner = runners.setdefault(event.run_id, Runner())
        before = frozenset(runner.orders)
        runner.see(answer)
        assert runner.orders == answer.orders
        assert answer.ended or not runner.aborted
        if answer.orders != before:
            played.orders.append((at, event.run_id, answer.orders))
        for made in answer.decisions:
            decision = {"at": at, "action": made.action, "detector": made.detector, "count": made.count}
            played.decisions.append(decision)
        if any(verdict["action"] == "warn" for verdict in answer.verdicts):
            played.warned.append(at)
        played.verdicts.extend(answer.verdicts)
    return played
