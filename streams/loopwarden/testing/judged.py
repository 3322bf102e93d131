"""What became of told runs under a policy, and what should have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from loopwarden.replay import Folder
from loopwarden.testing.runs import ToldRun
from loopwarden_schemas.codec import event_from_value
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.policy_file import read_policy_file
from loopwarden_schemas.structs import Decision, Rejected, RunStarted, Verdict

Policy: TypeAlias = "PolicyDocument | Mapping[str, Any] | str | Path"
"""A policy's file, or the document itself: `{"tools": {"loopDetection": {...}}}`."""


class At(NamedTuple):
    """A verdict and where in its run it came.

    Attributes:
        call: The number of the newest call of the run then; 0 before the first.
        verdict: The verdict.
    """

    call: int
    verdict: Verdict

    def __str__(self) -> str:
        verdict = self.verdict
        counted = "" if verdict.count is None else f", {verdict.count} of {verdict.threshold}"
        about = f" on {verdict.scope}" + ("" if verdict.tool is None else f" {verdict.tool}")
        phase = "" if verdict.action in ("abort", "clear", "warn") else f" ({verdict.phase})"
        return f"{verdict.run_id}, call {self.call}: {verdict.action}{phase}{about}: {verdict.reason}{counted}"


class Judged:
    """What became of runs. `expect` and `expect_none` raise `AssertionError`.

    Attributes:
        verdicts: All of them with the call at which they came, in the order of the events.
        decisions: The judge's answers that are not "allow", before the de-duplication of warnings.
    """

    def __init__(self, verdicts: list[At], decisions: list[Decision]) -> None:
        """See `judged`."""
        self.verdicts = verdicts
        self.decisions = decisions

    def expect(
        self,
        action: str,
        reason: str | None = None,
        *,
        at_call: int | None = None,
        run_id: str | None = None,
        times: int | None = None,
        **fields: Any,
    ) -> Judged:
        """Say that there is such a verdict; return this, for the next expectation.

        Args:
            action: `warn`, `block`, `abort` or `clear`.
            reason: The detector, or another of the contract's reasons.
            at_call: The call of the run at which it must come, counted from 1: the first of its kind may not be
                earlier.
            run_id: The run's.
            times: There are exactly so many; default: at least one.
            fields: Any other field of a verdict, such as `phase`, `scope`, `tool`, `count`.
        """
        wanted = _wanted(action=action, reason=reason, run_id=run_id, **fields)
        found = self._found(wanted)
        if times is None and not found:
            raise AssertionError(self._failure(f"expected {_told(wanted)}, got none"))
        if times is not None and len(found) != times:
            raise AssertionError(self._failure(f"expected {times} times {_told(wanted)}, got {len(found)}"))
        if at_call is not None and found and found[0].call != at_call:
            got = f"the first came at call {found[0].call}"
            raise AssertionError(self._failure(f"expected {_told(wanted)} at call {at_call}, {got}"))
        return self

    def expect_none(self, action: str | None = None, reason: str | None = None, **fields: Any) -> Judged:
        """Say that there is no such verdict; without arguments, none at all."""
        wanted = _wanted(action=action, reason=reason, **fields)
        found = self._found(wanted)
        if found:
            raise AssertionError(self._failure(f"expected no {_told(wanted)}, got {len(found)}"))
        return self

    def __str__(self) -> str:
        return "\n".join(f"  {each}" for each in self.verdicts) or "  no verdict"

    def _found(self, wanted: dict[str, Any]) -> list[At]:
        return [
            each
            for each in self.verdicts
            if all(getattr(each.verdict, name) == value for name, value in wanted.items())
        ]

    def _failure(self, what: str) -> str:
        return f"{what}. What came of it:\n{self}"


def judged(runs: ToldRun | Iterable[ToldRun], policy: Policy) -> Judged:
    """Fold runs under a policy, as a worker would.

    Args:
        runs: One, or several, each with an id of its own.
        policy: A file's path, or the document.

    Raises:
        PolicyError: the policy's file has a mistake; the message names file, line and path.
        ValueError: an event is none of the contract, or the document is no policy.
    """
    told = [runs] if isinstance(runs, ToldRun) else list(runs)
    folder = Folder(_document(policy))
    verdicts: list[At] = []
    decisions: list[Decision] = []
    for each in told:
        calls: Counter[str] = Counter()
        pending: set[str] = set()
        for value in each.events:
            event = event_from_value(value)
            if isinstance(event, Rejected):
                raise ValueError(f"{value['event_id']} ({value['type']}): {event.detail}")
            if isinstance(event, RunStarted):
                pending.clear()
            call_id = str(value.get("call_id", value["event_id"]))
            if value["type"].startswith("tool_call.") and call_id not in pending:
                calls[each.run_id] += 1
                pending.add(call_id)
            folded = folder.fold(event)
            if folded.rejected is not None:
                raise ValueError(f"{value['event_id']} ({value['type']}): {folded.rejected.detail}")
            verdicts += [At(calls[each.run_id], verdict) for verdict in folded.verdicts]
            decisions += folded.decisions
    return Judged(verdicts, decisions)


def _document(policy: Policy) -> PolicyDocument:
    if isinstance(policy, PolicyDocument):
        return policy
    if isinstance(policy, (str, Path)):
        return read_policy_file(Path(policy)).accepted()
    if not isinstance(policy.get("tools"), Mapping) and "agents" not in policy:
        raise ValueError('policy: must be a document, {"tools": {"loopDetection": {...}}}, got no "tools" in it')
    return PolicyDocument.from_value(policy)


def _wanted(**fields: Any) -> dict[str, Any]:
    unknown = fields.keys() - set(Verdict.__struct_fields__)
    if unknown:
        raise TypeError(
            f"{', '.join(sorted(unknown))}: must be a field of a verdict, such as phase, scope, tool, count"
        )
    return {name: value for name, value in fields.items() if value is not None}


def _told(wanted: dict[str, Any]) -> str:
    action = wanted.get("action", "verdict")
    others = " ".join(f"{name}={value}" for name, value in wanted.items() if name not in ("action", "reason"))
    return " ".join(part for part in (action, wanted.get("reason", ""), others) if part)
