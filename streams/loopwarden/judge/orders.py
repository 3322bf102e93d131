"""The standing blocks of a run: at any time every blocked tool, and every blocked signature that no such tool covers.

They are exactly what the judge would decide `block` for, so that a runner which enforces them refuses the same calls.
One event can change the decision of a few signatures only; those are asked again.
(design.md, "Verdicts", the invariant.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from loopwarden.judge.detectors import decide
from loopwarden.judge.findings import Finding
from loopwarden.judge.window import Signature, Window
from loopwarden_schemas.policy import Policy


class Ends(NamedTuple):
    """The newest signature of a window and the one it alternates with: what an alternation depends on."""

    newest: Signature | None
    other: Signature | None
    tail: int


def ends_of(window: Window) -> Ends:
    """Return what of the window decides about alternations, to be compared after an event."""
    calls = window.calls
    return Ends(calls[-1].signature if calls else None, window.other_side, window.tail)


class OrderKey(NamedTuple):
    """What a block covers: one signature, or (without `args_hash`) a whole tool."""

    scope: str
    tool: str
    args_hash: str


class Orders:
    """The blocks in force."""

    __slots__ = ("calls", "tool")

    def __init__(self) -> None:
        self.tool: str | None = None
        """The blocked tool: unknown-tool streaks end at the newest call, so there is at most one."""
        self.calls: dict[tuple[str, str], None] = {}
        """The blocked signatures."""

    def __bool__(self) -> bool:
        return self.tool is not None or bool(self.calls)

    def refresh(
        self, window: Window, policy: Policy, before: Ends, touched: Iterable[Signature]
    ) -> tuple[list[tuple[OrderKey, Finding]], list[OrderKey]]:
        """Bring the orders up to date after an event; return those placed and those lifted, each sorted by key.

        Args:
            window: The calls after the event.
            before: The ends of the window before it.
            touched: Signatures whose calls or outcomes the event changed, that of a call it pushed out included.
        """
        touched = tuple(touched)
        if not self and not _may_block(window, policy, before, touched):
            return [], []
        placed: list[tuple[OrderKey, Finding]] = []
        lifted: list[OrderKey] = []
        candidates = {s.key for s in (*touched, before.newest, before.other, *ends_of(window)[:2]) if s is not None}
        newest = window.calls[-1].signature if window.calls else None
        finding = decide(window, newest, policy) if newest is not None else None
        tool = newest.tool if newest is not None and finding is not None and finding.scope == "tool" else None
        if tool != self.tool:
            if self.tool is not None:
                lifted.append(OrderKey("tool", self.tool, ""))
            if tool is not None and finding is not None:
                placed.append((OrderKey("tool", tool, ""), finding))
            # What a tool's order covered or uncovers changes with it.
            candidates.update(key for key in (*window.signatures, *self.calls) if key[0] in (tool, self.tool))
            self.tool = tool
        for key in candidates:
            signature = window.signatures.get(key)
            finding = decide(window, signature, policy) if signature is not None else None
            if finding is not None and finding.action == "block" and finding.scope == "call":
                if key not in self.calls:
                    self.calls[key] = None
                    placed.append((OrderKey("call", *key), finding))
            elif key in self.calls:
                del self.calls[key]
                lifted.append(OrderKey("call", *key))
        placed.sort(key=lambda order: order[0])
        lifted.sort()
        return placed, lifted


def _may_block(window: Window, policy: Policy, before: Ends, touched: tuple[Signature, ...]) -> bool:
    """Whether an event can have made anything blocked where nothing was: nearly always it cannot.

    A block needs a streak at the critical threshold, or an alternation there, or unknown tools. Without a ping-pong
    warning (which hides a generic block) before or after, only the streaks that the event touched can have got there.
    """
    warned_from = policy.warning_threshold - 1
    if window.tail >= warned_from or before.tail >= warned_from:
        return True
    if any(signature.streak >= policy.critical_threshold for signature in touched):
        return True
    return bool(window.calls and window.calls[-1].unknown_streak >= policy.unknown_tool_threshold)
