"""The detectors, one file a rule, in the order in which they are asked. (Reference, section 6.)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopwarden.judge.detectors.generic_repeat import generic_repeat
from loopwarden.judge.detectors.global_circuit_breaker import global_circuit_breaker
from loopwarden.judge.detectors.known_poll_no_progress import known_poll_no_progress
from loopwarden.judge.detectors.ping_pong import ping_pong
from loopwarden.judge.detectors.unknown_tool_repeat import unknown_tool_repeat
from loopwarden.judge.findings import Finding
from loopwarden.judge.window import Signature, Window
from loopwarden_schemas.policy import Policy

Detector = Callable[[Window, Signature, Policy], Finding | None]

DETECTORS: Final[tuple[Detector, ...]] = (
    unknown_tool_repeat,
    global_circuit_breaker,
    known_poll_no_progress,
    ping_pong,
    generic_repeat,
)

_ALSO_BELOW_CRITICAL: Final = DETECTORS[2:]
"""Those that can fire without unknown tools and without a streak at the critical threshold."""


def decide(window: Window, signature: Signature, policy: Policy) -> Finding | None:
    """Return what the first detector that fires says of a call that is about to be made, or None: it is allowed."""
    if not policy.enabled:
        return None
    # Most calls end here: streak <= calls and alternation <= tail + 1, so below the lowest threshold nothing can fire.
    if signature.streak >= policy.critical_threshold or window.ends_unknown:
        detectors = DETECTORS
    elif signature.calls < policy.warning_threshold and window.tail + 1 < policy.warning_threshold:
        return None
    else:
        detectors = _ALSO_BELOW_CRITICAL
    for detector in detectors:
        finding = detector(window, signature, policy)
        if finding is not None:
            return finding
    return None


def decide_block(window: Window, signature: Signature, policy: Policy) -> Finding | None:
    """Return why a call of the signature would be blocked, or None: it would go on, warned about or not."""
    # A block needs a streak or an alternation at the critical threshold, or unknown tools.
    critical = policy.critical_threshold
    if signature.streak < critical and window.tail + 1 < critical and not window.ends_unknown:
        return None
    finding = decide(window, signature, policy)
    return finding if finding is not None and finding.action == "block" else None
