"""A run's events, folded again by the judge, as a `Timeline`. Pure: it works from a file alone.

Decisions, counts, verdicts and which events make up a call are the judge's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import UNSET

from loopwarden.judge import RunState, judge
from loopwarden.judge.outcome import NO_ARGUMENTS, Hashed, hash_call
from loopwarden.judge.redelivery import identity
from loopwarden.report.drawing import draw
from loopwarden.report.following_through import FollowingThrough
from loopwarden.report.gathered import Call, Gathered, Issued
from loopwarden.report.marks import mark_text
from loopwarden.report.model import Mark, MarkKind, PolicyInForce, Timeline
from loopwarden.report.pairing import Pairing
from loopwarden.report.payloads import SHOWN_CHARACTERS, legible, payload
from loopwarden_schemas.canonical import NotCanonical
from loopwarden_schemas.digests import short_id
from loopwarden_schemas.policy import DEFAULT_DOCUMENT, PolicyDocument
from loopwarden_schemas.structs import (
    TOOL_CALL_EVENTS,
    Decision,
    Event,
    EventOfRun,
    PolicyApplied,
    RunStarted,
    ToolCallBlocked,
    ToolCallEvent,
    ToolCallFinished,
    ToolCallStarted,
    Verdict,
)


def timeline(
    run_id: str,
    events: Iterable[Event],
    recorded: Iterable[Verdict] | None = None,
    policy: PolicyDocument = DEFAULT_DOCUMENT,
    source: str = "the defaults",
) -> Timeline:
    """Return a run call by call.

    Args:
        run_id: The run.
        events: Its events in the order of the log with their append times, and the `policy.applied` between them (with
            their documents inline). Events of other runs are passed over.
        recorded: The verdicts that were published on it; None: they are not known.
        policy: In force until a `policy.applied`.
        source: Where that policy comes from, in words.
    """
    builder = TimelineBuilder(run_id, policy, source=source)
    if recorded is not None:
        builder.add_verdicts(recorded)
    for event in events:
        builder.add(event)
    return builder.timeline()


class TimelineBuilder:
    """Takes a run's log as it comes, and draws its `timeline` whenever it is asked for."""

    def __init__(
        self,
        run_id: str,
        policy: PolicyDocument = DEFAULT_DOCUMENT,
        *,
        number: int = -1,
        source: str = "the defaults",
        shown_characters: int = SHOWN_CHARACTERS,
        notes: Iterable[str] = (),
    ) -> None:
        """Begin.

        Args:
            run_id: The run.
            policy: In force until a `policy.applied`.
            number: Of that policy; a lower one that is applied changes nothing.
            source: Where that policy comes from, in words.
            shown_characters: Of each payload, at most; 0: none of them are shown.
            notes: What the reader has to know about the log.
        """
        self._run = Gathered(run_id, shown_characters, list(notes))
        self._document = policy
        self._number = number
        self._source = source
        self._shown = shown_characters
        self._through = FollowingThrough()
        self._issued: dict[str, Issued] = {}
        self._places: dict[str, _Place] = {}
        """By the ids of the events."""
        self._pairing = Pairing()
        self._told_over = False

    def add(self, event: Event) -> None:
        """Take the next event of the log; one of another run changes nothing."""
        if isinstance(event, PolicyApplied):
            # The worker refuses a number below the one in force.
            if isinstance(event.policy, Mapping) and event.number >= self._number:
                self._number = event.number
                self._document = PolicyDocument.from_value(event.policy)
                self._source = f"policy {event.number}, applied in the log"
        elif event.run_id == self._run.run_id:
            self._fold(event)

    def add_verdicts(self, verdicts: Iterable[Verdict]) -> None:
        """Take recorded verdicts, before or after the events that caused them. Once called, what is missing shows."""
        self._run.recorded_known = True
        self._match(verdicts)

    def timeline(self) -> Timeline:
        """Return the run as it is known now."""
        return draw(self._run)

    def _match(self, verdicts: Iterable[Verdict]) -> None:
        """Find recorded verdicts among those of the judge, or their places."""
        for verdict in verdicts:
            if verdict.run_id != self._run.run_id:
                continue
            known = self._issued.get(verdict.verdict_id)
            place = self._places.get(verdict.event_id)
            if known is not None:
                known.recorded = True
            elif place is not None:
                self._put(verdict, place, recomputed=False).recorded = True
            else:
                self._run.waiting.setdefault(verdict.event_id, []).append(verdict)

    def _fold(self, event: EventOfRun) -> None:
        before = self._run.state
        try:
            hashed = hash_call(event) if isinstance(event, TOOL_CALL_EVENTS) else None
            who = identity(event) if hashed is None else hashed.identity
            if before is not None and event.append_time <= before.expires_at and who in before.seen.identities:
                self._run.redelivered += 1
                return
            was = _Before(before, hashed)
            known = None
            if isinstance(event, TOOL_CALL_EVENTS) and hashed is not None:
                begins = before is None or event.append_time > before.expires_at
                known = self._pairing.look(None if begins else before, event, hashed)
            state, decisions, verdicts = judge(before, event, self._document)
        except NotCanonical as error:
            self._mark("rejected", event, f"An event could not be judged: {error}")
            return
        self._run.state = state
        judged = state is not before or state.unjudged == was.unjudged
        self._follow_life(before, state, event, judged)
        self._run.spending.add(event)
        call = None
        if isinstance(event, TOOL_CALL_EVENTS) and hashed is not None:
            call = self._call_of(event, hashed, known, judged)
            self._tell_outcome(call, event, hashed)
            self._pairing.bind(state, event, hashed, call)
            self._carry(call, event)
            if judged:
                _tell_counts(call, state, was, decisions)
        else:
            kind, text = mark_text(event, state)
            self._mark(kind, event, text)
        self._through.see_event(event)
        self._issue(verdicts, event, call)

    def _follow_life(self, before: RunState | None, state: RunState, event: EventOfRun, judged: bool) -> None:
        run = self._run
        run.agent_id, run.session_id = state.agent_id, state.session_id
        run.newest_at = max(run.newest_at or 0, event.append_time)
        if run.began_at is None:
            run.began_at = event.append_time
        if state is not before:
            if before is not None:
                self._mark("again", event, "The run begins anew: nothing counts that was before")
                self._pairing = Pairing()
            self._pin(state, event)
        if not judged:
            run.unjudged += 1
            if not self._told_over:
                self._mark("unjudged", event, "The run is over: what follows is counted, not judged")
        self._told_over = not judged

    def _pin(self, state: RunState, event: EventOfRun) -> None:
        override = isinstance(event, RunStarted) and event.policy is not UNSET
        policy = state.policy
        found = PolicyInForce(
            from_call=len(self._run.calls) + 1,
            source=f"{self._source}{', with what run.started laid over it' if override else ''}",
            policy_digest=policy.digest,
            detectors_on=policy.detectors_on,
            guard_on=policy.guard_on,
            table=policy.to_table(),
        )
        if not self._run.policies or self._run.policies[-1].policy_digest != found.policy_digest:
            self._run.policies.append(found)

    def _call_of(self, event: ToolCallEvent, hashed: Hashed, known: Call | None, judged: bool) -> Call:
        call = known
        if call is None:
            key = (hashed.tool, hashed.args_hash or NO_ARGUMENTS)
            call = Call(len(self._run.calls) + 1, event, key, hashed.known_poll)
            call.judged = judged
            self._run.calls.append(call)
        self._run.call_of.setdefault(short_id(event.event_id), call)
        call.spending.add(event)
        return call

    def _tell_outcome(self, call: Call, event: ToolCallEvent, hashed: Hashed) -> None:
        if isinstance(event, ToolCallStarted):
            return
        call.ended_at = event.append_time
        if isinstance(event, ToolCallBlocked):
            call.outcome = "blocked"
        elif hashed.result is not None:
            is_error = event.error is not UNSET or event.unknown_tool is not None
            call.outcome, call.result_hash = "error" if is_error else "result", hashed.result
        elif call.outcome == "pending":
            # As if still pending: an outcome may follow. (design.md)
            call.outcome = "void"

    def _carry(self, call: Call, event: ToolCallEvent) -> None:
        """Keep what the event carried, where it is the first to do so."""
        if event.args is not UNSET and call.key not in self._run.args:
            self._run.args[call.key] = payload(event.args, self._shown)
        if isinstance(event, ToolCallFinished) and call.result_hash is not None:
            key = (*call.key, call.result_hash)
            if key not in self._run.results:
                carried = event.error if event.error is not UNSET else event.result
                self._run.results[key] = payload(carried, self._shown)

    def _mark(self, kind: MarkKind, event: EventOfRun, text: str) -> None:
        place = len(self._run.calls) + 1
        mark = Mark(kind=kind, before_call=place, at=event.append_time, text=legible(text), verdicts=())
        self._run.marks.append(mark)

    def _issue(self, verdicts: list[Verdict], event: EventOfRun, call: Call | None) -> None:
        mark = len(self._run.marks) - 1 if call is None else None
        place = self._places[event.event_id] = _Place(event.append_time, call, mark, len(self._run.calls) + 1)
        for verdict in verdicts:
            self._put(verdict, place, recomputed=True)
        self._match(self._run.waiting.pop(event.event_id, []))

    def _put(self, verdict: Verdict, place: _Place, recomputed: bool) -> Issued:
        run, call = self._run, place.call
        number = None if call is None else call.number
        issued = Issued(self._through.see_verdict(verdict), place.at, number, place.before_call, recomputed)
        if call is not None:
            call.verdicts.append(len(run.issued))
        elif place.mark is not None:
            mark = run.marks[place.mark]
            run.marks[place.mark] = mark.model_copy(update={"verdicts": (*mark.verdicts, len(run.issued))})
        self._issued[verdict.verdict_id] = issued
        run.issued.append(issued)
        return issued


class _Place(NamedTuple):
    """Where the verdicts of an event stand: at a call, or at a mark."""

    at: int
    call: Call | None
    mark: int | None
    before_call: int


class _Before:
    """What the judge had counted before an event: of the run, and of the event's signature."""

    def __init__(self, state: RunState | None, hashed: Hashed | None) -> None:
        self.unjudged = 0 if state is None else state.unjudged
        self.streak = self.calls = self.window = 0
        self.result: str | None = None
        self.blocked = False
        if state is None or hashed is None:
            return
        key = (hashed.tool, hashed.args_hash or NO_ARGUMENTS)
        signature = state.window.signatures.get(key)
        self.window = len(state.window.calls)
        self.blocked = key in state.orders.calls or state.orders.tool == hashed.tool
        if signature is not None:
            self.streak, self.calls, self.result = signature.streak, signature.calls, signature.newest_result


def _tell_counts(call: Call, state: RunState, was: _Before, decisions: list[Decision]) -> None:
    for decision in decisions:
        if decision.action == "warn" or decision.action == "block":
            call.decision, call.detector, call.count = decision.action, decision.detector, decision.count
    if call.outcome == "blocked":
        call.under_order = was.blocked
    elif call.decision is None:
        call.decision = "allow"
    if state.ended_at is None:
        signature = state.window.signatures.get(call.key)
        call.window = len(state.window.calls)
        call.streak, call.in_window = (0, 0) if signature is None else (signature.streak, signature.calls)
        return
    # The window is gone with the run: the count goes on from what stood before.
    call.window, call.in_window, call.streak = was.window, was.calls, was.streak
    if call.result_hash is not None:
        call.streak = was.streak + 1 if call.result_hash == was.result else 1
