"""The judge as a plain recount: the rules of design.md, written down with lists that are counted again for every event.

It is the specification in code, slow and short, and shares nothing with the judge but the contract (hashing, policy).
`judge` must answer as this does, word for word but for the free text of a verdict's `message`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from msgspec import UNSET

from loopwarden_schemas import structs
from loopwarden_schemas.digests import (
    digest,
    error_text,
    is_known_poll,
    normalise_tool,
    outcome_array,
    short_id,
    unknown_tool_of,
)
from loopwarden_schemas.policy import Policy, PolicyDocument

HOUR = 3_600_000
IDLE = 24 * HOUR
ENDED = HOUR
REMEMBERED_CALLS = 64
REMEMBERED_EVENTS = 128
WARNING_KEYS = 64
EVIDENCE = 10
OPEN_CALLS = 64
ALLOWANCES = 64
RULES_VERSION = 1

Signature: TypeAlias = tuple[str, str]
Order: TypeAlias = tuple[str, str, str]
"""(scope, tool, args_hash); the args_hash of scope `tool` is "" here, so that orders can be sorted."""


@dataclass
class Call:
    """One record of the window, or one remembered outside it."""

    signature: Signature
    call_id: str | None
    event_id: str
    poll: bool
    """What its events said: is it a known poll?"""
    result: str | None = None
    unknown_tool: str | None = None
    lone: bool = False

    @property
    def pending(self) -> bool:
        return self.result is None


@dataclass(frozen=True)
class Finding:
    """What a detector says of the next call of a signature."""

    action: str
    detector: str
    scope: str
    count: int
    threshold: int
    counted: list[Call]


class Read(NamedTuple):
    """What is hashed of a call's event, before anything changes: the call as executed, and its outcome."""

    call: Call
    result: str | None = None
    unknown_tool: str | None = None


class Observed(NamedTuple):
    """One outcome that the guard saw."""

    signature: Signature
    result: str
    event_id: str


@dataclass
class Run:
    """One run, by the rules alone."""

    run_id: str
    begun: int
    policy: Policy
    n: int = 0
    seen: list[tuple[str, str, str | None]] = field(default_factory=list)
    newest_at: int = 0
    ended_at: int | None = None
    aborted: bool = False
    """Whether that end was an abort."""
    session_id: str | None = None
    agent_id: str | None = None
    window: list[Call] = field(default_factory=list)
    polls: set[Signature] = field(default_factory=set)
    """Signatures in the window of which any recorded call said that it is a poll."""
    remembered: list[Call] = field(default_factory=list)
    warned: dict[tuple[Any, ...], int] = field(default_factory=dict)
    attempts_left: int = 0
    observed: list[Observed] = field(default_factory=list)
    standing: dict[Order, Finding] = field(default_factory=dict)
    """The orders after the run's last event."""
    allowances: dict[str | None, int | None] = field(default_factory=dict)
    """Tools (None: all of them) and until when a person allows their calls; the oldest first."""
    delivered: int = 0
    obeyed: int = 0
    disobeyed: int = 0
    ignored: list[str] = field(default_factory=list)
    """The attempts of blocked calls since the last allowed call: the events that told of them."""
    disobeyed_ids: list[str] = field(default_factory=list)
    """The blocked calls that started; a `blocked` may still say that they were refused."""

    # Counting (reference, section 5), over the calls of the window.

    def of(self, signature: Signature) -> list[Call]:
        return [call for call in self.window if call.signature == signature]

    def streak(self, signature: Signature) -> list[Call]:
        """S: the newest outcomes of the signature that are identical, pending calls left out."""
        outcomes = [call for call in self.of(signature) if not call.pending]
        found: list[Call] = []
        for call in reversed(outcomes):
            if call.result != outcomes[-1].result:
                break
            found.insert(0, call)
        return found

    def alternation(self, signature: Signature) -> list[Call]:
        """The tail that alternates and that a call of this signature would continue; A is its length + 1."""
        other = next((c.signature for c in reversed(self.window) if c.signature != self.window[-1].signature), None)
        if signature != other:
            return []
        sides = (self.window[-1].signature, signature)
        tail: list[Call] = []
        for call in reversed(self.window):
            if call.signature != sides[len(tail) % 2]:
                break
            tail.insert(0, call)
        return tail if len(tail) >= 2 else []

    def unknown_streak(self, tool: str) -> list[Call]:
        """K: the newest calls, all of this tool and with the same unknown name."""
        found: list[Call] = []
        for call in reversed(self.window):
            name = call.unknown_tool
            if call.signature[0] != tool or name is None or name != self.window[-1].unknown_tool:
                break
            found.insert(0, call)
        return found

    # Deciding (reference, section 6).

    def find(self, signature: Signature) -> Finding | None:
        """The first detector that has something to say about the next call of a signature."""
        policy, poll = self.policy, signature in self.polls
        if not policy.detectors_on:
            return None
        warning, critical = policy.warning_threshold, policy.critical_threshold

        unknown = self.unknown_streak(signature[0])
        if len(unknown) >= policy.unknown_tool_threshold:
            return Finding("block", "unknown_tool_repeat", "tool", len(unknown), policy.unknown_tool_threshold, unknown)

        streak = self.streak(signature)
        breaker = policy.global_circuit_breaker_threshold
        if len(streak) >= breaker:
            return Finding("block", "global_circuit_breaker", "call", len(streak), breaker, streak)

        if poll and policy.known_poll_no_progress:
            if len(streak) >= critical:
                return Finding("block", "known_poll_no_progress", "call", len(streak), critical, streak)
            if len(streak) >= warning:
                return Finding("warn", "known_poll_no_progress", "call", len(streak), warning, streak)

        if policy.ping_pong and (tail := self.alternation(signature)):
            sides = [{call.result for call in tail[0::2]}, {call.result for call in tail[1::2]}]
            evidence = all(len(side) == 1 and None not in side for side in sides)
            if len(tail) + 1 >= critical and evidence:
                return Finding("block", "ping_pong", "call", len(tail) + 1, critical, tail)
            if len(tail) + 1 >= warning:
                return Finding("warn", "ping_pong", "call", len(tail) + 1, warning, tail)

        if not poll and policy.generic_repeat:
            if len(streak) >= critical:
                return Finding("block", "generic_repeat", "call", len(streak), critical, streak)
            calls = self.of(signature)
            if len(calls) >= warning:
                return Finding("warn", "generic_repeat", "call", len(calls), warning, calls)
        return None

    def orders(self) -> dict[Order, Finding]:
        """Every blocked tool, and every blocked signature that none of them covers."""
        if self.ended_at is not None or not self.policy.detectors_on:
            return {}
        found: dict[Order, Finding] = {}
        for signature in {call.signature for call in self.window}:
            finding = self.find(signature)
            if finding and finding.action == "block" and not self.allows(signature[0]):
                tool, args_hash = signature
                found[(finding.scope, tool, "" if finding.scope == "tool" else args_hash)] = finding
        return found

    # What a person decided, and whether the runner obeys.

    def allow(self, tool: str | None, until: int | None) -> None:
        self.allowances.pop(tool, None)
        self.allowances[tool] = until
        self.allowances = dict(list(self.allowances.items())[-ALLOWANCES:])

    def allows(self, tool: str) -> bool:
        return None in self.allowances or tool in self.allowances

    def attempted(self, call: Call) -> None:
        """A blocked call was made, as it seems."""
        self.disobeyed += 1
        self.ignored.append(call.event_id)
        if call.call_id is not None and call.call_id not in self.disobeyed_ids:
            self.disobeyed_ids = [*self.disobeyed_ids, call.call_id][-OPEN_CALLS:]

    def refused(self, call: Call) -> None:
        """The runner says that a call was not made. Where that call seemed to be made, it is one attempt, not two."""
        self.obeyed += 1
        if call.call_id in self.disobeyed_ids:
            self.disobeyed_ids.remove(call.call_id)
            self.disobeyed -= 1
        else:
            self.ignored.append(call.event_id)

    def forget(self) -> None:
        """As if no call had been made."""
        self.window, self.polls, self.remembered, self.warned = [], set(), [], {}
        self.attempts_left, self.observed, self.ignored = 0, [], []

    def end(self, at: int, aborted: bool) -> None:
        self.forget()
        self.allowances = {}
        self.ended_at, self.aborted = at, aborted

    # Warnings.

    def warning_keys(self, finding: Finding, signature: Signature) -> tuple[Any, ...]:
        if finding.detector == "ping_pong":
            return ("ping_pong", frozenset((signature, self.window[-1].signature)))
        last = self.streak(signature)[-1].result if finding.detector == "known_poll_no_progress" else None
        return (finding.detector, frozenset((signature,)), last)

    def publishes_warning(self, finding: Finding, signature: Signature) -> bool:
        key = self.warning_keys(finding, signature)
        bucket = (finding.count - finding.threshold) // 10
        if bucket <= self.warned.get(key, -1):
            return False
        self.warned[key] = bucket
        if len(self.warned) > WARNING_KEYS:
            del self.warned[next(iter(self.warned))]
        return True

    def forget_warnings(self, signature: Signature) -> None:
        self.warned = {key: bucket for key, bucket in self.warned.items() if signature not in key[1]}

    # The window.

    def record(self, call: Call) -> None:
        self.window.append(call)
        self.note_poll(call)
        if len(self.window) > self.policy.history_size:
            gone = self.window.pop(0)
            if gone.pending:
                self.remember(gone)

    def note_poll(self, call: Call) -> None:
        if call.poll:
            self.polls.add(call.signature)

    def remember(self, call: Call) -> None:
        if call.call_id is None:
            return
        call.poll = call.poll or call.signature in self.polls
        call.lone = False
        self.remembered = [other for other in self.remembered if other.call_id != call.call_id]
        self.remembered = [*self.remembered, call][-REMEMBERED_CALLS:]


class Answer(NamedTuple):
    """What the model says of one event. Verdicts are in their order, as dicts without `message`."""

    run: Run
    decisions: list[structs.Decision]
    verdicts: list[dict[str, Any]]


def recount(run: Run | None, event: structs.EventOfRun, policy: PolicyDocument) -> Answer:
    """Judge one event. The run is changed in place, as the judge does with a state.

    Raises:
        NotCanonical: a payload has no canonical JSON; nothing has changed.
    """
    read = _read(event)
    now = event.append_time
    if run is not None:
        limit = run.newest_at + IDLE if run.ended_at is None else run.ended_at + ENDED
        if now > limit:
            run = None
    call_id = event.call_id if isinstance(event, structs.TOOL_CALL_EVENTS) else None
    key = (event.event_id, type(event).__name__, call_id)
    if run is not None and key in run.seen:
        return Answer(run, [], [])
    over = run is not None and run.ended_at is not None and not isinstance(event, structs.RunStarted)
    if run is None:
        run = _begin(event, policy)
    elif run.ended_at is not None and not over:
        run = _begin(event, policy, run.n, run.seen)
    run.seen = [*run.seen, key][-REMEMBERED_EVENTS:]
    judged = Judging(run, event)
    if over and not (run.aborted and isinstance(event, structs.OperatorOverride) and event.action == "release"):
        return Answer(run, [], [])
    run.newest_at = max(run.newest_at, now)
    if over:
        run.ended_at, run.aborted = None, False
        judged.publish_for_run("clear", "order", "operator_release")
        return Answer(run, [], judged.verdicts)
    run.session_id = run.session_id or event.session_id
    run.agent_id = run.agent_id or event.agent_id

    judged.fold(read)
    return Answer(run, judged.decisions, judged.verdicts)


def _begin(
    event: structs.EventOfRun, policy: PolicyDocument, n: int = 0, seen: list[tuple[str, str, str | None]] | None = None
) -> Run:
    override = event.policy if isinstance(event, structs.RunStarted) and event.policy is not UNSET else None
    pinned = policy.resolve(event.agent_id, override)
    return Run(event.run_id, event.append_time, pinned, n, seen or [])


def _read(event: structs.EventOfRun) -> Read | None:
    if not isinstance(event, structs.TOOL_CALL_EVENTS):
        return None
    tool = normalise_tool(event.tool)
    args = None if event.args is UNSET else event.args
    args_hash = event.args_hash if event.args_hash is not None and event.args is UNSET else digest(args)
    poll = bool(event.known_poll) or is_known_poll(tool, args)
    call = Call((tool, args_hash), event.call_id, short_id(event.event_id), poll)
    if not isinstance(event, structs.ToolCallFinished):
        return Read(call)
    if event.error is not UNSET:
        text = error_text(event.error)
        return Read(call, digest(["error", text]), unknown_tool_of(text))
    if event.result is not UNSET:
        array = outcome_array(tool, args, event.result)
        return Read(call, None if array is None else digest(array))
    unknown_tool = event.unknown_tool.lower() if event.result_hash is not None and event.unknown_tool else None
    return Read(call, event.result_hash, unknown_tool)


class Judging:
    """One event folded into its run."""

    def __init__(self, run: Run, event: structs.EventOfRun) -> None:
        self.run = run
        self.event = event
        self.decisions: list[structs.Decision] = []
        self.verdicts: list[dict[str, Any]] = []

    def fold(self, read: Read | None) -> None:
        run, event = self.run, self.event
        before = run.standing
        if isinstance(event, structs.TOOL_CALL_EVENTS) and event.verdict_id is not None:
            run.delivered += 1
        if isinstance(event, structs.ToolCallStarted):
            assert read is not None
            self.started(event, read.call)
        elif isinstance(event, structs.ToolCallFinished):
            assert read is not None
            self.finished(event, read)
        elif isinstance(event, structs.ToolCallBlocked):
            assert read is not None
            run.refused(read.call)
            pending = self.pending_with_id(event.call_id)
            if pending is not None:
                run.window = [call for call in run.window if call is not pending]
        elif isinstance(event, structs.Compaction):
            if event.succeeded and event.trigger != "manual" and run.policy.guard_on:
                run.attempts_left, run.observed = run.policy.guard_window, []
        elif isinstance(event, structs.RunFinished):
            run.end(event.append_time, aborted=False)
        elif isinstance(event, structs.OperatorOverride):
            self.override(event)
        if read is not None:
            self.abort_where_blocks_are_ignored(read.call.signature)
        # An allowance holds for the first event after its time, too: no runner can know before that it is over.
        run.allowances = {
            tool: until for tool, until in run.allowances.items() if until is None or until >= event.append_time
        }
        run.polls &= {call.signature for call in run.window}
        after = run.standing = run.orders()
        if run.ended_at is not None:
            return
        for order in sorted(after.keys() - before.keys()):
            self.publish_order("block", order, after[order])
        for order in sorted(before.keys() - after.keys()):
            self.publish_order("clear", order, None)

    def started(self, event: structs.ToolCallStarted, call: Call) -> None:
        run = self.run
        if event.call_id is not None:
            made_by_finished = [call for call in run.window if call.lone and call.call_id == event.call_id]
            if made_by_finished:
                made_by_finished[-1].lone = False
                return
        if self.decide(call) == "block":
            run.remember(call)
        else:
            run.record(call)

    def finished(self, event: structs.ToolCallFinished, read: Read) -> None:
        run, executed = self.run, read.call
        call = self.pending_with_id(event.call_id) if event.call_id is not None else self.pending_twin(executed)
        if call is not None:
            call.poll = call.poll or call.signature in run.polls
            self.take_executed(call, event, executed)
        elif (call := self.remembered_with_id(event.call_id)) is not None:
            if read.result is None:
                return
            run.remembered.remove(call)
            self.take_executed(call, event, executed)
            run.record(call)
        else:
            call = executed
            call.lone = True
            self.decide(call)
            run.record(call)
        run.note_poll(call)
        call.result, call.unknown_tool = read.result, read.unknown_tool
        if call.result is not None:
            self.guard(Observed(call.signature, call.result, short_id(event.event_id)))

    def take_executed(self, call: Call, event: structs.ToolCallFinished, executed: Call) -> None:
        """The tool and the arguments are the executed ones; without arguments the announced ones stay."""
        if event.args is UNSET and event.args_hash is None:
            call.poll = call.poll or executed.poll
            call.signature = (executed.signature[0], call.signature[1])
        else:
            call.signature, call.poll = executed.signature, executed.poll

    def pending_with_id(self, call_id: str | None) -> Call | None:
        found = [c for c in self.run.window if c.pending and call_id is not None and c.call_id == call_id]
        return found[-1] if found else None

    def remembered_with_id(self, call_id: str | None) -> Call | None:
        return next((c for c in self.run.remembered if call_id is not None and c.call_id == call_id), None)

    def pending_twin(self, executed: Call) -> Call | None:
        found = [c for c in self.run.of(executed.signature) if c.pending]
        return found[-1] if found else None

    def decide(self, call: Call) -> str:
        """Decide a call on what the window holds, publish what there is to say, and return the action."""
        run, signature = self.run, call.signature
        finding = run.find(signature)
        if finding is not None and finding.action == "block" and run.allows(signature[0]):
            finding = None
        if finding is not None and finding.action == "block":
            run.attempted(call)
        else:
            run.ignored = []
        if finding is None:
            run.forget_warnings(signature)
            return "allow"
        self.decisions.append(self.decision(finding.action, finding.detector, finding.count))
        if finding.action == "block" or run.publishes_warning(finding, signature):
            self.publish(
                action=finding.action,
                phase="attempt",
                detector=finding.detector,
                call_id=call.call_id,
                tool=signature[0],
                args_hash=None if finding.scope == "tool" else signature[1],
                scope=finding.scope,
                count=finding.count,
                threshold=finding.threshold,
                evidence=_newest(finding.counted),
            )
        return finding.action

    def guard(self, seen: Observed) -> None:
        """Count one outcome after a compaction; abort when all that the guard watches are the same."""
        run = self.run
        if run.attempts_left == 0:
            return
        run.attempts_left -= 1
        run.observed.append(seen)
        same = [other for other in run.observed if other[:2] == seen[:2]]
        if len(same) < run.policy.guard_window:
            return
        ids = [other.event_id for other in same]
        self.abort("compaction_loop_persisted", seen.signature, ids, run.policy.guard_window)

    def abort_where_blocks_are_ignored(self, signature: Signature) -> None:
        """Abort when blocked calls were attempted too often since the last allowed one."""
        run, limit = self.run, self.run.policy.abort_after_blocks
        if run.ended_at is None and limit is not None and len(run.ignored) >= limit:
            self.abort("block_ignored", signature, run.ignored, limit)

    def abort(self, detector: str, signature: Signature, ids: list[str], threshold: int) -> None:
        """End the run for what was found at the call at hand."""
        assert isinstance(self.event, structs.TOOL_CALL_EVENTS)
        self.decisions.append(self.decision("abort", detector, len(ids)))
        self.publish(
            action="abort",
            phase="attempt",
            detector=detector,
            call_id=self.event.call_id,
            tool=signature[0],
            args_hash=signature[1],
            scope="run",
            count=len(ids),
            threshold=threshold,
            evidence=ids[-EVIDENCE:],
        )
        self.run.end(self.event.append_time, aborted=True)

    def override(self, event: structs.OperatorOverride) -> None:
        """A person decides about a live run; what that does to the orders is published with all changes of orders."""
        run = self.run
        if event.action == "abort":
            self.publish_for_run("abort", "attempt", "operator_abort")
            run.end(event.append_time, aborted=True)
        elif event.action == "allow":
            run.allow(None if event.tool is None else normalise_tool(event.tool), event.until)
        else:
            run.forget()
            if len(run.seen) == 1:
                # It begins the run anew: a runner may still hold on to an abort of long ago.
                self.publish_for_run("clear", "order", "operator_release")

    def decision(self, action: str, detector: str, count: int) -> structs.Decision:
        return structs.Decision(self.event.event_id, self.run.run_id, action, detector, count)  # type: ignore[arg-type]

    def publish_for_run(self, action: str, phase: str, reason: str) -> None:
        """Say what a person decided about the whole run."""
        nothing = dict.fromkeys(("detector", "call_id", "tool", "args_hash", "count", "threshold", "evidence"))
        self.publish(**nothing, action=action, phase=phase, scope="run", reason=reason)

    def publish_order(self, action: str, order: Order, finding: Finding | None) -> None:
        scope, tool, args_hash = order
        self.publish(
            action=action,
            phase="order",
            detector=finding.detector if finding else None,
            call_id=None,
            tool=tool,
            args_hash=args_hash or None,
            scope=scope,
            count=finding.count if finding else None,
            threshold=finding.threshold if finding else None,
            evidence=_newest(finding.counted) if finding else None,
            reason=self.reason_of_clear() if finding is None else finding.detector,
        )

    def reason_of_clear(self) -> str:
        override = self.event.action if isinstance(self.event, structs.OperatorOverride) else None
        return {"allow": "operator_allow", "release": "operator_release"}.get(override or "", "pattern_ended")

    def publish(self, **said: Any) -> None:
        run, event = self.run, self.event
        run.n += 1
        parts = [said[name] for name in ("call_id", "action", "phase", "detector", "scope", "tool", "args_hash")]
        self.verdicts.append(
            {
                "schema": 1,
                "verdict_id": digest([run.run_id, event.event_id, *parts, RULES_VERSION]),
                "begun": run.begun,
                "n": run.n,
                "reason": said["detector"],
                **said,
                "run_id": run.run_id,
                "session_id": run.session_id,
                "agent_id": run.agent_id,
                "event_id": event.event_id,
                "policy_digest": digest(run.policy.to_table()),
                "rules_version": RULES_VERSION,
                "ts": event.ts,
                "delivered": run.delivered,
                "obeyed": run.obeyed,
                "disobeyed": run.disobeyed,
            }
        )


def _newest(calls: list[Call]) -> list[str]:
    return [call.event_id for call in calls][-EVIDENCE:]
