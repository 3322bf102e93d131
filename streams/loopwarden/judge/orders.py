"""The standing blocks of a run: at any time every blocked tool, and every blocked signature that no such tool covers.

They are exactly what the judge would decide `block` for, so that a runner which enforces them refuses the same calls.
One event can change the decision of a few signatures only; those are asked again.
(design.md, "Verdicts", the invariant.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopwarden.judge.allowances import Allowances
from loopwarden.judge.detectors import decide_block
from loopwarden.judge.findings import Finding
from loopwarden.judge.window import Signature, Window
from loopwarden_schemas.policy import Policy
from loopwarden_schemas.structs import Scope


class OrderKey(NamedTuple):
    """What a verdict covers: one signature, a whole tool (without `args_hash`), or the run."""

    scope: Scope
    tool: str
    args_hash: str


Changes = tuple[Sequence[tuple[OrderKey, Finding]], Sequence[OrderKey]]
"""The orders placed, each with why, and the orders lifted; both sorted by key."""

NO_CHANGES: Changes = ((), ())


class Orders:
    """The blocks in force."""

    __slots__ = ("calls", "tool")

    def __init__(self) -> None:
        self.tool: str | None = None
        """The blocked tool: unknown-tool streaks end at the newest call, so there is at most one."""
        self.calls: dict[tuple[str, str], None] = {}
        """The blocked signatures."""

    def standing(self) -> list[OrderKey]:
        """Return all of them, sorted."""
        tools = [] if self.tool is None else [OrderKey("tool", self.tool, "")]
        return sorted([*tools, *(OrderKey("call", *key) for key in self.calls)])

    def refresh(
        self, window: Window, policy: Policy, allowances: Allowances, touched: tuple[Signature, ...]
    ) -> Changes:
        """Bring the orders up to date after an event.

        Args:
            window: The calls after the event.
            policy: Of the run.
            allowances: What a person has allowed.
            touched: The one or two signatures whose calls or outcomes the event changed, that of a call it pushed
                out included.
        """
        warned_from = policy.warning_threshold - 1
        if (
            self.tool is not None
            or window.tail >= warned_from
            or window.previous_tail >= warned_from
            or window.ends_unknown
        ):
            # What alternated before the event and what alternates now is among the newest three: one event appends,
            # removes or changes one call.
            newest = [call.signature for call in window.calls[-3:]]
            return self._ask_again(window, policy, allowances, list(dict.fromkeys([*touched, *newest])))
        # Without unknown tools and without a ping-pong warning, which hides a generic block, a decision depends on the
        # signature's own streak: nearly always nothing can have changed.
        asked = [one for one in touched if one.streak >= policy.critical_threshold or one.key in self.calls]
        return self._ask_again(window, policy, allowances, asked) if asked else NO_CHANGES

    def review(self, window: Window, policy: Policy, allowances: Allowances) -> Changes:
        """Bring all orders up to date after something was allowed, or is not allowed any more."""
        return self._ask_again(window, policy, allowances, list(window.signatures.values()))

    def _ask_again(
        self, window: Window, policy: Policy, allowances: Allowances, candidates: Sequence[Signature]
    ) -> Changes:
        placed: list[tuple[OrderKey, Finding]] = []
        lifted: list[OrderKey] = []
        if self.tool is not None or window.ends_unknown:
            before = self.tool
            finding = self._ask_for_tool(window, policy, allowances)
            if self.tool != before:
                if before is not None:
                    lifted.append(OrderKey("tool", before, ""))
                if self.tool is not None and finding is not None:
                    placed.append((OrderKey("tool", self.tool, ""), finding))
                # What a tool's order covered or uncovers changes with it.
                covered = [one for one in window.signatures.values() if one.tool in (before, self.tool)]
                candidates = [*candidates, *covered]
        for signature in candidates:
            # A signature of which no call is left in the window has no streak, and nothing alternates with it.
            finding = decide_block(window, signature, policy)
            key = signature.key
            if finding is not None and finding.scope == "call" and not allowances.covers(signature.tool):
                if key not in self.calls:
                    self.calls[key] = None
                    placed.append((OrderKey("call", *key), finding))
            elif key in self.calls:
                del self.calls[key]
                lifted.append(OrderKey("call", *key))
        if not placed and not lifted:
            return NO_CHANGES
        return sorted(placed, key=lambda order: order[0]), sorted(lifted)

    def _ask_for_tool(self, window: Window, policy: Policy, allowances: Allowances) -> Finding | None:
        """Bring the tool's order up to date, and return why it stands."""
        self.tool = None
        if not window.ends_unknown:
            return None
        newest = window.calls[-1].signature
        finding = decide_block(window, newest, policy)
        if finding is None or finding.scope != "tool" or allowances.covers(newest.tool):
            return None
        self.tool = newest.tool
        return finding
