"""Which thresholds and detectors would have stopped how many runs of a history, and harmed how many good ones."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from loopwarden.replay.what_if import RunUnder
from loopwarden_schemas.policy import PolicyDocument

CRITICAL: Final = (3, 4, 5, 6, 8, 10, 12, 15, 20)
"""Thresholds of a block that are tried: the default and below it, where loops are caught early."""

DETECTORS: Final[Mapping[str, Mapping[str, bool]]] = {
    "all": {},
    "no ping-pong": {"pingPong": False},
    "no generic": {"genericRepeat": False},
    "no poll": {"knownPollNoProgress": False},
    "ping-pong only": {"genericRepeat": False, "knownPollNoProgress": False},
    "generic only": {"knownPollNoProgress": False, "pingPong": False},
}
"""Which rules are tried together. Unknown tools and the breaker have thresholds, and are always on."""


class Candidate(NamedTuple):
    """A policy that is tried, and what is special about it."""

    warning: int
    critical: int
    breaker: int
    detectors: str
    document: PolicyDocument


@dataclass
class Tally:
    """What a policy does to a history.

    Attributes:
        resolved: Runs that ended well.
        unresolved: Runs that did not.
        unknown: Runs of which nobody said.
        harmed: Of the resolved: those it gets in the way of.
        stopped: Of the unresolved.
        stopped_unknown: Of the others.
        spared_calls: Calls it refuses, or that come after its aborts, in runs that were not resolved.
    """

    resolved: int = 0
    unresolved: int = 0
    unknown: int = 0
    harmed: int = 0
    stopped: int = 0
    stopped_unknown: int = 0
    spared_calls: int = 0

    def without_harm(self) -> Tally:
        """Return that of a policy that stops none of the same runs."""
        return Tally(self.resolved, self.unresolved, self.unknown)

    def add(self, other: Tally) -> None:
        """Add that of other runs."""
        for name in Tally.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def harmed_share(self) -> float:
        """Of the resolved runs, 0 to 1."""
        return self.harmed / self.resolved if self.resolved else 0.0

    @property
    def stopped_share(self) -> float:
        """Of the unresolved runs, 0 to 1."""
        return self.stopped / self.unresolved if self.unresolved else 0.0


def candidates(base: PolicyDocument) -> list[Candidate]:
    """Return the policies to try, the strictest first: the base with other thresholds and detectors for the fleet.

    What the base says of single agents stays as it is. Warnings come at half the threshold of blocks, the breaker half
    above it. All have the same window, large enough for each: so a run that the first one never blocks is never blocked
    by any (until a policy blocks, the windows are the same, and no other has a lower threshold or more detectors).
    """
    found = []
    window = max(base.resolve(None).history_size, 2 * (CRITICAL[-1] + CRITICAL[-1] // 2))
    for critical in CRITICAL:
        warning, breaker = max(1, critical // 2), critical + max(1, critical // 2)
        for name, detectors in DETECTORS.items():
            block = {
                "enabled": True,
                "historySize": window,
                "warningThreshold": warning,
                "criticalThreshold": critical,
                "unknownToolThreshold": critical,
                "globalCircuitBreakerThreshold": breaker,
                "detectors": {"genericRepeat": True, "knownPollNoProgress": True, "pingPong": True, **detectors},
            }
            found.append(Candidate(warning, critical, breaker, name, _laid_over(base, block)))
    return found


def _laid_over(base: PolicyDocument, block: Mapping[str, Any]) -> PolicyDocument:
    value = copy.deepcopy(base.value) if isinstance(base.value, dict) else {}
    tools = value.setdefault("tools", {}) if isinstance(value.get("tools", {}), dict) else {}
    value["tools"] = tools
    former = tools.get("loopDetection")
    tools["loopDetection"] = {**(former if isinstance(former, dict) else {}), **block}
    return PolicyDocument.from_value(value)


def tallies(runs: Iterable[RunUnder], policies: int) -> list[Tally]:
    """Return what each of the policies that runs were judged under does to all of them."""
    found = [Tally() for _ in range(policies)]
    for run in runs:
        for tally, course in zip(found, run.courses, strict=True):
            stops = course.stops
            if run.outcome == "resolved":
                tally.resolved += 1
                tally.harmed += stops
                continue
            tally.spared_calls += course.spared.calls
            if run.outcome == "unresolved":
                tally.unresolved += 1
                tally.stopped += stops
            else:
                tally.unknown += 1
                tally.stopped_unknown += stops
    return found


def suspects(runs: Iterable[RunUnder]) -> Iterator[bytes]:
    """Yield the keys of the runs that a policy, the only one or the first, blocks or ends."""
    for run in runs:
        course = run.courses[0]
        if course.stops or course.blocked_at is not None:
            yield run.run_id.encode("utf-8", "surrogatepass")


def front(found: Sequence[Tally]) -> list[int]:
    """Return those that no other beats: none stops as many and harms fewer, or stops more and harms no more.

    Of several that come to the same the last one counts: candidates are in the order of their thresholds, so it is the
    most patient. In the order of the harm.
    """
    best: list[int] = []
    order = sorted(
        range(len(found)), key=lambda at: (found[at].harmed, -found[at].stopped, -found[at].spared_calls, -at)
    )
    for at in order:
        if not best or found[at].stopped > found[best[-1]].stopped:
            best.append(at)
    return best


def choose(found: Sequence[Tally], most_harm: float) -> int | None:
    """Return the one that stops most and harms no more than this share of the resolved runs; None: none stops any."""
    allowed = [at for at in front(found) if found[at].harmed_share <= most_harm and found[at].stopped]
    return allowed[-1] if allowed else None
